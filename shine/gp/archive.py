"""The best individual of each size, and the Pareto front of loss and size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from shine.fitness import Scores
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet


@dataclass(frozen=True, eq=False)
class Archive:
    """The best individual seen of each size.

    Parameters
    ----------
    individuals : Population
        One for each size 1, 2, ..., width; row ``size - 1`` is meaningless while its loss is infinite.
    scores : Scores
    """

    individuals: Population
    scores: Scores

    @classmethod
    def empty(cls, primitives: PrimitiveSet, width: int) -> Self:
        """An archive that has seen nothing, for individuals of at most `width` nodes."""
        sizes = np.arange(1, width + 1)
        cells = (width, width)
        return cls(
            Population(np.zeros(cells, np.int16), np.zeros(cells), sizes, primitives),
            Scores(np.full(width, np.inf), np.ones(width), np.zeros(width)),
        )

    @property
    def best_loss(self) -> float:
        """Least loss seen; inf while there is none."""
        return float(self.scores.losses.min())

    def updated(self, population: Population, scores: Scores) -> Archive:
        """The archive after seeing more individuals; of equal losses the first seen stays.

        Parameters
        ----------
        population : Population
            Of the archive's primitive set and width.
        scores : Scores
            Of the population.
        """
        better = np.flatnonzero(scores.losses < self.scores.losses[population.sizes - 1])
        if not len(better):
            return self
        order = better[np.lexsort((scores.losses[better], population.sizes[better]))]
        sizes, first = np.unique(population.sizes[order], return_index=True)
        best, rows = order[first], sizes - 1
        codes, values = self.individuals.codes.copy(), self.individuals.values.copy()
        codes[rows], values[rows] = population.codes[best], population.values[best]
        losses, slopes, intercepts = (
            own.copy() for own in (self.scores.losses, self.scores.slopes, self.scores.intercepts)
        )
        losses[rows], slopes[rows], intercepts[rows] = (
            scores.losses[best], scores.slopes[best], scores.intercepts[best],
        )  # fmt: skip
        individuals = Population(codes, values, self.individuals.sizes, self.individuals.primitives)
        return Archive(individuals, Scores(losses, slopes, intercepts))

    def front(self, enough: float = 0.0) -> tuple[Population, Scores]:
        """The individuals that no smaller one equals or betters, in ascending size and strictly descending loss.

        Parameters
        ----------
        enough : float
            The front ends with the smallest individual of at most this loss: below it, losses are noise.

        Returns
        -------
        Population, Scores
            Empty when no individual had a finite loss.
        """
        losses = self.scores.losses
        smaller = np.concatenate(([np.inf], np.minimum.accumulate(losses)[:-1]))
        on_front = np.flatnonzero((losses < smaller) & ~(smaller <= enough))
        scores = Scores(losses[on_front], self.scores.slopes[on_front], self.scores.intercepts[on_front])
        return self.individuals.take(on_front), scores
