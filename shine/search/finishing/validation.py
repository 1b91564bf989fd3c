"""The choice of the formula by rows that the search never saw.

The formulas of a front were selected on the rows that they were learned from. Their errors there say little about fresh
rows if rows depend on one another (of one patient, of one day), or if the future differs from the past. The user knows;
then whole groups or the last rows are kept back, and their errors choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import log
from shine.data.datasets.dataset import stable_sum
from shine.evaluate.losses.form import Loss
from shine.evaluate.losses.rows import loss_rows
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.primitives import PrimitiveSet
from shine.search.evolution.evolution import Outcome
from shine.search.finishing.kept_rows import KeptRows
from shine.search.finishing.polishing import population_of
from shine.search.models.choice import CONVINCING, Choice
from shine.search.models.model import Model
from shine.search.problem.reference_losses import errors_of, good_enough

JUDGED_ROWS = 100_000
"""Most rows kept back that are looked at: more would not change the choice."""

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
    rows = kept.rows.sampled(JUDGED_ROWS, np.random.default_rng(0))
    population = population_of([model.tree for model in front], primitives)
    predictions = MachineEvaluator(rows, "mse", False, "float64", threads).predict(population)
    with np.errstate(all="ignore"):
        errors = errors_of(rows, mean, predictions) / loss_rows(rows, mean.kind).weight
    units = rows.groups if kept.way == "groups" else None
    enough = good_enough(rows, mean, share, "float64")
    index = least_error(errors, units, lengths, enough, loss.kind.log_likelihood)
    count = f"{kept.rows.n_rows} row{'s' * (kept.rows.n_rows != 1)}"
    reason = f"the shortest description of those with the least error on {count} {KEPT_BACK[kept.way]}"
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


def counterpart(front: Sequence[Model], model: Model) -> int:
    """Position of the formula that a model has become: the last that is not more complex."""
    return max((at for at, other in enumerate(front) if other.complexity <= model.complexity), default=0)
