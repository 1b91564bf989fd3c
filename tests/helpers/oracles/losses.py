"""Losses by their textbook definitions, in two passes of NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def expected_loss(p: Floats, y: Floats, w: Floats, loss: str) -> float:
    """The loss of predictions p for targets y with weights w, with a mean in the way each loss is usually written."""
    residual = y - p
    mean = np.average(y, weights=w)
    return {
        "mse": lambda: np.average(residual**2, weights=w),
        "rmse": lambda: np.sqrt(np.average(residual**2, weights=w)),
        "mae": lambda: np.average(np.abs(residual), weights=w),
        "nmse": lambda: np.average(residual**2, weights=w) / np.average((y - mean) ** 2, weights=w),
        "r2": lambda: np.sum(w * residual**2) / np.sum(w * (y - mean) ** 2),
    }[loss]()
