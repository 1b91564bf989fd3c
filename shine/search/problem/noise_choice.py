"""The model of the noise that the data speak for.

A short seeding finds formulas, and each of them gives the probability of the target under each model, with deviations
that follow from the formula's values. Deviations that follow from the readings would favour the model of relative
noise: a reading that is near zero by chance would pass for a precise one. What a poor formula leaves is no noise: if
neighbouring rows leave alike errors, it says less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.compiler.arrays import exp, log
from shine.compiler.tapes import constant_counts
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.losses.form import Loss, loss_of
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population
from shine.search.description import DescriptionLength
from shine.search.problem.noise import LEAST_COUNT, count_deviations, least_size, nearest, one_sign, with_model
from shine.search.problem.preparation import seeding_task
from shine.search.problem.reference_losses import rounding_loss
from shine.search.seeding import SeedingSettings, find_guesses
from shine.search.seeding.effort import Effort

WIDE = 5.0
"""Ratio of the largest to the smallest target from which the noise is examined: in narrower targets, relative and
absolute noise look alike, and users expect squared errors."""

DECADES = 100.0
"""Ratio from which relative noise need only be the better model. In narrower targets it has to be much better, as users
expect squared errors: by `MARGIN` nats, or e times."""

MARGIN = 1.0

LARGEST = 0.3
"""Relative noise of targets within `DECADES` from which it is doubtful: readings that are far off give their rows
weights that are far off. Over decades, even weights are farther off."""

NATS_OF_DOUBT = 10.0
"""Nats by which noise has to be likelier if its formula leaves so much, or alike errors."""

EXACT = 1e-20
"""Share of the variance below which squared errors are rounding."""

WIDE_COUNTS = 10.0
"""Ratio of the largest to the smallest count from which their noise is examined (see `WIDE`)."""

PROBED_MEMBERS, PROBED_ROWS = 600, 100
"""Expressions and rows of the short seeding whose finds decide between the models."""

PROBING = 0.05
"""Most of the seconds of the search that this seeding may take, as a share."""

PROBING_WORK, HURRIED_WORK = 13_000, 5_000
"""Most work of this seeding; and if there are no generations, or no seeding besides. The searches of squares, products
and sums of two need so much."""


def with_noise(
    dataset: Dataset,
    noise: str,
    loss: str | Loss,
    primitives: PrimitiveSet,
    rng: np.random.Generator,
    threads: int,
    effort: Effort,
) -> tuple[Dataset, str]:
    """The data set with the weights of a model of the noise, and the name of the model.

    Parameters
    ----------
    dataset : Dataset
        If it has standard deviations already, they stay.
    noise : {"auto", "absolute", "relative", "log", "counts"}
        With "auto", the model is chosen by evidence if the target has one sign and is wide (see `WIDE`), or has whole
        numbers from 0 (see `WIDE_COUNTS`); otherwise the noise is absolute.
    loss : str or Loss
    primitives : PrimitiveSet
        For formulas that the models are compared with.
    rng : numpy.random.Generator
    threads : int
    effort : Effort
        What the short seeding may spend.

    Raises
    ------
    DataError
        If the noise is that of logarithms and the target has zeros or both signs, or that of counts and the target has
        negative values.
    """
    if dataset.deviations is not None:
        return with_model(dataset, "sigma", loss), "sigma"
    if noise == "log" and not one_sign(dataset.target):
        raise DataError(
            "noise='log' needs a target without zeros and of one sign; use noise='relative', or leave such rows out"
        )
    if noise == "counts" and (dataset.target < 0).any():
        raise DataError("noise='counts' needs a target without negative values; use noise='relative' or 'absolute'")
    if noise == "auto":
        noise = _likeliest(dataset, partial(_guesses, primitives, threads, rng, effort), rng, threads)
    return with_model(dataset, noise, loss), noise


def _spans(dataset: Dataset, ratio: float) -> bool:
    target = np.abs(dataset.target[dataset.row_weights > 0])
    return one_sign(dataset.target) and bool(target.max() >= ratio * target.min())


def possible_models(dataset: Dataset) -> list[str]:
    """Models that the values of the target suggest, besides absolute noise."""
    target, found = dataset.target[dataset.row_weights > 0], []
    if _spans(dataset, WIDE):
        found.append("relative")
    whole = bool((target >= 0).all() and (target == np.floor(target)).all())
    if whole and target.max() >= WIDE_COUNTS * max(float(target.min()), LEAST_COUNT):
        found.append("counts")
    return found


def _likeliest(
    dataset: Dataset, guesses_for: Callable[[Dataset], Population], rng: np.random.Generator, threads: int
) -> str:
    """The model that explains the target best.

    If squared errors are down to rounding, only relative errors can tell formulas apart.
    """
    possible = possible_models(dataset)
    if not possible:
        return "absolute"
    rows = dataset.sampled(PROBED_ROWS, rng)
    guesses = guesses_for(with_model(rows, possible[0]))
    least = float(MachineEvaluator(rows, "mse", True, "float64", threads).score(guesses).losses.min(initial=np.inf))
    if least <= EXACT * rows.target_square / rows.weight:
        return "relative" if "relative" in possible else "absolute"
    return likeliest(dataset, [_best(guesses, rows, name, threads) for name in ("absolute", *possible)])


@dataclass(frozen=True)
class Explained:
    """A target as the best formula under a model of the noise explains it.

    Parameters
    ----------
    noise : str
    length : float
        Nats of the description, in units that models share.
    share : float
        Root of the mean squared error, in units of the deviations that the formula's values imply.
    alike : bool
        Whether neighbouring rows have errors so alike that they are those of the formula.
    """

    noise: str
    length: float
    share: float
    alike: bool

    @classmethod
    def of(cls, noise: str, length: float, rows: Dataset, values: Floats) -> Self:
        """By the values of the best formula at the rows."""
        errors = (rows.target - values) / deviations(values, rows, noise)
        share = math.sqrt(float(stable_sum(rows.row_weights / rows.weight * errors**2)))
        if noise == "counts" and share > 0:
            # Their deviation is known: no scale has to be estimated, unless they scatter more.
            known = (share**2 - 1) / 2 - float(log(np.array(share)))
            length += min(rows.effective_rows * known - float(log(np.array(rows.effective_rows))) / 2, 0.0)
        # Share of the deviations from which a formula with errors alike is poor. Below, it is near the target
        # everywhere, and its weights help to find a better one.
        return cls(noise, length, share, noise != "absolute" and share > 0.1 and _alike(errors, rows))


def likeliest(dataset: Dataset, found: Sequence[Explained]) -> str:
    """The model with the shortest description; one whose formula may leave misfit has to be likelier.

    Parameters
    ----------
    dataset : Dataset
    found : sequence of Explained
        Absolute noise among them.
    """
    decades, lengths = _spans(dataset, DECADES), {}
    for each in found:
        # Whole numbers that scatter less or more than so many times the root of the expected number are not counts of
        # events, but scores, codes or rounded measurements
        if each.noise == "counts" and not 0.3 <= each.share <= 2.0:
            continue
        large = each.noise == "relative" and each.share > LARGEST and not decades
        margin = 0.0 if each.noise == "absolute" or decades else MARGIN
        lengths[each.noise] = each.length + (NATS_OF_DOUBT if large or each.alike else margin)
    return min(lengths, key=lambda name: lengths[name])


def _alike(errors: Floats, rows: Dataset) -> bool:
    """Whether the errors of nearest rows correlate."""
    spreads = [np.sqrt(stable_sum((column - stable_sum(column) / rows.n_rows) ** 2)) for column in rows.columns]
    columns = [column / spread for column, spread in zip(rows.columns, spreads, strict=True) if 0 < spread < np.inf]
    if not columns or not np.isfinite(errors).all():
        return False
    near = nearest(columns, np.arange(rows.n_rows), 1)[:, 0]
    correlation = float(stable_sum(errors * errors[near])) / float(stable_sum(errors**2) or 1.0)
    # Standard errors of the correlation between the errors of neighbouring rows from which they are those of the
    # formula: too large for chance.
    return correlation * math.sqrt(rows.n_rows) >= 3.0


def _guesses(
    primitives: PrimitiveSet, threads: int, rng: np.random.Generator, effort: Effort, rows: Dataset
) -> Population:
    task = seeding_task(rows, primitives, threads, settings=SeedingSettings(members=PROBED_MEMBERS))
    found = find_guesses(task, rng, effort)
    if found.interrupted:
        raise KeyboardInterrupt
    return found.candidates


def _best(guesses: Population, rows: Dataset, noise: str, threads: int) -> Explained:
    """The target as the guess with the shortest description explains it."""
    weighted = with_model(rows, noise)
    evaluator = MachineEvaluator(weighted, "mse", True, "float64", threads)
    scores, predictions = evaluator.score(guesses).every, evaluator.predict(guesses)
    # A constant is determined as well as the weights let it, not as it would be with even ones.
    worst = shared_unit(weighted) * weighted.target_square / weighted.weight
    power = loss_of("mse").log_likelihood
    description = DescriptionLength.with_unknown_noise(rows.effective_rows, power, worst)
    shares, own = rows.row_weights / rows.weight, constant_counts(guesses)
    lengths, values = [np.full(1, np.inf)], [np.zeros((1, rows.n_rows))]
    with np.errstate(all="ignore"):
        for slopes, intercepts in zip(scores.slopes, scores.intercepts, strict=True):
            values.append(slopes[:, None] * predictions + intercepts[:, None])
            sizes = deviations(values[-1], rows, noise)
            errors = stable_sum(shares * ((rows.target - values[-1]) / sizes) ** 2)
            # The geometric mean of the deviations is the volume that a density of the target has to spread over.
            volumes = exp(2 * stable_sum(shares * log(sizes)))
            # Relative errors that are rounding.
            least = rounding_loss(rows, "mse") if noise == "absolute" else (2.0**-50) ** 2 * volumes
            line = (slopes != 1).astype(np.int64) + (intercepts != 0)
            losses = np.maximum(errors * volumes, least)
            lengths.append(description.lengths(losses, guesses.sizes + 2 * line, own + line))
    every = np.concatenate(lengths)
    best = int(np.argmin(every))
    with np.errstate(all="ignore"):
        length = float(every[best]) + rows.effective_rows * power * float(log(np.array(worst)))
        return Explained.of(noise, length, rows, np.concatenate(values)[best])


def shared_unit(rows: Dataset) -> float:
    """Factor of a mean squared error with weights of noise, for units that models of the noise share."""
    if rows.deviations is None:
        return 1.0
    given = rows.sample_weights
    return float(exp(2 * stable_sum(given / stable_sum(given) * log(rows.deviations))))


def deviations(values: Floats, rows: Dataset, noise: str) -> Floats:
    """Standard deviations that the values of formulas imply, up to a factor."""
    if noise == "absolute":
        return np.ones(values.shape)
    return count_deviations(values) if noise == "counts" else np.maximum(np.abs(values), least_size(rows.target))
