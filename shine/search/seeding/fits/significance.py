"""Significant terms of a regression."""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats, Mask
from shine.compiler.arrays import Regression, dot

ROUNDING = 1e-28
"""Residual variance, as a share of the mean square, that rounding alone can cause."""


def significant(regression: Regression, values: Floats, standard_errors: float) -> Mask:
    """Whether each coefficient is this many standard errors away from zero.

    Parameters
    ----------
    regression : Regression
    values : ndarray of shape (n_rows,)
        What it explains.
    standard_errors : float

    Returns
    -------
    ndarray of shape (n_columns,), bool
    """
    rest = regression.rest(values)
    # The squares of very large values overflow: then nothing is significant.
    with np.errstate(over="ignore", invalid="ignore"):
        residual_variance = float(dot(rest, rest)) / max(len(values) - len(regression.scale), 1)
        noise = max(residual_variance, ROUNDING * float(dot(values, values)) / len(values))
        errors = np.sqrt(noise * regression.variances)
        found: Mask = np.abs(regression.coefficients(values)) > standard_errors * errors
    return found
