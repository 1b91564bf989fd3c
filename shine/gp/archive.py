"""The best individual of each complexity, and the Pareto front of loss and complexity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from shine.fitness.scores import Scores
from shine.gp.complexity import code_weights, complexities
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.typing import Indices


@dataclass(frozen=True, eq=False)
class Archive:
    """The best individual seen of each complexity.

    Parameters
    ----------
    individuals : Population
        One for each complexity 1, 2, ...; row ``complexity - 1`` is meaningless while its loss is infinite.
    scores : Scores
    weights : mapping of str to int
        Weights of complexity (see `shine.gp.complexity.complexities`).
    """

    individuals: Population
    scores: Scores
    weights: Mapping[str, int]

    @classmethod
    def empty(cls, primitives: PrimitiveSet, width: int, weights: Mapping[str, int] | None = None) -> Self:
        """An empty archive for individuals of at most `width` nodes."""
        weights = weights or {}
        rows = width * int(code_weights(primitives, weights).max())
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
        levels = complexities(population, self.weights) - 1
        better = np.flatnonzero(scores.losses < self.scores.losses[levels])
        if not len(better):
            return self
        order = better[np.lexsort((scores.losses[better], levels[better]))]
        rows, first = np.unique(levels[order], return_index=True)
        best = order[first]
        own = self.individuals
        codes, values, sizes = own.codes.copy(), own.values.copy(), own.sizes.copy()
        codes[rows], values[rows], sizes[rows] = population.codes[best], population.values[best], population.sizes[best]
        return Archive(
            Population(codes, values, sizes, own.primitives),
            self.scores.replaced(rows, scores.take(best)),
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
