"""Rows of values, and plain least squares on them: the reference for the array code of the searches."""

import numpy as np

from shine.search.seeding.fits.correlations import Normalized

_RNG = np.random.default_rng(0)
VALUES = _RNG.standard_normal((30, 50)) + np.arange(30)[:, None]
WEIGHTS = _RNG.uniform(0.1, 1, 50)
WEIGHTS /= WEIGHTS.sum()


def unexplained_by_least_squares(columns, target):
    """Share of the weighted variance that the best sum of columns and a constant leaves unexplained."""
    root = np.sqrt(WEIGHTS)
    design = np.column_stack([np.ones(len(target)), *columns]) * root[:, None]
    residual = target * root - design @ np.linalg.lstsq(design, target * root, rcond=None)[0]
    centered = (target - target @ WEIGHTS) * root
    return residual @ residual / (centered @ centered)


def units(values):
    """Rows of values as the searches compare them."""
    return Normalized.of(values, WEIGHTS).units
