"""Models of the noise: how its standard deviation depends on the row.

Least squares gives every row the weight that its noise deserves only if the noise is the same everywhere. A target that
spans decades mostly has noise in proportion to its values; then squared errors see the largest rows only. The weights
1/sigma^2 mend that for every stage of the search (Aitken 1936).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from shine.arrays import log
from shine.data.dataset import Dataset, stable_sum
from shine.errors import DataError
from shine.evaluators.machine_tier import MachineEvaluator
from shine.fitness.losses import SQUARED, loss_of
from shine.gp.complexity import constant_counts
from shine.gp.description import DescriptionLength
from shine.gp.seeding import SeedingSettings, find_guesses
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.search.yardsticks import rounding_loss
from shine.typing import Floats

Noise = Literal["auto", "absolute", "relative", "log", "counts"]

WIDE = 5.0
"""Ratio of the largest to the smallest target from which the noise is examined: in narrower targets, relative and
absolute noise look alike, and users expect squared errors."""

DECADES = 100.0
"""Ratio from which relative noise need only be the better model. In narrower targets it has to be much better, as users
expect squared errors: by `MARGIN` nats, or odds of 7 to 1. And it must be small, at most `LARGEST`: readings that are
far off give their rows weights that are far off."""

MARGIN, LARGEST = 2.0, 0.3

LEAST_SHARE = 1e-2
"""Values below this share of the lower quartile have the noise of that share: a few readings near zero, where an
oscillation happens to vanish, must not outweigh all others. If the target has both signs, the share is that of its root
mean square."""

EXACT = 1e-20
"""Share of the variance below which squared errors are rounding."""

LEAST_COUNT = 1.0
"""Counts below this have its variance: a count of 0 does not say that the expected number is 0."""

WIDE_COUNTS = 10.0
"""Ratio of the largest to the smallest count from which their noise is examined (see `WIDE`)."""

LARGEST_OF_COUNTS = 2.0
"""Whole numbers that scatter more than this many times the root of the expected number are not counts of events, but
scores or rounded measurements."""

PROBED_MEMBERS, PROBED_ROWS = 600, 100
"""Expressions and rows of the short seeding whose finds decide between the models."""

PROBING = 0.05
"""Most of the seconds that this seeding may take, as a share."""


def check_noise(noise: str) -> None:
    """Raise a `ValueError` if there is no such model."""
    if noise not in get_args(Noise):
        raise ValueError(f"unknown noise {noise!r}; use one of {', '.join(get_args(Noise))}, or sigma for each row")


def resumed_noise(before: str, given: str) -> str:
    """The model that a resumed search goes on with: that of its state, or the given one if the state has none."""
    return before if before in ("absolute", *SIZES) else given


def with_noise(
    dataset: Dataset,
    noise: str,
    primitives: PrimitiveSet,
    rng: np.random.Generator,
    threads: int,
    seconds: float | None,
    loss: str = "mse",
) -> tuple[Dataset, str]:
    """The data set with the weights of a model of the noise, and the name of the model.

    Parameters
    ----------
    dataset : Dataset
        If it has standard deviations already, they stay.
    noise : {"auto", "absolute", "relative", "log", "counts"}
        With "auto", the model is chosen by evidence if the target has one sign and is wide (see `WIDE`), or has whole
        numbers from 0 (see `WIDE_COUNTS`); otherwise the noise is absolute.
    primitives : PrimitiveSet
        For formulas that the models are compared with.
    rng : numpy.random.Generator
    threads : int
    seconds : float, optional
        Time of the whole search; None for no limit.
    loss : str

    Raises
    ------
    DataError
        If the noise is that of logarithms and the target has zeros or both signs, or that of counts and the target has
        negative values.
    """
    if dataset.deviations is not None:
        return _weighted(dataset.without_deviations, dataset.deviations, loss), "sigma"
    if noise == "log" and not _one_sign(dataset.target):
        raise DataError(
            "noise='log' needs a target without zeros and of one sign; use noise='relative', or leave such rows out"
        )
    if noise == "counts" and (dataset.target < 0).any():
        raise DataError("noise='counts' needs a target without negative values; use noise='relative' or 'absolute'")
    if noise == "auto":
        deadline = math.inf if seconds is None else time.monotonic() + PROBING * seconds
        possible = _possible(dataset)
        noise = _likeliest(dataset, possible, primitives, rng, threads, deadline) if possible else "absolute"
    return with_model(dataset, noise, loss), noise


def with_model(dataset: Dataset, noise: str, loss: str = "mse") -> Dataset:
    """Other rows of the same data, with the weights of a model of the noise.

    Parameters
    ----------
    dataset : Dataset
    noise : str
        The name that `with_noise` returned.
    loss : str
    """
    if noise == "sigma" and dataset.deviations is not None:
        return _weighted(dataset.without_deviations, dataset.deviations, loss)
    return dataset if noise not in SIZES else _weighted(dataset, SIZES[noise](dataset.target), loss)


def _weighted(dataset: Dataset, deviations: Floats, loss: str) -> Dataset:
    """The data set with weights of noise: 1/sigma^2 for squared errors, 1/sigma for absolute ones."""
    squared = loss_of(loss).kind is SQUARED
    return dataset.with_deviations(deviations if squared else np.sqrt(deviations))


def with_expected_noise(dataset: Dataset, noise: str, predictions: Floats, loss: str = "mse") -> Dataset:
    """The data set with the noise that a good formula implies.

    Deviations that follow the readings favour readings that are too small. Those that follow a formula do not. With
    noise of logarithms, the target becomes the working response of their least squares, which is free of their bias.

    Parameters
    ----------
    dataset : Dataset
    noise : str
        The name that `with_noise` returned.
    predictions : ndarray of shape (n_rows,)
        Of a formula that describes the target well.
    loss : str
    """
    if noise == "counts":
        # A formula of counts may be 0 or below where it is wrong.
        expected = np.where(np.isfinite(predictions), np.maximum(predictions, LEAST_COUNT), dataset.target)
        return _weighted(dataset.without_deviations, count_deviations(expected), loss)
    if noise not in SIZES or not _one_sign(dataset.target):
        return dataset
    ratios = dataset.target / predictions
    if not (np.isfinite(ratios).all() and (ratios > 0).all()):
        return dataset
    # A formula that is off by more than this says little about the noise of a row.
    near = np.clip(ratios, 1 / 3, 3.0)
    expected = dataset.target / near
    again = _weighted(dataset.without_deviations, sizes(expected), loss)
    return again if noise == "relative" else replace(again, target=expected * (1 + log(near)))


def sizes(target: Floats) -> Floats:
    """Absolute values of the target, without those that are much smaller than most (see `LEAST_SHARE`)."""
    absolute = np.abs(target)
    if _one_sign(target):
        return np.maximum(absolute, LEAST_SHARE * np.sort(absolute)[len(absolute) // 4])
    scale = float(absolute.max())
    mean = scale * math.sqrt(float(stable_sum((absolute / scale) ** 2)) / len(target)) if scale > 0 else 1.0
    return np.maximum(absolute, LEAST_SHARE * mean)


def count_deviations(target: Floats) -> Floats:
    """Standard deviations of counts, whose variance is their expected number (Poisson 1837), up to a factor."""
    return np.sqrt(np.maximum(target, LEAST_COUNT))


SIZES: dict[str, Callable[[Floats], Floats]] = {"relative": sizes, "log": sizes, "counts": count_deviations}
"""Standard deviations that the values of the target or of a formula imply, by the model of the noise."""

FOLLOWING_THE_FORMULA = tuple(SIZES)
"""Models whose deviations follow the best formula at last."""


def _one_sign(target: Floats) -> bool:
    return bool((target > 0).all() or (target < 0).all())


def _spans(dataset: Dataset, ratio: float) -> bool:
    target = np.abs(dataset.target[dataset.row_weights > 0])
    return _one_sign(dataset.target) and bool(target.max() >= ratio * target.min())


def _possible(dataset: Dataset) -> list[str]:
    """Models that the values of the target suggest, besides absolute noise."""
    target, found = dataset.target[dataset.row_weights > 0], []
    if _spans(dataset, WIDE):
        found.append("relative")
    whole = bool((target >= 0).all() and (target == np.floor(target)).all())
    if whole and target.max() >= WIDE_COUNTS * max(float(target.min()), LEAST_COUNT):
        found.append("counts")
    return found


def _likeliest(
    dataset: Dataset,
    possible: Sequence[str],
    primitives: PrimitiveSet,
    rng: np.random.Generator,
    threads: int,
    deadline: float,
) -> str:
    """The model that explains the target best, with formulas that a short seeding finds.

    If squared errors are down to rounding, only relative errors can tell formulas apart.
    """
    absolute = dataset.sampled(PROBED_ROWS, rng)
    models = {name: with_model(absolute, name) for name in possible}
    weighted = models[possible[0]]
    found = find_guesses(
        weighted.columns,
        weighted.target,
        weighted.weights,
        primitives,
        MachineEvaluator(weighted, "mse", False, "float64", threads).predict,
        rng,
        settings=SeedingSettings(members=PROBED_MEMBERS),
        clock=time.monotonic,
        deadline=deadline,
    )
    if found.interrupted:
        raise KeyboardInterrupt
    guesses = found.candidates
    least, length, _ = _best(guesses, absolute, threads)
    if least <= EXACT * absolute.target_square / absolute.weight:
        return "relative" if "relative" in models else "absolute"
    lengths = {"absolute": length}
    for name, rows in models.items():
        _, length, loss = _best(guesses, rows, threads)
        decades = _spans(dataset, DECADES)
        if _size(loss, rows, name) <= (LARGEST_OF_COUNTS if name == "counts" else math.inf if decades else LARGEST):
            lengths[name] = length + (0.0 if decades else MARGIN)
    return min(lengths, key=lambda name: lengths[name])


def _size(loss: float, rows: Dataset, noise: str) -> float:
    """Standard deviation that a loss stands for, as a share of that of the model."""
    deviations = rows.deviations
    assert deviations is not None
    return math.sqrt(loss) * float((deviations / SIZES[noise](rows.target))[0])


def _best(guesses: Population, rows: Dataset, threads: int) -> tuple[float, float, float]:
    """The least loss of the guesses, the nats of the shortest description that one of them gives, and its loss."""
    scores = MachineEvaluator(rows, "mse", True, "float64", threads).score(guesses)
    description = DescriptionLength.with_unknown_noise(rows.effective_rows, SQUARED.log_likelihood, _worst(rows))
    own, least = constant_counts(guesses), rounding_loss(rows, "mse")
    lengths, losses = [np.full(1, np.inf)], [np.full(1, np.inf)]
    for form in scores.forms:
        line = (form.slopes != 1).astype(np.int64) + (form.intercepts != 0)
        losses.append(np.maximum(form.losses, least))
        lengths.append(description.lengths(losses[-1], guesses.sizes + 2 * line, own + line))
    every, best = np.concatenate(losses), int(np.argmin(np.concatenate(lengths)))
    return float(scores.losses.min(initial=np.inf)), float(np.concatenate(lengths)[best]), float(every[best])


def _worst(rows: Dataset) -> float:
    """The loss that those of different models of the noise are compared with, in the unit of this model's losses.

    It is the target's variance, divided by the squared geometric mean of the deviations: the volume that a density of
    the target has to spread over.
    """
    plain = rows.without_deviations
    volume = 0.0 if rows.deviations is None else 2 * float(stable_sum(log(rows.deviations))) / rows.n_rows
    return plain.target_square / plain.weight / math.exp(volume)
