"""What losses are compared with: rounding, the best constant, the loss that is good enough, and nats."""

from __future__ import annotations

import numpy as np

from shine.data.dataset import Dataset, stable_sum
from shine.fitness.losses import loss_of
from shine.gp.description import DescriptionLength


def rounding_loss(dataset: Dataset, loss: str, dtype: str = "float64") -> float:
    """Loss that rounding alone can cause."""
    total = np.array(rounding_error(dataset, loss, dtype))
    least = float(loss_of(loss).of_sum(total, dataset.weight, dataset.target_square or 1.0))
    return max(least, float(np.finfo(np.float64).tiny))


def rounding_error(dataset: Dataset, loss: str, dtype: str = "float64") -> float:
    """Sum of errors that rounding alone can cause."""
    size = 8 * np.finfo(dtype).eps * np.abs(dataset.target)
    errors = loss_of(loss).kind.errors(size, np.zeros_like(size))
    return max(float(stable_sum(dataset.row_weights * errors)), float(np.finfo(np.float64).tiny))


def constant_loss(dataset: Dataset, loss: str) -> float:
    """Loss of the target's mean."""
    square = dataset.target_square
    of_loss = loss_of(loss)
    total = square
    if not of_loss.kind.follows_from_moments:
        errors = of_loss.kind.errors(np.full(dataset.n_rows, dataset.target_mean), dataset.target)
        total = float(stable_sum(dataset.row_weights * errors))
    return float(of_loss.of_sum(np.array(total), dataset.weight, square)) if square > 0 else 0.0


def good_enough(dataset: Dataset, loss: str, share: float, dtype: str) -> float:
    """The loss that is good enough: a share of the constant's, and never below rounding."""
    return max(share * constant_loss(dataset, loss), rounding_loss(dataset, loss, dtype))


def description_length(rows: Dataset, loss: str) -> DescriptionLength:
    """The length of the rows' description by formulas with given losses."""
    worst, power = constant_loss(rows, loss), loss_of(loss).log_likelihood
    return DescriptionLength.with_unknown_noise(rows.effective_rows, power, worst if worst > 0 else 1.0)
