"""Losses to compare with: of rounding, of the best constant, the one that is good enough; and nats."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import apply, log
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.losses.form import Loss, loss_of
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.search.description import DescriptionLength

GOLDEN = (math.sqrt(5) - 1) / 2
"""Share of an interval that a step of the golden section keeps (Kiefer 1953)."""

STEPS = 50
"""Steps of the search for the best constant: they leave less than 1e-10 of the interval."""

GRID = 33
"""Constants that the search for the best one begins with: quantiles of the target, and log-odds."""

CERTAIN = 8.0
"""Log-odds of the most certain constant that the search begins with."""


def rounding_loss(dataset: Dataset, loss: str | Loss, dtype: str = "float64") -> float:
    """Loss that rounding alone can cause."""
    total = np.array(rounding_error(dataset, loss, dtype))
    weight = loss_rows(dataset, loss_of(loss).kind).weight
    least = float(loss_of(loss).of_sum(total, weight, dataset.target_square or 1.0))
    return max(least, float(np.finfo(np.float64).tiny))


def rounding_error(dataset: Dataset, loss: str | Loss, dtype: str = "float64") -> float:
    """Sum of errors that rounding alone can cause."""
    size = 8 * np.finfo(dtype).eps * np.abs(dataset.target)
    least, kind = float(np.finfo(np.float64).tiny), loss_of(loss).kind
    if kind.degree is not None:
        errors = kind.errors(size, np.zeros_like(size), loss_columns_of(dataset, kind))
        return max(float(stable_sum(dataset.row_weights * errors)), least)
    if kind.log_likelihood is not None:
        # In nats, rounding is nothing beside the noise.
        weight = loss_rows(dataset, kind).weight
        return max(float(np.finfo(dtype).eps) * weight, least)
    near = errors_of(dataset, loss_of(loss), dataset.target + size) - errors_of(dataset, loss_of(loss), dataset.target)
    near = np.where(np.isfinite(near) & (near > 0), near, 0.0)
    return max(float(stable_sum(near)), least)


def errors_of(dataset: Dataset, loss: Loss, predictions: Floats) -> Floats:
    """Weighted errors of each row, with the same bits on every processor.

    Parameters
    ----------
    dataset : Dataset
    loss : Loss
    predictions : ndarray of shape (..., n_rows)
    """
    kind = loss.kind
    weights = loss_rows(dataset, kind).row_weights
    with np.errstate(all="ignore"):
        return weights * apply(kind.function, predictions, dataset.target, *loss_columns_of(dataset, kind))


def best_constant(dataset: Dataset, loss: Loss) -> float:
    """The constant with the least loss; the target's mean for squared errors."""
    if loss.kind.follows_from_moments:
        return dataset.target_mean
    rows = dataset.sampled(10_000, np.random.default_rng(0))  # most rows that the best constant is looked for on

    def total(values: list[float]) -> Floats:
        found = stable_sum(errors_of(rows, loss, np.repeat(values, rows.n_rows).reshape(len(values), -1)))
        return np.where(np.isfinite(found), found, np.inf)

    ordered = np.sort(rows.target)[np.linspace(0, rows.n_rows - 1, GRID).astype(int)]
    grid = np.unique([*ordered.tolist(), rows.target_mean, *np.linspace(-CERTAIN, CERTAIN, GRID).tolist()]).tolist()
    losses = total(grid)
    at = int(np.argmin(losses))
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    for _ in range(STEPS):
        inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
        first, second = total(inner).tolist()
        low, high = (low, inner[1]) if first <= second else (inner[0], high)
    found = [grid[at], (low + high) / 2]
    return float(found[int(np.argmin(total(found)))])


def constant_loss(dataset: Dataset, loss: str | Loss) -> float:
    """Loss of the best constant; of the target's mean for squared and absolute errors."""
    square = dataset.target_square
    of_loss = loss_of(loss)
    if of_loss.kind.follows_from_moments:
        return float(of_loss.of_sum(np.array(square), dataset.weight, square)) if square > 0 else 0.0
    if of_loss.kind.degree is None or of_loss.kind.columns:
        weight = loss_rows(dataset, of_loss.kind).weight
        best = errors_of(dataset, of_loss, np.full(dataset.n_rows, best_constant(dataset, of_loss)))
        return float(of_loss.of_sum(stable_sum(best), weight, square))
    errors = of_loss.kind.errors(np.full(dataset.n_rows, dataset.target_mean), dataset.target)
    total = float(stable_sum(dataset.row_weights * errors))
    return float(of_loss.of_sum(np.array(total), dataset.weight, square)) if square > 0 else 0.0


def good_enough(dataset: Dataset, loss: str | Loss, share: float, dtype: str) -> float:
    """The loss that is good enough: a share of the constant's, and never below rounding."""
    return max(share * constant_loss(dataset, loss), rounding_loss(dataset, loss, dtype))


def description_length(rows: Dataset, loss: str | Loss) -> DescriptionLength:
    """The length of the rows' description by formulas with given losses."""
    known = loss_of(loss).kind.log_likelihood
    if known is not None:
        return DescriptionLength.of_likelihood(rows.effective_rows, known)
    worst, power = constant_loss(rows, loss), loss_of(loss).log_likelihood
    return DescriptionLength.with_unknown_noise(rows.effective_rows, power, worst if worst > 0 else 1.0)


@dataclass(frozen=True)
class Evidence:
    """Worth of differences of losses on some rows, in nats.

    Parameters
    ----------
    rows : float
        Effective number.
    power : float
        Factor of the loss's logarithm in the negative log-likelihood of a row.
    known : float, optional
        Factor of the loss itself instead, if the loss is a likelihood.
    floor : float
        Loss that rounding alone can cause.
    """

    rows: float
    power: float
    known: float | None
    floor: float

    @classmethod
    def of(cls, dataset: Dataset, loss: str | Loss) -> Evidence:
        """The evidence of a data set."""
        own = loss_of(loss)
        return cls(dataset.effective_rows, own.log_likelihood, own.kind.log_likelihood, rounding_loss(dataset, own))

    def nats(self, worse: float, better: float) -> float:
        """Log-likelihood by which the second of two losses is better than the first."""
        if self.known is not None:
            return self.rows * self.known * (worse - better)
        return self.rows * self.power * math.log(max(worse, self.floor) / max(better, self.floor))

    def tied(self, losses: Floats, nats: float) -> float:
        """The factor, at most e, up to which a loss is tied with the least of some losses."""
        least = float(losses.min(initial=np.inf))
        return min(self.worsened(least, nats) / least, math.e) if 0 < least < np.inf else math.e

    def worsened(self, loss: float, nats: float) -> float:
        """The loss that is by so many nats worse than a loss."""
        if self.known is not None:
            return loss + nats / (self.rows * self.known)
        return loss * math.exp(nats / (self.rows * self.power))


def nats_of_errors(dataset: Dataset, loss: str | Loss) -> Callable[[Floats, Floats], Floats]:
    """A function of two arrays of sums of errors over the rows: nats by which the first are worse than the second."""
    own, rows = loss_of(loss), dataset.effective_rows
    if own.kind.log_likelihood is None:
        # The scale of the noise is estimated from the errors.
        return lambda worse, better: own.error_log_likelihood * rows * log(worse / better)
    factor = own.kind.log_likelihood * rows / loss_rows(dataset, own.kind).weight
    return lambda worse, better: factor * (worse - better)
