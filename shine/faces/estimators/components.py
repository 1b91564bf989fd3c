"""The components of a transformer: their correlations, and the residual of a target that they leave."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import dot, log
from shine.compiler.arrays.functions import Regression

DEPENDENT = 1e-9
"""Squared length, as a share of its own, that a column must have beyond the others to add anything to them."""

LEAST_FREEDOM = 1e-3
"""Least part of a residual that the row does not determine itself."""

LARGEST_RESIDUAL = 1000
"""Largest exponent of two of residuals: of a few rows they may be much larger than the target."""

ROUNDING = 1e-24
"""Share of squared errors that counts as none left."""


class Components:
    """Values of some formulas on weighted rows, and the residual of a target that they leave.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Not negative; at least one is positive.
    beside : ndarray of shape (n, n_rows), optional
        Columns that stand beside the formulas: the linear model of the residual has them too.
    """

    def __init__(self, weights: Floats, beside: Floats | None = None) -> None:
        self._roots = np.sqrt(weights / weights.sum())
        self._columns: list[Floats] = []
        self._beside = [] if beside is None else [self._standardized(values) for values in beside]

    def add(self, values: Floats) -> None:
        """Add the values of another formula, shape (n_rows,)."""
        self._columns.append(self._standardized(values))

    def residual(self, target: Floats) -> Floats:
        """Residual of a linear model of all columns for a target; the target itself without columns.

        The residual of a target near float64's largest number is smaller by a power of two: it may be larger than that.
        """
        if not self._beside and not self._columns:
            return target
        # An exact power of two keeps sums of large numbers finite, and changes nothing.
        exponent = int(np.frexp(np.abs(target).max())[1])
        rest = self._model.rest(np.ldexp(target, -exponent) * self._roots)
        own = np.divide(rest, self._roots, out=np.zeros_like(target), where=self._roots > 0)
        return np.ldexp(own, min(exponent, LARGEST_RESIDUAL))

    def nats_saved(self, values: Floats, target: Floats, rows: float) -> float:
        """Nats by which another formula shortens the description of a target by a linear model, its own not counted.

        The coefficient is paid for, and each row's error is that of a model fitted to the other rows, so that a formula
        with a few extreme values gains nothing by them. `rows` is their effective number; those
        that the model's coefficients use up say nothing.
        """
        model = self._model
        # An exact power of two keeps squares of large numbers finite, and changes nothing.
        target = np.ldexp(target, -int(np.frexp(np.abs(target).max())[1]))
        rest, own = model.rest(target * self._roots), model.rest(self._standardized(values))
        before, length = float(dot(rest, rest)), float(dot(own, own))
        free = rows - len(self._beside) - len(self._columns) - 2
        if free < 1 or not before > ROUNDING * self.deviation(target) ** 2 or not length > DEPENDENT:
            return 0.0
        unit = own / np.sqrt(length)
        leverages = dot(model.basis.T, model.basis.T) / (rows * self._roots**2)
        errors = [
            _left_out(rest, leverages),
            _left_out(rest - float(dot(unit, rest)) * unit, leverages + unit**2 / (rows * self._roots**2)),
        ]
        shares = log(np.array([max(errors[1], ROUNDING * before) / errors[0], rows]))
        return -0.5 * free * float(shares[0]) - 0.5 * float(shares[1])

    @property
    def _model(self) -> Regression:
        return Regression.of(np.stack([self._roots, *self._beside, *self._columns]))

    def deviation(self, values: Floats) -> float:
        """Weighted standard deviation."""
        size = float(np.abs(values).max(initial=0.0)) or 1.0
        with np.errstate(all="ignore"):
            return size * _length(self._centred(values / size))

    def is_new(self, values: Floats, most: float) -> bool:
        """Whether values vary and correlate with each formula by at most `most`."""
        column = self._standardized(values)
        return bool(column.any()) and all(abs(dot(column, other)) <= most for other in self._columns)

    def first_new(self, candidates: Iterable[tuple[int, Floats]], most: float) -> int | None:
        """The first position whose values vary and correlate with each formula by at most `most`; None if none does."""
        return next((position for position, values in candidates if self.is_new(values, most)), None)

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


def _left_out(rest: Floats, leverages: Floats) -> float:
    """Sum of the squared errors of rows that the model does not see, from residuals and leverages (Allen 1974)."""
    return float(dot(rest, rest / np.maximum(1 - leverages, LEAST_FREEDOM) ** 2))


def _length(vector: Floats) -> float:
    """Root of the sum of squares; the sum itself may overflow or underflow."""
    largest = float(np.abs(vector).max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(dot(vector / largest, vector / largest)))
