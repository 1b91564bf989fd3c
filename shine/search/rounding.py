"""The loss that rounding alone can cause."""

from __future__ import annotations

import numpy as np

from shine.data.dataset import Dataset, stable_sum
from shine.fitness.losses import loss_of


def rounding_loss(dataset: Dataset, loss: str, dtype: str = "float64") -> float:
    """Loss that rounding alone can cause."""
    total = np.array(rounding_error(dataset, loss, dtype))
    least = float(loss_of(loss).of_sum(total, dataset.weight, dataset.target_square or 1.0))
    return max(least, float(np.finfo(np.float64).tiny))


def rounding_error(dataset: Dataset, loss: str, dtype: str = "float64") -> float:
    """Sum of errors that rounding alone can cause."""
    size = 8 * np.finfo(dtype).eps * np.abs(dataset.target)
    errors = loss_of(loss).kind.of_residuals(size)
    return max(float(stable_sum(dataset.row_weights * errors)), float(np.finfo(np.float64).tiny))
