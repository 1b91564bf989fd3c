"""Scoring a population without evaluating an individual twice, in slices that watch the clock."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shine.fitness import PopulationEvaluator
from shine.gp.archive import Archive
from shine.gp.hashing import Memory, hashes
from shine.lang.population import Population

FIRST_SLICE = 128
"""Individuals evaluated before anything is known of an evaluator's speed."""

SECONDS_BETWEEN_CHECKS = 0.2


class OutOfTime(Exception):
    """The deadline passed; what was evaluated before it is in the archive."""


class Scorer:
    """An evaluator with a memory, an archive and a deadline.

    Parameters
    ----------
    evaluator : PopulationEvaluator
        Scores each individual regardless of the others it comes with.
    archive : Archive
        Sees every individual that is evaluated; the attribute always holds a complete one, whatever interrupts.
    clock : callable
    deadline : float
        On that clock.
    """

    def __init__(
        self, evaluator: PopulationEvaluator, archive: Archive, clock: Callable[[], float], deadline: float
    ) -> None:
        self.evaluations = 0
        self.archive = archive
        self._evaluator, self._clock, self._deadline = evaluator, clock, deadline
        self._memory = Memory()
        self._slice = FIRST_SLICE

    def losses(self, population: Population) -> NDArray[np.float64]:
        """Loss of each individual.

        Raises
        ------
        OutOfTime
            If the deadline passed before all of them were known.
        """
        keys, first, inverse = np.unique(hashes(population), return_index=True, return_inverse=True)
        known, scores = self._memory.recall(keys)
        unknown = np.flatnonzero(~known)
        while len(unknown):
            now, unknown = unknown[: self._slice], unknown[self._slice :]
            scores.losses[now] = self._evaluate(keys[now], population.take(first[now]))
        if self._clock() >= self._deadline:
            raise OutOfTime
        losses: NDArray[np.float64] = scores.losses[inverse]
        return losses

    def _evaluate(self, keys: NDArray[np.uint64], individuals: Population) -> NDArray[np.float64]:
        began = self._clock()
        if began >= self._deadline:
            raise OutOfTime
        scores = self._evaluator.score(individuals)
        self._memory.store(keys, scores)
        self.archive = self.archive.updated(individuals, scores)
        self.evaluations += len(individuals)
        elapsed = self._clock() - began
        self._slice = max(1, int(len(individuals) * min(SECONDS_BETWEEN_CHECKS / max(elapsed, 1e-9), 1e6)))
        return scores.losses
