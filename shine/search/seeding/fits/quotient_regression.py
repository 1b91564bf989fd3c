"""The regression of a view on a sum of terms, or on a quotient of two sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Regression, dot

NO_CONSTANT = 1e-12
"""Constant of a divisor, as a share of the divisor's mean, that is rounding. It stands for 0, so that the constant can
be scaled to 1."""


def quotient_of_sums(
    above: Sequence[Floats], below: Sequence[Floats], view: Floats, weights: Floats, with_intercept: bool
) -> Floats | None:
    """Coefficients for which ``(sum of terms + intercept) / (1 + sum of divisors)`` explains a view.

    Parameters
    ----------
    above, below : sequence of ndarray of shape (n_rows,)
        The terms and the divisors.
    view, weights : ndarray of shape (n_rows,)
    with_intercept : bool

    Returns
    -------
    ndarray of shape (n_terms + 1 + n_divisors,), or None
        Coefficients of the terms, the intercept (0 without one), and coefficients of the divisors; None if there is
        no solution in finite numbers.

    Notes
    -----
    With divisors, the linear equation ``view = sum - view * divisors`` is weighted by the inverse of the divisor found
    before, so that in the end the errors of the view are small (Sanathanan and Koerner 1963). Meanwhile the divisors
    are centered: if one is nearly constant, ``view * divisor`` is nearly the view itself and would explain it.
    """
    n, divisor = len(above), np.ones_like(view)
    ones = [np.ones_like(view)] if with_intercept else []
    means = np.array([np.mean(v) for v in below])
    centered = [v - mean for v, mean in zip(below, means, strict=True)]
    design = np.stack([*above, *ones, *(-view * v for v in centered)])
    if not np.isfinite(design).all() or not np.isfinite(view).all():
        return None
    found = np.zeros(n + 1 + len(below))
    # Regressions of a quotient, each weighted by the divisor found before: more hardly change it.
    for _ in range(4 if below else 1):
        root = np.sqrt(weights) / np.abs(divisor)
        regression = Regression.of(design * root)
        if not np.isfinite(root).all() or not regression.kept.any():
            return None
        solution = regression.coefficients(view * root)
        found[:n], found[n + 1 :] = solution[:n], solution[len(solution) - len(below) :] if below else []
        found[n] = solution[n] if with_intercept else 0.0
        divisor = sum((c * v for c, v in zip(found[n + 1 :], centered, strict=True)), np.ones_like(view))
    rest = 1 - float(dot(found[n + 1 :], means))
    found /= rest if abs(rest) > NO_CONSTANT else NO_CONSTANT
    return found if np.isfinite(found).all() else None


def squared_error(
    coefficients: Floats, above: Sequence[Floats], below: Sequence[Floats], view: Floats, weights: Floats
) -> float:
    """Weighted mean of the squared errors that a quotient of sums makes."""
    n = len(above)
    numerator = sum((c * v for c, v in zip(coefficients[:n], above, strict=True)), np.full_like(view, coefficients[n]))
    denominator = sum((c * v for c, v in zip(coefficients[n + 1 :], below, strict=True)), np.ones_like(view))
    return float((weights * (numerator / denominator - view) ** 2).sum() / weights.sum())


def variance(view: Floats, weights: Floats) -> float:
    """Weighted variance of a view."""
    mean = (weights * view).sum() / weights.sum()
    return float((weights * (view - mean) ** 2).sum() / weights.sum())
