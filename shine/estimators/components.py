"""The components of a transformer: their correlations, and the residual of a target that they leave."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shine.arrays import dot
from shine.arrays.regression import Regression
from shine.typing import Floats


class Components:
    """Values of some formulas on weighted rows, and the residual of a target that they leave.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Not negative; at least one is positive.
    """

    def __init__(self, weights: Floats) -> None:
        self._roots = np.sqrt(weights / weights.sum())
        self._columns: list[Floats] = []

    def add(self, values: Floats) -> None:
        """Add the values of another formula, shape (n_rows,)."""
        self._columns.append(self._standardized(values))

    def residual(self, target: Floats) -> Floats:
        """Residual of a linear model of the formulas for a target; the target itself without formulas."""
        if not self._columns:
            return target
        rest = Regression.of(np.stack([self._roots, *self._columns])).rest(target * self._roots)
        return np.divide(rest, self._roots, out=np.zeros_like(target), where=self._roots > 0)

    def deviation(self, values: Floats) -> float:
        """Weighted standard deviation."""
        return _length(self._centred(values))

    def first_new(self, candidates: Iterable[tuple[int, Floats]], most: float) -> int | None:
        """The first position whose values vary and correlate with each formula by at most `most`; None if none does."""
        for position, values in candidates:
            column = self._standardized(values)
            if column.any() and all(abs(dot(column, other)) <= most for other in self._columns):
                return position
        return None

    def _centred(self, values: Floats) -> Floats:
        mean = float(dot(self._roots**2, values))
        return (values - mean) * self._roots

    def _standardized(self, values: Floats) -> Floats:
        """Values with mean 0 and norm 1, times the roots of the weights; zeros if they do not vary."""
        with np.errstate(all="ignore"):
            centred = self._centred(values)
            norm = _length(centred)
        largest = float(np.abs(values).max(initial=0.0))
        return centred / norm if np.isfinite(norm) and norm > 1e-12 * largest else np.zeros_like(values)


def _length(vector: Floats) -> float:
    """Root of the sum of squares; the sum itself may overflow or underflow."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(dot(vector / largest, vector / largest)))
