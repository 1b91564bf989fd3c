"""Validation rows, kept back from the search, and the choice of the formula by them.

The formulas of a front were selected on the rows that they were learned from. Their errors there say little about fresh
rows if rows depend on one another (of one patient, of one day), or if the future differs from the past. The user knows;
then whole groups or the last rows are kept back, and their errors choose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import log
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.losses.form import Loss
from shine.evaluate.losses.rows import loss_rows
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.tiers.monotonic import Monotonicity
from shine.lang.forms.names import value_text
from shine.lang.forms.primitives import PrimitiveSet
from shine.search.constraints.constraints import Constraints
from shine.search.evolution.evolution import Outcome
from shine.search.finishing.polishing import population_of
from shine.search.models.certainty import CONVINCING, Choice
from shine.search.models.model import Model
from shine.search.problem.reference_losses import errors_of, good_enough

Validation = Literal["random", "groups", "time"]

UNITS = {"random": "rows with different features", "groups": "groups", "time": "rows"}
"""Units of rows that are kept back."""


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Validation rows, and the method of choosing them."""

    rows: Dataset
    validation: str


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to search in, and rows that are kept back.

    Parameters
    ----------
    dataset : Dataset
        All rows.
    validation : str
        How rows are kept back; empty if they are not.
    hidden : ndarray of shape (n_rows,), bool
        Whether a row is kept back.
    """

    dataset: Dataset
    validation: str
    hidden: Mask

    @classmethod
    def of(cls, dataset: Dataset, validation: str | None, fraction: float, seed: int) -> Self:
        """The split that the settings ask for (see `kept_back`)."""
        return cls(dataset, validation_of(dataset, validation), kept_back(dataset, validation, fraction, seed))

    @property
    def learned(self) -> Dataset:
        """The rows that the search sees."""
        return self.dataset.take(np.flatnonzero(~self.hidden)) if self.validation else self.dataset

    @property
    def kept(self) -> Dataset:
        """The rows that it does not see."""
        return self.dataset.take(np.flatnonzero(self.hidden))


def check_validation(validation: str | None, fraction: float) -> None:
    """Raise a `ValueError` if there is no such way of keeping rows back, or the fraction is not one of the rows."""
    if validation is not None and validation not in get_args(Validation):
        raise ValueError(
            f"unknown validation {value_text(validation)}; use None or one of {', '.join(get_args(Validation))}"
        )
    if isinstance(fraction, bool) or not 0 < fraction < 1:
        raise ValueError(f"validation_fraction must be above 0 and below 1, is {value_text(fraction)}")


def validation_of(dataset: Dataset, validation: str | None) -> str:
    """Method of choosing validation rows; empty if there are none."""
    return validation or ("groups" if dataset.groups is not None else "")


def kept_back(dataset: Dataset, validation: str | None, fraction: float, seed: int) -> Mask:
    """Whether each row is kept back from the search.

    Parameters
    ----------
    dataset : Dataset
    validation : {"random", "groups", "time"}, optional
        Rows at random (those with equal features together), whole groups, or the last rows. Without it, whole groups if
        the data set has groups, and otherwise none.
    fraction : float
        Least share of the rows to keep back.
    seed : int
        Of the search.

    Raises
    ------
    ValueError
        If `check_validation` raises it.
    DataError
        If groups are needed and missing or given and not used, or too few rows or groups are left to search in.
    """
    check_validation(validation, fraction)
    # Number of the random generator that draws the rows, beside that of the search.
    method, rng = validation_of(dataset, validation), np.random.default_rng((seed, 2))
    if not method:
        return np.zeros(dataset.n_rows, np.bool_)
    if method == "groups" and dataset.groups is None:
        raise DataError("validation='groups' needs groups: the label of each row's group; give them, or use 'random'")
    if method != "groups" and dataset.groups is not None:
        raise DataError(f"validation={method!r} does not use the groups; use validation='groups', or leave them out")
    if method == "time":
        kept = np.zeros(dataset.n_rows, np.bool_)
        order = np.arange(dataset.n_rows) if dataset.times is None else np.argsort(dataset.times, kind="stable")
        kept[order[dataset.n_rows - _least(fraction, dataset.n_rows) :]] = True
    else:
        kept = _complete_groups(_alike(dataset) if dataset.groups is None else dataset.groups, fraction, rng)
    weights = dataset.row_weights
    if not (weights[kept] > 0).any() or not (weights[~kept] > 0).any():
        count = "" if dataset.groups is None else f" ({len(np.unique(dataset.groups))})"
        raise DataError(
            f"validation={method!r} needs {UNITS[method]} of positive weight to search in, and others to keep back; "
            f"there are too few{count}"
        )
    return kept


def _least(fraction: float, count: int) -> int:
    return math.ceil(fraction * count)


def _complete_groups(groups: Indices, fraction: float, rng: np.random.Generator) -> Mask:
    """Groups in a random order, until they have the share of the rows; all but one at most."""
    sizes = np.bincount(groups)
    order = rng.permutation(len(sizes))
    enough = int(np.searchsorted(np.cumsum(sizes[order]), _least(fraction, len(groups)))) + 1
    taken = np.zeros(len(sizes), np.bool_)
    taken[order[: min(enough, len(sizes) - 1)]] = True
    kept: Mask = taken[groups]
    return kept


def _alike(dataset: Dataset) -> Indices:
    """Number of each row's features: replicates of a row that the search saw would only show the noise."""
    # Rows up to which those with equal features are kept back together: comparing more of them takes seconds.
    if dataset.n_rows > 100_000:
        return np.arange(dataset.n_rows)
    numbers: Indices = np.unique(dataset.columns.T, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers


KEPT_BACK = {
    "random": "that the search did not see",
    "groups": "of groups that the search did not see",
    "time": "after those that the search saw",
}
"""The rows kept back, in words, by the way of keeping them back."""


def chosen_by(
    front: Sequence[Model],
    lengths: Floats,
    kept: KeptRows,
    loss: Loss,
    share: float,
    primitives: PrimitiveSet,
    threads: int,
) -> Choice | None:
    """The formula with the shortest description, of those whose errors on rows that were kept back are the least.

    Parameters
    ----------
    front : sequence of Model
        Rising complexity.
    lengths : ndarray of shape (n_formulas,)
        Nats of the description of the rows that the search saw.
    kept : KeptRows
        With the weights of their noise.
    loss : Loss
    share : float
        Share of the constant's loss that is good enough (see `shine.search.problem.reference_losses.good_enough`).
    primitives : PrimitiveSet
    threads : int

    Returns
    -------
    Choice or None
        None if no formula is defined on the rows.
    """
    # The loss that is the mean of the errors; others have other units, such as the variance of the rows.
    mean = Loss(loss.kind.name, loss.kind)
    # Most rows kept back that are looked at: more would not change the choice.
    rows = kept.rows.sampled(100_000, np.random.default_rng(0))
    population = population_of([model.tree for model in front], primitives)
    predictions = MachineEvaluator(rows, "mse", False, "float64", threads).predict(population)
    with np.errstate(all="ignore"):
        errors = errors_of(rows, mean, predictions) / loss_rows(rows, mean.kind).weight
    barred = np.isposinf(lengths)
    errors[barred & ~barred.all()] = np.inf
    units = rows.groups if kept.validation == "groups" else None
    enough = good_enough(rows, mean, share, "float64")
    index = least_error(errors, units, lengths, enough, loss.kind.log_likelihood)
    count = f"{kept.rows.n_rows} row{'s' * (kept.rows.n_rows != 1)}"
    reason = f"the shortest description of those with the least error on {count} {KEPT_BACK[kept.validation]}"
    return None if index is None else Choice(index, f"{reason}, to within its standard error; then fitted to all rows")


def least_error(
    errors: Floats, units: Indices | None, lengths: Floats, enough: float, likelihood: float | None = None
) -> int | None:
    """Position of the shortest description, of those whose error does not exceed the least by its standard error.

    The few rows that are kept back tell many formulas apart badly; the least error alone may be chance (Breiman et al.
    1984, whose rule takes the simplest instead of the shortest description). Formulas of nearly the same values differ
    by little, but in every row, and so by more than the standard error; then the rows must speak for the better one
    by `CONVINCING` nats.

    Parameters
    ----------
    errors : ndarray of shape (n_formulas, n_rows)
        Weighted errors, which add up to the mean error of each formula.
    units : ndarray of shape (n_rows,), int64, optional
        Number of the group of each row; rows of a group are not independent.
    lengths : ndarray of shape (n_formulas,)
    likelihood : float, optional
        Factor of an error in the negative log-likelihood of a row; None if the scale of the errors is estimated.
    enough : float
        Mean error below which two formulas are equally right: then the simplest is chosen.
    """
    means = stable_sum(errors)
    means = np.where(np.isfinite(means), means, np.inf)
    if not np.isfinite(means).any():
        return None
    best = int(np.argmin(means))
    if means[best] <= enough:
        return int(np.argmax(means <= enough))
    with np.errstate(all="ignore"):
        behind = errors - errors[best]
        if units is not None:
            numbers = np.unique(units, return_inverse=True)[1].reshape(-1)
            behind = np.stack([np.bincount(numbers, weights=each) for each in behind])
        count = behind.shape[-1]
        mean = stable_sum(behind) / count
        deviation = np.sqrt(count / max(count - 1, 1) * stable_sum((behind - mean[:, None]) ** 2))
        rows = errors.shape[-1]
        nats = rows / 2 * log(means / means[best]) if likelihood is None else rows * likelihood * (means - means[best])
        near = (means - means[best] <= deviation) | (nats < CONVINCING)
    near[best] = True
    candidates = np.flatnonzero(near & np.isfinite(means))
    return int(candidates[np.argmin(lengths[candidates])])


def to_refit(outcome: Outcome, front: Sequence[Model]) -> Outcome:
    """The formulas of a front as the outcome of a search, to be refined on other rows."""
    trees = [model.tree for model in front if model.tree.size > 1]
    population = population_of(trees, outcome.front.primitives)
    ones = np.ones(len(trees))
    # "loss" says that only the front is to be refined.
    return replace(outcome, front=population, scores=Scores(ones, ones, 0 * ones), stopped_by="loss")


def directed(
    front: Sequence[Model], rows: Dataset, constraints: Constraints, primitives: PrimitiveSet, threads: int
) -> tuple[Mask, str]:
    """Formulas that may be chosen (see `choose`), and a word for the reason of the choice.

    One may not that orders a pair of rows wrongly, while another does not. Penalties alone do not do: 100 times the
    loss of a formula that is nearly exact is next to nothing.
    """
    free = np.ones(len(front), np.bool_)
    if not (constraints.monotonic and constraints.penalty):
        return free, ""
    trees = [replace(model.tree, parameters=rows.features) for model in front]
    measure = Monotonicity(rows, constraints.monotonic, threads, np.random.default_rng(0))
    population = population_of(trees, replace(primitives, features=rows.features))
    wrong = measure.wrong_shares(population, np.ones(len(front))) > 0
    if wrong.all():
        return free, "; no formula keeps the monotonicity in all pairs of rows"
    return ~wrong, "; of those that keep the monotonicity" if wrong.any() else ""
