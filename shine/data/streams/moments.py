"""Sums over weighted rows that arrive block by block."""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import MOST_SEEN, stable_sum


class Moments:
    """Mean and squared deviations of a target (Chan, Golub and LeVeque 1983); the order of the blocks counts."""

    def __init__(self) -> None:
        self.rows, self.weight, self.mean, self.square = 0, 0.0, 0.0, 0.0
        self._squares, self._repeats = 0.0, True

    @np.errstate(all="ignore")  # squares may overflow: the spread is infinite then
    def add(self, target: Floats, weights: Floats) -> None:
        """Add some rows.

        Parameters
        ----------
        target, weights : ndarray of shape (n_rows,)
        """
        self.rows += len(target)
        own = float(stable_sum(weights)) if len(weights) else 0.0
        if not own > 0:
            return
        self._squares += float(stable_sum(weights * weights))
        self._repeats = self._repeats and bool((weights == np.floor(weights)).all() and weights.max() < MOST_SEEN)
        mean = float(stable_sum(weights * target)) / own
        shift, before = mean - self.mean, self.weight
        self.weight += own
        self.mean += shift * own / self.weight
        self.square += float(stable_sum(weights * (target - mean) ** 2)) + shift * shift * before * own / self.weight

    @property
    def effective_rows(self) -> float:
        """As that of a `Dataset`."""
        return self.weight if self._repeats else self.weight**2 / self._squares
