"""Arguments as scripts give them: number types, data frames whose columns have names, and registered functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from shine.base.errors import DataError
from shine.base.typing import AnyArray
from shine.data.columns.headings import all_headings
from shine.evaluate.validation import Dtype, valid_settings
from shine.faces.deap.vocabulary import gp
from shine.lang.forms.names import value_text

FLOATS = get_args(Dtype)
"""Number types of predictions."""


def float_name(dtype: DTypeLike) -> str:
    """Name of a number type that is given by its name or as NumPy's: ``numpy.float32``.

    A `ValueError` if it is neither of `FLOATS`.
    """
    try:
        name = None if dtype is None else np.dtype(dtype).name
    except TypeError:
        name = None
    return valid_settings(_NumberType, {"dtype": name if name in FLOATS else dtype}).dtype


@dataclass(frozen=True)
class _NumberType:
    dtype: Dtype


def columns_of(X: ArrayLike, arguments: Sequence[str]) -> AnyArray:
    """An array of columns in the order of a primitive set's arguments, shape (n_rows, n_columns).

    Parameters
    ----------
    X : array-like, or data frame
        The columns of a data frame are ordered by name if the names are those of the arguments. Others are taken by
        position.
    arguments : sequence of str

    Raises
    ------
    DataError
        If a column has the name of an argument in another place, and the others do not.
    """
    names = [str(heading) for heading in all_headings(X) or ()]
    columns = np.asarray(X)
    if columns.ndim == 1 and len(arguments) == 1:
        return columns[:, None]
    if columns.ndim == 2 and len(names) == columns.shape[1] == len(set(names)):
        if set(names) == set(arguments):
            return columns[:, [names.index(argument) for argument in arguments]]
        moved = [name for i, name in enumerate(names) if name in arguments and name not in arguments[i : i + 1]]
        if moved:
            raise DataError(
                f"X has the columns ({', '.join(names)}), but the primitive set takes ({', '.join(arguments)}): give "
                f"the columns the names of the arguments, or X.to_numpy() to take them in their order"
            )
    return columns


def population_checked(individuals: Any, several: bool, call: str) -> list[Any]:
    """The individuals of a population as a list.

    Parameters
    ----------
    individuals : iterable
    several : bool
        Whether each individual is a sequence of trees, one for each primitive set.
    call : str
        How the population is given, for the message.

    Raises
    ------
    TypeError
        If it is one individual, or no population; the message says which method takes it.
    """
    if isinstance(individuals, gp.PrimitiveTree) or not isinstance(individuals, Iterable):
        raise TypeError(_of_population(call, _what(individuals)))
    items = list(individuals)
    for item in items:
        if not _is_individual(item, several):
            alone = several and isinstance(individuals, list) and isinstance(item, gp.PrimitiveTree)
            given = "the trees of one individual" if alone else f"a sequence with {_what(item)}"
            raise TypeError(_of_population(call, given, several))
    return items


def check_individual(individual: Any, several: bool) -> None:
    """Raise a `TypeError` if something else than one individual is given."""
    if not _is_individual(individual, several):
        form = "one individual, a list of trees for its primitive sets" if several else "one individual, a tree"
        what = "a population" if _is_list(individual) and any(_is_individual(e, several) for e in individual) else None
        raise TypeError(
            f"evaluator.evaluate takes {form}, not {what or _what(individual)}; "
            "for a population call evaluator(population)"
        )


def _of_population(call: str, given: str, several: bool = False) -> str:
    form = "a list of individuals, each a list of trees" if several else "a list of individuals"
    return (
        f"{call} takes {form}, not {given}; for one individual call evaluator.evaluate(individual), which is also "
        "what a pool's map takes: pool.map(evaluator.evaluate, population)"
    )


def _is_individual(item: Any, several: bool) -> bool:
    if isinstance(item, gp.PrimitiveTree):
        return not several
    return _is_list(item) and all(_is_individual(x, several=False) if several else hasattr(x, "arity") for x in item)


def _is_list(item: Any) -> bool:
    return isinstance(item, Sequence) and not isinstance(item, str)


def _what(given: Any) -> str:
    if isinstance(given, gp.PrimitiveTree):
        return "one individual"
    return value_text(given) if not _is_list(given) else f"a {type(given).__name__} of other things"


def failed_values(failed: Any) -> tuple[float, ...] | None:
    """The values of individuals without a finite value, of one number or several.

    A `TypeError` if they are no numbers.
    """
    if failed is None:
        return None
    try:
        values = np.ravel(np.asarray(failed, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if not len(values):
        raise TypeError(f"failed is a number, or one for each value of the fitness, not {value_text(failed)}")
    return tuple(values.tolist())


def without_arguments(function: Any) -> Any:
    """The function that a toolbox has registered; it keeps functions as `functools.partial`."""
    return function.func if isinstance(function, functools.partial) else function


def is_evaluation(function: Any, stands_for: Callable[..., Any] | None) -> bool:
    """Whether a function is the one that an evaluator replaces.

    Parameters
    ----------
    function : callable
        As `toolbox.map` gets it.
    stands_for : callable, optional
        The function that the evaluator was made to replace; by default the one registered as "evaluate", undecorated.
    """
    inner = without_arguments(function)
    if stands_for is not None:
        return function is stands_for or inner is stands_for
    # A toolbox names a function by the alias it registers it under; a decorator changes what it computes.
    return (
        isinstance(function, functools.partial)
        and getattr(function, "__name__", "") == "evaluate"
        and not hasattr(inner, "__wrapped__")
    )


def weights_of(individuals: Sequence[Any]) -> Sequence[float] | None:
    """Weights of the fitness, which all individuals of a script share; None if they have no fitness."""
    weights: Sequence[float] | None = getattr(getattr(individuals[0], "fitness", None), "weights", None)
    return weights
