"""An estimate of the noise without any formula: from rows that are repeated, or else from neighbouring rows.

The part of a loss that no formula of the features can explain shows in replicates: rows that are equal in all features
differ by noise alone. Without replicates, a row is compared with what its neighbours let expect (Gasser, Sroka and
Jennen-Steinmetz 1986, in several features). Where the law bends between neighbours, that adds to the noise.

The choice of the formula does not use the estimate. Description lengths estimate the noise from the errors that each
formula leaves, replicates included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import Regression
from shine.data.datasets.dataset import Dataset, stable_sum

FEWEST = 5
"""Degrees of freedom below which an estimate says nothing: its interval would span a factor of six."""

ROWS, CENTRES = 2000, 300
"""Most rows that are looked at, and those among them that are compared with their neighbours."""

WORK = 2e7
"""Most products in the fits of planes: among many columns, fewer rows are compared with their neighbours."""

FREEDOM_OF_A_CENTRE = 18 / 35
"""Degrees of freedom that each of many overlapping comparisons is worth, by the variance of the estimate of Gasser,
Sroka and Jennen-Steinmetz."""

NORMAL = 1.96
"""Standard deviations of an interval that holds the truth in 95 of 100 cases."""


@dataclass(frozen=True)
class NoiseEstimate:
    """The loss that noise alone leaves, in the unit and with the weights of the mean squared error.

    Parameters
    ----------
    model : str
        Model of the noise that the search used: absolute, relative, log, counts or sigma.
    source : {"replicates", "neighbours"}
    loss : float
        The estimate; its root is the standard deviation of a row of mean weight.
    low, high : float
        An interval that holds the truth in 95 of 100 cases. From neighbours, `low` is 0: the estimate is one from
        above.
    """

    model: str
    source: Literal["replicates", "neighbours"]
    loss: float
    low: float
    high: float


def estimated_noise(dataset: Dataset, model: str) -> NoiseEstimate | None:
    """The estimate for a data set with the weights of a model; None if its rows do not tell.

    Parameters
    ----------
    dataset : Dataset
    model : str
    """
    rows = dataset.sampled(ROWS, np.random.default_rng(0))
    loss, freedom = _of_replicates(rows)
    if freedom >= FEWEST:
        low, high = (loss * freedom / _quantile(freedom, side) for side in (NORMAL, -NORMAL))
        return NoiseEstimate(model, "replicates", loss, low, high)
    loss, freedom = _of_neighbours(rows)
    if freedom >= FEWEST and math.isfinite(loss):
        return NoiseEstimate(model, "neighbours", loss, 0.0, loss * freedom / _quantile(freedom, -NORMAL))
    return None


def _quantile(freedom: float, deviations: float) -> float:
    """Quantile of the chi-squared distribution, by standard deviations of the normal one (Wilson and Hilferty 1931)."""
    part = 2 / (9 * freedom)
    root = 1 - part + deviations * math.sqrt(part)
    return freedom * root * root * root


def _of_replicates(rows: Dataset) -> tuple[float, float]:
    """Mean weighted square of the deviations of equal rows from their mean, and its degrees of freedom."""
    # Whole sample weights are numbers of equal rows.
    given = rows.sample_weights
    counts = given if (given == np.floor(given)).all() else np.ones(rows.n_rows)
    precisions = rows.row_weights / np.where(given > 0, given, 1.0)
    numbers = np.unique(rows.columns.T, axis=0, return_inverse=True)[1].reshape(-1)
    seen = np.bincount(numbers, weights=counts)
    means = np.bincount(numbers, weights=counts * rows.target) / np.where(seen > 0, seen, 1.0)
    squares = counts * precisions * (rows.target - means[numbers]) ** 2
    # Each group loses one of its rows to its mean.
    free = counts * precisions * (1 - 1 / np.maximum(seen, 1.0))[numbers]
    freedom = float(stable_sum(np.maximum(seen - 1, 0.0)))
    weight = float(stable_sum(free))
    mean_precision = rows.weight / float(stable_sum(given))
    return (float(stable_sum(squares)) / weight * mean_precision if weight > 0 else math.inf), freedom


def _of_neighbours(rows: Dataset) -> tuple[float, float]:
    """Mean weighted square of the differences from a plane through the nearest rows, and its degrees of freedom."""
    count = 2 * (len(rows.columns) + 1)
    if rows.n_rows <= count:
        return math.inf, 0.0
    means = [float(stable_sum(column)) / rows.n_rows for column in rows.columns]
    spread = [np.sqrt(stable_sum((column - mean) ** 2)) for column, mean in zip(rows.columns, means, strict=True)]
    varying = [column / scale for column, scale in zip(rows.columns, spread, strict=True) if scale > 0]
    if not varying:
        return math.inf, 0.0
    compared = min(CENTRES, int(WORK / (count * (len(varying) + 1) ** 2)))
    if compared * FREEDOM_OF_A_CENTRE < FEWEST:
        return math.inf, 0.0
    centres = np.sort(np.random.default_rng(0).permutation(rows.n_rows)[:compared])
    near = _nearest(varying, centres, count)
    columns = np.stack([np.ones(near.shape), *(column[near] - column[centres, None] for column in varying)], axis=1)
    plane = Regression.of(columns)
    expected, variances = plane.coefficients(rows.target[near])[:, 0], plane.variances[:, 0]
    with np.errstate(all="ignore"):
        squares = (rows.target[centres] - expected) ** 2 / (1 + variances)
    weights = rows.row_weights[centres] * np.isfinite(squares)
    total = float(stable_sum(weights))
    loss = float(stable_sum(np.where(weights > 0, weights * squares, 0.0))) / total if total > 0 else math.inf
    return loss, FREEDOM_OF_A_CENTRE * np.count_nonzero(weights)


def _nearest(columns: list[Floats], centres: Indices, count: int) -> Indices:
    """The nearest other rows of some rows, shape (n_centres, count)."""
    distances = np.zeros((len(centres), len(columns[0])))
    for column in columns:
        distances += (column[centres, None] - column) ** 2
    distances[np.arange(len(centres)), centres] = np.inf
    return np.argsort(distances, axis=1, kind="stable")[:, :count]
