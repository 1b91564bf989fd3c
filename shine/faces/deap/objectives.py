"""The values of a fitness: losses, measures of predictions, and functions of the script."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.typing import AnyArray, Floats, Mask
from shine.data.datasets.dataset import Dataset
from shine.evaluate.losses.form import LOSSES
from shine.lang.forms.names import similar

ObjectiveSource = str | Callable[..., Any]
"""An objective as scripts name it."""

ERROR_WITHOUT_VALUE = 1e100
"""Error of a row whose prediction is not finite, and the largest error of a row. DEAP's epsilon-lexicase selection
subtracts errors and would not survive inf - inf; the square of this number, as in a standard deviation, is finite."""


_OF_LOSSES = frozenset({
    "y_true", "y_pred", "y_score", "y_test", "y_hat", "y", "yhat", "true", "pred", "target", "targets", "labels",
    "predicted", "predictions", "prediction", "expected", "actual",
})  # fmt: skip
"""Names of the two arguments of functions that compare predictions with a target, which lack the individual."""

_OF_PREDICTIONS = frozenset({"predictions", "prediction", "preds", "pred", "y_pred", "yhat", "y_hat"})
"""Names of an argument that is the second one, if it is the first."""

_OF_WRONG_ARGUMENTS = (TypeError, ValueError, AttributeError, IndexError)
"""Errors of a function that is called with other arguments than it expects."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Individuals and what was measured of them.

    Parameters
    ----------
    individuals : sequence
    losses : mapping of str to ndarray of shape (n_individuals,)
    predictions : ndarray of shape (n_individuals, n_rows), optional
        Only if an objective needs them.
    dataset : Dataset
    """

    individuals: Sequence[Any]
    losses: Mapping[str, Floats]
    predictions: AnyArray | None
    dataset: Dataset

    def finite(self) -> Mask:
        """Whether each individual has a finite value in every row, as far as it was measured."""
        finite = np.ones(len(self.individuals), dtype=bool)
        for losses in self.losses.values():
            finite &= np.isfinite(losses)
        if self.predictions is not None:
            finite &= np.isfinite(self.predictions).all(axis=1)
        return finite


@dataclass(frozen=True)
class Objective:
    """One or more values of a fitness.

    Parameters
    ----------
    name : str
        In messages.
    source : str or callable
    takes_predictions : bool
        Whether a function of the script wants the predictions after the individual.
    """

    name: str
    source: ObjectiveSource
    takes_predictions: bool = False

    @property
    def known(self) -> str:
        """The name that Shine knows it by; empty for a function, which need not be hashable."""
        return self.source if isinstance(self.source, str) else ""

    @property
    def is_loss(self) -> bool:
        """Whether it is one of Shine's losses."""
        return self.known in LOSSES

    @property
    def is_error(self) -> bool:
        """Whether smaller values are better by its meaning."""
        return self.is_loss or self.known == "errors"

    @property
    def needs_predictions(self) -> bool:
        """Whether predictions of each row are needed."""
        return self.takes_predictions or self.known in MEASURES

    def columns(self, batch: Batch, finite: Mask) -> Floats:
        """Values, shape (n_individuals, n_values); any number where an individual is not finite."""
        if isinstance(self.source, str):
            if self.is_loss:
                return batch.losses[self.source][:, None]
            assert batch.predictions is not None
            return MEASURES[self.source](batch.predictions, batch.dataset)
        if not self.takes_predictions:
            return self._stacked(self._called(individual) for individual in batch.individuals)
        assert batch.predictions is not None
        chosen = np.flatnonzero(finite).tolist()
        # Copies, as a function may write to its argument. Without any finite individual, a perfect one tells how many
        # values there are.
        calls = [(batch.individuals[i], batch.predictions[i].copy()) for i in chosen] or [
            (batch.individuals[0], batch.dataset.target.astype(batch.predictions.dtype))
        ]
        found = self._stacked(self._called(*call) for call in calls)
        values = np.full((len(batch.individuals), found.shape[1]), np.nan)
        if chosen:
            values[chosen] = found
        return values

    def _called(self, *arguments: Any) -> Any:
        assert callable(self.source)
        try:
            return self.source(*arguments)
        except _OF_WRONG_ARGUMENTS as error:
            form = "individual, predictions" if self.takes_predictions else "individual"
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"objective {self.name} is called with ({form}) and raised {type(error).__name__}: {error}"
            ) from error

    def _stacked(self, results: Iterable[Any]) -> Floats:
        """Results of the function, one row each."""
        rows = [np.ravel(np.asarray(result)) for result in results]
        for row in rows:
            if row.dtype.kind not in "buif":
                (value, *_) = row.tolist()
                raise TypeError(
                    f"objective {self.name} returned {value!r} of type {type(value).__name__}; it must return a "
                    "number, or several"
                )
            if len(row) != len(rows[0]) or not len(row):
                raise ValueError(
                    f"objective {self.name} returned {len(rows[0])} values for one individual and {len(row)} for "
                    "another; a fitness has as many for each, and at least one"
                )
        return np.array(rows, dtype=np.float64)


def objectives_of(source: ObjectiveSource | Sequence[ObjectiveSource]) -> tuple[Objective, ...]:
    """Objectives as scripts name them: one, or a sequence.

    Raises
    ------
    ValueError
        If there is none, a name is unknown, or a function needs other arguments than an individual and its predictions.
    TypeError
        If one is neither a name nor a function.
    """
    several = (source,) if isinstance(source, str) or callable(source) else tuple(source)
    if not several:
        raise ValueError("objectives is empty; give at least one, such as 'mse' or len")
    return tuple(map(_objective, several))


def _objective(source: Any) -> Objective:
    if isinstance(source, str):
        known = (*LOSSES, *MEASURES)
        if source not in known:
            near = similar(source, known)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ValueError(f"unknown loss {source!r}{hint}; use one of {', '.join(known)}, or a function such as len")
        return Objective(source, source)
    if not callable(source):
        raise TypeError(f"an objective is the name of a loss or a function of an individual, not {source!r}")
    named = source.func if isinstance(source, functools.partial) else source
    name = getattr(named, "__name__", None) or repr(source)
    return Objective(name, source, _takes_predictions(source, name))


def _takes_predictions(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has a second argument without a default, or one with the name "predictions"."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False  # functions in C such as operator.attrgetter("height")
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = [each for each in positional if each.default is each.empty]
    if len(needed) > 2 or any(each.kind is each.KEYWORD_ONLY and each.default is each.empty for each in parameters):
        raise ValueError(
            f"objective {name} needs the arguments {', '.join(each.name for each in parameters)}; it is called with an "
            "individual, or with an individual and its predictions (give the others by functools.partial or a lambda)"
        )
    takes_both = [each.name for each in needed] if len(needed) == 2 else []
    if takes_both and (_OF_LOSSES.issuperset(takes_both) or takes_both[0] in _OF_PREDICTIONS):
        loss = f"{name}(y, predictions)" if _OF_LOSSES.issuperset(takes_both) else "..."
        raise ValueError(
            f"objective {name} takes ({', '.join(takes_both)}), but is called with (individual, predictions); give "
            f"lambda individual, predictions: {loss}"
        )
    return len(needed) == 2 or any(each.name == "predictions" for each in positional[1:2])


def _errors(predictions: AnyArray, dataset: Dataset) -> Floats:
    """Absolute error of each row."""
    with np.errstate(all="ignore"):
        errors = np.abs(predictions - dataset.target)
    # A comparison with NaN is false.
    return np.where(errors < ERROR_WITHOUT_VALUE, errors, ERROR_WITHOUT_VALUE)


def _accuracy(predictions: AnyArray, dataset: Dataset) -> Floats:
    """Share of the rows, by weight, whose prediction is positive exactly where the target is."""
    right = (predictions > 0) == (dataset.target > 0)
    weights = np.ones(len(dataset.target)) if dataset.weights is None else dataset.weights
    return ((right * weights).sum(axis=1) / weights.sum())[:, None]


MEASURES: dict[str, Callable[[AnyArray, Dataset], Floats]] = {"errors": _errors, "accuracy": _accuracy}
"""Measures of predictions by name, each ``(predictions, dataset) -> (n_individuals, n_values)``."""

_ALWAYS_DEFINED = frozenset({"errors"})
"""Measures that are values of their own for individuals that are not finite."""


def values_of(
    objectives: Sequence[Objective],
    batch: Batch,
    weights: Sequence[float] | None,
    failed: Sequence[float] | None = None,
) -> tuple[Floats, Mask]:
    """All values of each individual, in the order of the objectives, and which individuals have none.

    Parameters
    ----------
    objectives : sequence of Objective
    batch : Batch
        At least one individual.
    weights : sequence of float, optional
        Those of the individuals' fitness: positive for a value that is maximized. They count if they are as many as the
        values; a script may measure individuals otherwise than it selects them.
    failed : sequence of float, optional
        The values of an individual that is not finite in some row; one number stands for all values.

    Returns
    -------
    values : ndarray of shape (n_individuals, n_values)
        Without `failed`, an individual that is not finite in some row has the worst of all values, inf, or -inf by a
        positive weight, so that every other one dominates it. Its "errors" are finite.
    without : ndarray of shape (n_individuals,), bool
        Whether each individual is not finite in some row.

    Raises
    ------
    ValueError
        If `failed` has neither one value nor one for each value of the fitness.
    """
    finite = batch.finite()
    parts = [objective.columns(batch, finite) for objective in objectives]
    widths = [part.shape[1] for part in parts]
    values = np.concatenate(parts, axis=1)
    # A function may find no value of a finite individual, too.
    defined = np.repeat([objective.known in _ALWAYS_DEFINED for objective in objectives], widths)
    worst = np.full(values.shape[1], np.inf)
    if weights is not None and len(weights) == len(worst):
        minimized = np.repeat([objective.is_error for objective in objectives], widths)
        worst[~minimized & (np.asarray(weights) > 0)] = -np.inf
    without = ~finite | np.isnan(values[:, ~defined]).any(axis=1)
    replaced = without[:, None] & ~defined
    if failed is not None:
        if len(failed) not in (1, len(worst)):
            raise ValueError(f"failed has {len(failed)} values, and {described(objectives)} has {len(worst)}")
        worst, replaced = np.broadcast_to(np.asarray(failed), worst.shape), without[:, None]
    result: Floats = np.where(replaced, worst, values)
    return result, without


def described(objectives: Sequence[Objective]) -> str:
    """Objectives in a message."""
    names = [objective.name for objective in objectives]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def check_weights(objectives: Sequence[Objective], values: Sequence[float], weights: Sequence[float]) -> None:
    """Check the weights of a fitness against one of its values.

    A `ValueError` if there are not as many, or an error has a positive weight.
    """
    if len(weights) != len(values):
        raise ValueError(
            f"the fitness has {len(weights)} weight{'s' * (len(weights) != 1)}, and {described(objectives)} has "
            f"{len(values)} value{'s' * (len(values) != 1)}: create the class with a weight for each value, or give "
            "the evaluator other objectives"
        )
    if len(objectives) == 1:
        objectives = [objectives[0]] * len(values)
    for objective, weight in zip(objectives, weights, strict=False):
        if objective.is_error and weight > 0:
            raise ValueError(
                f"the fitness has a positive weight for {objective.name}, which is least for the best individual: "
                "create the class with a negative weight"
            )
        if objective.known == "errors" or len(objectives) != len(values):
            break  # where the next objective begins is known to its function only
