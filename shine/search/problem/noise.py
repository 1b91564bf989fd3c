"""Models of the noise, by which its deviation depends on the row, and an estimate of it without any formula.

Least squares gives every row the weight that its noise deserves only if the noise is the same everywhere. A target that
spans decades mostly has noise in proportion to its values; then squared errors see the largest rows only. The weights
1/sigma^2 mend that for every stage of the search (Aitken 1936).

The part of a loss that no formula of the features can explain shows in replicates: rows that are equal in all features
differ by noise alone. Without replicates, a row is compared with what its neighbours let expect (Gasser, Sroka and
Jennen-Steinmetz 1986, in several features). Where the law bends between neighbours, that adds to the noise.

The choice of the formula does not use the estimate; it ends the seeding, and tells how long to search. Description
lengths estimate the noise from the errors that each formula leaves, replicates included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import Regression, log
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.inference.inference import FEWEST, of_replicates
from shine.evaluate.losses.form import SQUARED, Loss, loss_of
from shine.lang.forms.names import value_text

Noise = Literal["auto", "absolute", "relative", "log", "counts"]

LEAST_SHARE = 1e-2
"""Values below this share of the lower quartile have the noise of that share: a few readings near zero, where an
oscillation happens to vanish, must not outweigh all others. If the target has both signs, the share is that of its root
mean square."""

LEAST_COUNT = 1.0
"""Counts below this have its variance: a count of 0 does not say that the expected number is 0."""


def check_noise(noise: str) -> None:
    """Raise a `ValueError` if there is no such model."""
    if noise not in get_args(Noise):
        raise ValueError(
            f"unknown noise {value_text(noise)}; use one of {', '.join(get_args(Noise))}, or sigma for each row"
        )


def with_model(dataset: Dataset, noise: str, loss: str | Loss = "mse") -> Dataset:
    """Other rows of the same data, with the weights of a model of the noise.

    Parameters
    ----------
    dataset : Dataset
    noise : str
        The name that `shine.search.problem.noise_choice.with_noise` returned.
    loss : str or Loss
    """
    if noise == "sigma" and dataset.deviations is not None:
        return _weighted(dataset.without_deviations, dataset.deviations, loss)
    return dataset if noise not in SIZES else _weighted(dataset, SIZES[noise](dataset.target), loss)


def _weighted(dataset: Dataset, deviations: Floats, loss: str | Loss) -> Dataset:
    """The data set with weights of noise: 1/sigma^2 for squared errors, 1/sigma for absolute ones."""
    squared = loss_of(loss).kind == SQUARED
    return dataset.with_deviations(deviations if squared else np.sqrt(deviations))


def with_expected_noise(dataset: Dataset, noise: str, predictions: Floats, loss: str | Loss = "mse") -> Dataset:
    """The data set with the noise that a good formula implies.

    Deviations that follow the readings favour readings that are too small. Those that follow a formula do not. With
    noise of logarithms, the target becomes the working response of their least squares, which is free of their bias.

    Parameters
    ----------
    dataset : Dataset
    noise : str
        The name that `shine.search.problem.noise_choice.with_noise` returned.
    predictions : ndarray of shape (n_rows,)
        Of a formula that describes the target well.
    loss : str or Loss
    """
    if noise == "counts":
        counts = _expected_counts(dataset.target, predictions)
        return _weighted(dataset.without_deviations, count_deviations(counts), loss)
    if noise not in SIZES or not follows_formula(dataset, noise, predictions):
        return dataset
    expected, target = _expected(dataset.target, predictions, noise)
    return replace(_weighted(dataset.without_deviations, sizes(expected), loss), target=target)


def block_with_expected_noise(
    block: Dataset, noise: str, predictions: Floats | None, least: float, loss: str | Loss
) -> Dataset:
    """Some of the rows of `with_expected_noise`, where the others are not at hand.

    Parameters
    ----------
    block : Dataset
        Its sample weights have a factor that all blocks share, and so do its new weights.
    noise : {"relative", "log", "counts"}
    predictions : ndarray of shape (n_rows,), optional
        Without them, the noise follows the readings.
    least : float
        Size of values that are much smaller than most (see `least_size`).
    loss : str or Loss
    """
    target = block.target
    if noise == "counts":
        expected = target if predictions is None else _expected_counts(target, predictions)
        deviations = count_deviations(expected)
    elif predictions is None:
        deviations = np.maximum(np.abs(target), least)
    else:
        expected, target = _expected(target, predictions, noise)
        deviations = np.maximum(np.abs(expected), least)
    if loss_of(loss).kind != SQUARED:
        deviations = np.sqrt(deviations)
    return replace(block, target=target, weights=block.sample_weights / deviations**2, deviations=deviations)


def follows_formula(dataset: Dataset, noise: str, predictions: Floats) -> bool:
    """Whether `with_expected_noise` changes the noise of some rows."""
    if noise == "counts":
        return True
    with np.errstate(all="ignore"):
        ratios = dataset.target / predictions
    return one_sign(dataset.target) and bool((np.isfinite(ratios) & (ratios > 0)).all())


def _expected_counts(target: Floats, predictions: Floats) -> Floats:
    # A formula of counts may be 0 or below where it is wrong.
    return np.where(np.isfinite(predictions), np.maximum(predictions, LEAST_COUNT), target)


def _expected(target: Floats, predictions: Floats, noise: str) -> tuple[Floats, Floats]:
    """Expected values of some rows under a formula, and the target of their fit."""
    ratios = target / predictions
    # A formula that is off by more than this says little about the noise of a row.
    near = np.where(np.isfinite(ratios) & (ratios > 0), np.clip(ratios, 1 / 3, 3.0), 1.0)
    expected = target / near
    return expected, expected * (1 + log(near)) if noise == "log" else target


def sizes(target: Floats) -> Floats:
    """Absolute values of the target, without those that are much smaller than most (see `LEAST_SHARE`)."""
    return np.maximum(np.abs(target), least_size(target))


def least_size(target: Floats) -> float:
    """The size of values of the target that are much smaller than most."""
    absolute = np.abs(target)
    if one_sign(target):
        return LEAST_SHARE * float(np.sort(absolute)[len(absolute) // 4])
    scale = float(absolute.max())
    mean = scale * math.sqrt(float(stable_sum((absolute / scale) ** 2)) / len(target)) if scale > 0 else 1.0
    return LEAST_SHARE * mean


def count_deviations(target: Floats) -> Floats:
    """Standard deviations of counts, whose variance is their expected number (Poisson 1837), up to a factor."""
    return np.sqrt(np.maximum(target, LEAST_COUNT))


SIZES: dict[str, Callable[[Floats], Floats]] = {"relative": sizes, "log": sizes, "counts": count_deviations}
"""Standard deviations that the values of the target or of a formula imply, by the model of the noise."""

FOLLOWING_THE_FORMULA = tuple(SIZES)
"""Models whose deviations follow the best formula at last."""


def one_sign(target: Floats) -> bool:
    """Whether all values are positive, or all are negative."""
    return bool((target > 0).all() or (target < 0).all())


ROWS, CENTRES = 2000, 300
"""Most rows that are looked at, and those among them that are compared with their neighbours."""

FREEDOM_OF_A_CENTRE = 18 / 35
"""Degrees of freedom that each of many overlapping comparisons is worth, by the variance of the estimate of Gasser,
Sroka and Jennen-Steinmetz."""

MOST_BENDING = 0.25
"""Largest share of the estimate that a bent law may have. What it adds grows with the fourth power of the distance, so
twice as many neighbours, which are farther away, show it; in many dimensions, where they are hardly farther, little."""

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
    """The estimate for a data set with the weights of a model; None if its rows do not tell."""
    rows = dataset.sampled(ROWS, np.random.default_rng(0))
    loss, freedom, _ = of_replicates(rows)
    if freedom >= FEWEST:
        low, high = (loss * freedom / _quantile(freedom, side) for side in (NORMAL, -NORMAL))
        return NoiseEstimate(model, "replicates", loss, low, high)
    loss, freedom, *_ = _of_neighbours(rows)
    if freedom >= FEWEST and math.isfinite(loss):
        return NoiseEstimate(model, "neighbours", loss, 0.0, loss * freedom / _quantile(freedom, -NORMAL))
    return None


def resolved_noise(dataset: Dataset) -> float:
    """The share of the target's variance that noise leaves, where the rows are dense enough to tell it; otherwise 0."""
    rows = dataset.sampled(ROWS, np.random.default_rng(0))
    variance = rows.target_square / rows.weight
    loss, freedom, _ = of_replicates(rows)
    if freedom < FEWEST:
        loss, freedom, tails, near = _of_neighbours(rows)
        farther, _, _, far = _of_neighbours(rows, 2)
        # Largest fourth moment of the differences, in squares of their second one, that passes for noise. Normal values
        # have 3; what a law leaves is concentrated where it bends.
        if not (tails <= 4.0 and farther - loss <= MOST_BENDING * loss * min(far / near - 1, 1.0)):
            return 0.0
    return loss / variance if freedom >= FEWEST and 0 < loss < variance < math.inf else 0.0


def _quantile(freedom: float, deviations: float) -> float:
    """Quantile of the chi-squared distribution, by standard deviations of the normal one (Wilson and Hilferty 1931)."""
    part = 2 / (9 * freedom)
    root = 1 - part + deviations * math.sqrt(part)
    return freedom * root * root * root


@lru_cache(maxsize=2)
def _of_neighbours(rows: Dataset, times: int = 1) -> tuple[float, float, float, float]:
    """Mean weighted square of the differences from a plane through the nearest rows, and its degrees of freedom.

    The third figure is the fourth moment of the differences in squares of the second one, the last one the mean fourth
    power of the distances. `times` as many neighbours are farther away.
    """
    count, nothing = 2 * times * (len(rows.columns) + 1), (math.inf, 0.0, math.inf, math.inf)
    if rows.n_rows <= count:
        return nothing
    means = [float(stable_sum(column)) / rows.n_rows for column in rows.columns]
    spread = [np.sqrt(stable_sum((column - mean) ** 2)) for column, mean in zip(rows.columns, means, strict=True)]
    varying = [column / scale for column, scale in zip(rows.columns, spread, strict=True) if scale > 0]
    if not varying:
        return nothing
    # Most products in the fits of planes: among many columns, fewer rows are compared with their neighbours.
    compared = min(CENTRES, int(2e7 / (count * (len(varying) + 1) ** 2)))
    if compared * FREEDOM_OF_A_CENTRE < FEWEST:
        return nothing
    centres = np.sort(np.random.default_rng(0).permutation(rows.n_rows)[:compared])
    near = nearest(varying, centres, count)
    away = [column[near] - column[centres, None] for column in varying]
    distance = float(stable_sum((sum(each**2 for each in away) ** 2).ravel())) / near.size
    plane = Regression.of(np.stack([np.ones(near.shape), *away], axis=1))
    expected, variances = plane.coefficients(rows.target[near])[:, 0], plane.variances[:, 0]
    with np.errstate(all="ignore"):
        squares = (rows.target[centres] - expected) ** 2 / (1 + variances)
    weights = rows.row_weights[centres] * np.isfinite(squares)
    total = float(stable_sum(weights))
    squares = np.where(weights > 0, weights * squares, 0.0)
    sum_of_squares, number = float(stable_sum(squares)), np.count_nonzero(weights)
    loss = sum_of_squares / total if total > 0 else math.inf
    # Squares of shares: those of the squares themselves may overflow.
    tails = number * float(stable_sum((squares / sum_of_squares) ** 2)) if sum_of_squares > 0 else math.inf
    return loss, FREEDOM_OF_A_CENTRE * number, tails, distance


def nearest(columns: list[Floats], centres: Indices, count: int) -> Indices:
    """The nearest other rows of some rows, shape (n_centres, count)."""
    distances = np.zeros((len(centres), len(columns[0])))
    for column in columns:
        distances += (column[centres, None] - column) ** 2
    distances[np.arange(len(centres)), centres] = np.inf
    return smallest(distances, count)


def smallest(values: Floats, count: int) -> Indices:
    """Places of the smallest values of each row, shape (n, count), in order; of equal values the first ones."""
    # Sorting indices takes several times as long as sorting numbers.
    largest = np.sort(values, axis=1)[:, count - 1]
    rows, near = np.nonzero(values <= largest[:, None])
    order = np.lexsort((values[rows, near], rows))
    first = np.searchsorted(rows, np.arange(len(values)))
    found: Indices = near[order[first[:, None] + np.arange(count)]]
    return found
