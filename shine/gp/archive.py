"""The best formula of each complexity, and the Pareto front of loss and complexity.

A formula is an individual with a line: with slope and intercept, with one of them, or with none. Its complexity
includes that of the line. So `x` as it is, `474.5*x` and `474.5*x + 1.0` compete, each at its own complexity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from shine.fitness.scores import Scores
from shine.gp.complexity import code_weights, complexities, line_complexities
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.typing import Indices


@dataclass(frozen=True, eq=False)
class Archive:
    """The best formula seen of each complexity.

    Parameters
    ----------
    individuals : Population
        One for each complexity 1, 2, ...; row ``complexity - 1`` is meaningless while its loss is infinite.
    scores : Scores
        Losses and lines. A slope of 1 and an intercept of 0 are not written, and cost nothing.
    weights : mapping of str to int
        Weights of complexity (see `shine.gp.complexity.complexities`).
    """

    individuals: Population
    scores: Scores
    weights: Mapping[str, int]

    @classmethod
    def empty(cls, primitives: PrimitiveSet, width: int, weights: Mapping[str, int] | None = None) -> Self:
        """An empty archive for individuals of at most `width` nodes, and their lines."""
        weights = weights or {}
        lines = line_complexities(np.full(2, 2.0), np.array([1.0, -1.0]), weights)
        rows = width * int(code_weights(primitives, weights).max()) + int(lines.max())
        nobody = Population(
            np.zeros((rows, width), np.int16), np.zeros((rows, width)), np.ones(rows, np.int64), primitives
        )
        return cls(nobody, Scores(np.full(rows, np.inf), np.ones(rows), np.zeros(rows)), weights)

    @property
    def best_loss(self) -> float:
        """Lowest loss in the archive; inf if it is empty."""
        return float(self.scores.losses.min())

    def updated(self, population: Population, scores: Scores) -> Archive:
        """The archive after more individuals; of equal losses the first one stays.

        Parameters
        ----------
        population : Population
            Must have the archive's primitive set and width.
        scores : Scores
            Scores of the population.
        """
        every = Scores.concatenate([replace(form, simpler=()) for form in scores.forms])
        lines = line_complexities(every.slopes, every.intercepts, self.weights)
        losses, levels = every.losses, np.tile(complexities(population, self.weights), len(scores.forms)) + lines - 1
        better = np.flatnonzero(losses < self.scores.losses[levels])
        if not len(better):
            return self
        order = better[np.lexsort((losses[better], levels[better]))]
        rows, first = np.unique(levels[order], return_index=True)
        best = order[first]
        own, which = self.individuals, best % len(population)
        codes, values, sizes = own.codes.copy(), own.values.copy(), own.sizes.copy()
        codes[rows], values[rows], sizes[rows] = (
            population.codes[which],
            population.values[which],
            population.sizes[which],
        )
        return Archive(
            Population(codes, values, sizes, own.primitives),
            self.scores.replaced(rows, every.take(best)),
            self.weights,
        )

    def front(self, enough: float = 0.0) -> tuple[Population, Scores]:
        """The individuals with a lower loss than every simpler one, in ascending complexity.

        Parameters
        ----------
        enough : float
            The front ends with the simplest individual of at most this loss: lower losses are noise.

        Returns
        -------
        Population, Scores
            Empty if no individual has a finite loss.
        """
        on_front = self.front_rows(enough)
        return self.individuals.take(on_front), self.scores.take(on_front)

    def front_rows(self, enough: float = 0.0, without: Iterable[int] = ()) -> Indices:
        """Rows of the individuals on the front, as if the archive lacked some rows (see `front`)."""
        losses = self.scores.losses.copy()
        losses[list(without)] = np.inf
        smaller = np.concatenate(([np.inf], np.minimum.accumulate(losses)[:-1]))
        return np.flatnonzero((losses < smaller) & ~(smaller <= enough))
