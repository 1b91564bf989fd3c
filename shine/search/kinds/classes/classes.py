"""The two classes of a search for odds: their numbers of rows, and their targets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset

_DOUBT = 0.1
"""Rows of each class that count as rows of the other. Platt uses 1, but then good formulas cannot be certain."""


@dataclass(frozen=True)
class Classes:
    """Number of rows in a class, and of the other rows; the effective numbers if they have weights.

    Parameters
    ----------
    rows, others : float
        Both positive.
    """

    rows: float
    others: float

    @classmethod
    def of(cls, dataset: Dataset) -> Classes:
        """The classes of a target of 1 and 0."""
        count, share = dataset.effective_rows, dataset.target_mean
        return cls(count * share, count * (1 - share))

    @property
    def targets(self) -> tuple[float, float]:
        """The smoothed targets for 1 and for 0: the expected shares if a few rows of each class are doubtful."""
        rows, others = self.rows + 2 * _DOUBT, self.others + 2 * _DOUBT
        return (self.rows + _DOUBT) / rows, _DOUBT / others

    def smoothed(self, target: Floats) -> Floats:
        """The target with 1 and 0 drawn towards each other."""
        high, low = self.targets
        return np.where(target > 0.5, high, low)

    def enough(self, share: float) -> float:
        """The loss of a perfect formula, plus a share of the best constant's excess over it."""
        high, low = self.targets
        count = self.rows + self.others
        least = (self.rows * entropy(high) + self.others * entropy(low)) / count
        constant = entropy((self.rows * high + self.others * low) / count)
        return least + share * (constant - least)


def entropy(share: float) -> float:
    """Mean log-loss, in nats, of predicting the share of a class for every row."""
    return -sum(part * math.log(part) for part in (share, 1 - share) if part > 0)
