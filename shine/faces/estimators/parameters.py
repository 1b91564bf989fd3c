"""The parameters of estimators: what they may be, in errors that name them, and the choice of a formula."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from shine.base.errors import placed
from shine.compiler.threads import processors
from shine.data.columns.numbers import int_if_exact
from shine.lang.forms.names import is_list, listed, shown, similar, value_text
from shine.lang.forms.synonyms import ESTIMATOR_WORDS, hint, meant, synonym
from shine.search.constraints.units import parse_unit
from shine.search.evolution.settings import EvolutionSettings

if TYPE_CHECKING:
    from shine.search.models.front import Front

Selection: TypeAlias = "str | Callable[[Front], int]"


def _largest_score(front: Front) -> int:
    scores = [-math.inf if math.isnan(score) else score for score in front.scores]
    return int(np.argmax(scores))


SELECTIONS: dict[str, Callable[[Front], int]] = {
    "best": lambda front: front.best_index,
    "accuracy": lambda front: int(np.argmin([model.loss for model in front])),
    "score": _largest_score,
}
"""The criteria by name: the shortest description (see `shine.search.models.certainty.choose`), the least loss, and the
largest fall of the loss's logarithm per unit of complexity."""


def check_selection(selection: str) -> None:
    """Raise a `ValueError` if no criterion has this name."""
    if selection not in SELECTIONS:
        known = ", ".join(map(repr, SELECTIONS))
        raise ValueError(
            f"unknown model_selection {value_text(selection)}; use one of {known}, or a function of the front"
        )


def selected(front: Front, selection: Selection) -> Front:
    """The front, with the formula that a criterion chooses as its best.

    A `ValueError` if there is no such criterion, or it returns no position in the front.
    """
    if isinstance(selection, str):
        check_selection(selection)
        selection = SELECTIONS[selection]
    given = selection(front)
    choice = operator.index(given) if hasattr(given, "__index__") else len(front)
    if not -len(front) <= choice < len(front):
        raise ValueError(
            f"model_selection chose formula {value_text(given)} of a front that has {len(front)}; return a position, "
            f"0 to {len(front) - 1}"
        )
    if choice % len(front) == front.best_index:
        return front
    return replace(front, best_index=choice % len(front), reason="")


OWN_NAMES = {
    "population": "population_size",
    "max_size": "max_size",
    "max_depth": "max_depth",
    "parsimony": "parsimony",
}
"""Fields of `EvolutionSettings` that are parameters of estimators, and the names of the parameters."""

FREE = (
    *(field.name for field in fields(EvolutionSettings) if field.name not in OWN_NAMES),
    "stagnation",
    "outliers",
    "evidence",
    "tier",
)
"""Names that `settings` may have."""


def check_known(name: str, given: Iterable[str], parameters: Sequence[str]) -> None:
    """Raise a `ValueError` if `set_params` is given a parameter that an estimator does not have."""
    for word in given:
        if word not in parameters:
            advice = hint(word, parameters).rstrip() or f"it has {listed(parameters, len(parameters))}"
            raise ValueError(f"Invalid parameter {value_text(word)} for estimator {name}; {advice}")


def check_parameters(given: Mapping[str, Any]) -> None:
    """Check the parameters that no setting of a search stands for.

    A `ValueError` if one has a value that is not allowed.
    """
    for name, (problem, allowed) in OWN_CHECKS.items():
        if name in given and problem(given[name]):
            raise ValueError(f"{name} must be {allowed}, is {value_text(given[name])}")


def _is_integer(value: Any) -> bool:
    value = int_if_exact(value)
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    """Whether a value is a collection that can be read again: checks, several targets and later fits do."""
    return is_list(value) and not isinstance(value, Iterator)


def _is_callables(value: Any) -> bool:
    return value is None or callable(value) or (_is_list(value) and all(map(callable, value)))


_TRUTH = (
    lambda value: not (_is_integer(value) or isinstance(value, bool | np.bool_)) or value not in (0, 1),
    "True or False",
)

OWN_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "warm_start": _TRUTH,
    "raw_features": _TRUTH,
    "periodic": _TRUTH,
    "autonomous": _TRUTH,
    "verbose": (
        lambda value: not (_is_integer(value) or isinstance(value, bool | np.bool_)) or value < 0,
        "0, 1 or 2",
    ),
    "kind": (lambda value: not isinstance(value, str) or value not in ("ode", "map", "pde"), "'ode', 'map' or 'pde'"),
    "derivatives": (lambda value: not _is_integer(value) or not 1 <= value <= 4, "a whole number from 1 to 4"),
    "lags": (lambda value: not _is_integer(value) or not 0 <= value <= 20, "a number of steps from 0 to 20"),
    "order": (lambda value: not _is_integer(value) or value not in (1, 2), "1 or 2"),
    "conserve": (lambda value: not (value is None or isinstance(value, str)), "text such as 'x + y', or None"),
    "callbacks": (lambda value: not _is_callables(value), "a function, or a list of functions"),
    "guesses": (lambda value: value is not None and not _is_list(value), "a list of formulas, such as ['x0*x1']"),
    "primitives": (lambda value: isinstance(value, Iterator), "a list, such as ['add', 'mul', 'sin']"),
    "settings": (
        lambda value: value is not None and not isinstance(value, Mapping),
        "a mapping, such as {'islands': 4}, or None",
    ),
    "objective": (lambda value: value is not None and not callable(value), "a function of predictions, or None"),
    "model_selection": (
        lambda value: not callable(value) and not (isinstance(value, str) and value in SELECTIONS),
        f"one of {', '.join(map(repr, SELECTIONS))}, or a function of the front",
    ),
}
"""For each parameter that no setting of a search stands for: whether a value is wrong, and what is allowed."""


def checked_index(index: Any, front: Sized) -> int:
    """Position in a front, of those counted from the beginning or, negative, from the end.

    A `ValueError` if it is not a position.
    """
    if not _is_integer(index) or not -len(front) <= index < len(front):
        allowed = (
            f"a position in the front, from 0 to {len(front) - 1} or from -{len(front)} to -1, or None for the best"
        )
        raise ValueError(f"index must be {allowed}, is {value_text(index)}")
    return int(index)


def checked_units(units: Any, headings: Sequence[str], names: Sequence[str]) -> tuple[dict[str, str], str]:
    """The units of the features, by their names in formulas, and that of the target.

    Parameters
    ----------
    units : (units of the features, unit of the target)
    headings, names : sequence of str
        Headings of the columns, and their names in formulas; a mapping may have either.

    Raises
    ------
    ValueError
        If it is not such a pair, or a text in it is not a unit.
    """
    allowed = "units must be a pair: the units of the features and that of the target, such as (['kg', 'm/s'], 'J')"
    if isinstance(units, str | Mapping) or not isinstance(units, Sequence) or len(units) != 2:
        raise ValueError(f"{allowed}, is {value_text(units)}")
    features, target = units
    if isinstance(features, str) or not isinstance(features, Mapping | Sequence):
        raise ValueError(f"{allowed}; the units of the features are {value_text(features)}")
    if not isinstance(features, Mapping):
        if len(features) != len(headings):
            raise ValueError(f"units has {len(features)} units of features; there are {len(headings)} columns")
        features = dict(zip(names, features, strict=True))
    for name in features:
        if name not in headings and name not in names:
            near = similar(str(name), headings)
            hint = f"did you mean {near!r}? " if near else ""
            raise ValueError(f"units has an unknown feature {value_text(name)}; {hint}there are {listed(headings)}")
    for what, text in (*((f"of {shown(name)}", unit) for name, unit in features.items()), ("of the target", target)):
        if not isinstance(text, str):
            raise ValueError(f"units: the unit {what} must be text, such as 'm/s' or '1', is {value_text(text)}")
        with placed(f"units: the unit {what}", ValueError):
            parse_unit(text)
    renamed = dict(zip(headings, names, strict=True))
    return {renamed.get(name, name): unit for name, unit in features.items()}, target


def threads_beside(executor: Any, jobs: Any) -> int | None:
    """Threads of a search; with an executor, -1 leaves them to the search, None."""
    return checked_threads(jobs) if executor is None or jobs != -1 else None


def checked_threads(jobs: Any) -> int:
    """Threads of a search, from scikit-learn's `n_jobs`: -1 means all processors, None means one.

    A `ValueError` if it is 0 or not an integer.
    """
    if jobs is None:
        return 1
    if not _is_integer(jobs) or jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, is {value_text(jobs)}")
    return int(jobs) if jobs > 0 else max(1, processors() + 1 + int(jobs))


def checked_seed(random_state: Any) -> int:
    """Seed of a search; `random_state` itself if it is an integer.

    A `ValueError` if scikit-learn makes no random numbers of it.
    """
    if _is_integer(random_state) and random_state >= 0:
        return int(random_state)
    if random_state is not None and not isinstance(random_state, np.random.RandomState):
        allowed = "a whole number of at least 0, a numpy.random.RandomState or None"
        raise ValueError(f"random_state must be {allowed}, is {value_text(random_state)}")
    return int(check_random_state(random_state).randint(2**31 - 1))


def checked_settings(given: Mapping[str, Any] | None, own: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the evolution by name: the estimator's own parameters, and further settings.

    These are the fields of `EvolutionSettings`, `stagnation` of `StopSettings`, and `outliers`, `evidence` and `tier`
    of `FitnessSettings`.

    A `ValueError` if a setting is unknown, or has a parameter of its own.
    """
    others = dict(given or {})
    for name in others:
        if name in FREE:
            continue
        word = str(name)
        parameter = synonym(word, own)
        if parameter is not None and synonym(word, FREE) is None:
            raise ValueError(f"settings has {value_text(name)}; use the parameter {parameter}")
        near = meant(word, FREE)
        hint = f"did you mean {near!r}? " if near else ""
        raise ValueError(f"settings has no {value_text(name)}; {hint}it has {', '.join(sorted(FREE))}")
    return others | {field: own[parameter] for field, parameter in OWN_NAMES.items()}


def words_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """The user's words for keywords of `shine.evolve`: parameters, and settings in `settings`."""
    return {**ESTIMATOR_WORDS, **{name: f"settings[{name!r}]" for name in settings if name not in OWN_NAMES}}
