"""The two classes of a search for odds: how many rows each has, and the targets that they become."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shine.data.dataset import Dataset
from shine.typing import Floats

_DOUBT = 0.1
"""Rows of each class that count as being of the other: Platt has 1, which keeps good formulas from being certain."""


@dataclass(frozen=True)
class Classes:
    """How many rows are of a class, and how many are not; with weights, what they count as.

    Parameters
    ----------
    rows, others : float
        Both positive.
    """

    rows: float
    others: float

    @classmethod
    def of(cls, dataset: Dataset) -> Classes:
        """Those of a target of 1 and 0."""
        count, share = dataset.effective_rows, dataset.target_mean
        return cls(count * share, count * (1 - share))

    @property
    def targets(self) -> tuple[float, float]:
        """What becomes of 1 and of 0: the shares expected of so many rows, with a few doubtful ones of both."""
        rows, others = self.rows + 2 * _DOUBT, self.others + 2 * _DOUBT
        return (self.rows + _DOUBT) / rows, _DOUBT / others

    def smoothed(self, target: Floats) -> Floats:
        """The target with 1 and 0 drawn towards each other."""
        high, low = self.targets
        return np.where(target > 0.5, high, low)

    def enough(self, share: float) -> float:
        """Loss that keeps a share of what the constant loses beyond what a perfect formula does."""
        high, low = self.targets
        count = self.rows + self.others
        least = (self.rows * entropy(high) + self.others * entropy(low)) / count
        constant = entropy((self.rows * high + self.others * low) / count)
        return least + share * (constant - least)


def entropy(share: float) -> float:
    """Log-loss, in nats, of predicting the share of a class for each row."""
    return -sum(part * math.log(part) for part in (share, 1 - share) if part > 0)
