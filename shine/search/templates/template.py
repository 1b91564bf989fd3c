"""Templates: unknown functions and parameters with their options, and the known part around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from shine.base.errors import placed
from shine.lang.forms.grammar import check_name
from shine.lang.forms.names import is_list, shown, value_text
from shine.lang.forms.tree import Tree
from shine.lang.vocabulary import PrimitiveSource
from shine.search.constraints.constraints import Constraints

DEFAULT_START = 1.0
"""Value that a parameter starts from if nothing else is said: not 0, where products do not depend on it."""


@dataclass(frozen=True)
class Unknown:
    """A function that the search finds.

    Parameters
    ----------
    name : str
    arguments : tuple of str
        Names of its arguments, in its formula.
    primitives : tuple, optional
        Functions that it is made of; by default those of the search.
    max_size, max_depth : int, optional
        Most nodes and levels of its formula; by default those of the search.
    constraints : Constraints
        Constraints on its formula, whose features are its arguments.
    """

    name: str
    arguments: tuple[str, ...]
    primitives: tuple[PrimitiveSource, ...] | None = None
    max_size: int | None = None
    max_depth: int | None = None
    constraints: Constraints = field(default_factory=Constraints)


@dataclass(frozen=True)
class Parameter:
    """A number that is fitted along with the constants of the unknown functions.

    Parameters
    ----------
    name : str
    by_group : bool
        Whether each group has its own value.
    bounds : (float, float)
        Least and greatest value.
    integer : bool
        Whether it is a whole number.
    value : float, optional
        A fixed value: it is not fitted.
    start : float, optional
        Value to start from.
    """

    name: str
    by_group: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)
    integer: bool = False
    value: float | None = None
    start: float | None = None

    @property
    def first(self) -> float:
        """The value that a fit starts from, within the bounds."""
        low, high = self.bounds
        if self.value is not None:
            return self.value
        if self.start is not None:
            return self.start
        if low <= DEFAULT_START <= high:
            return DEFAULT_START
        if math.isinf(low) or math.isinf(high):
            # Half as far again as the bound, on the side that is allowed; 0 is no place to start from.
            near = high if math.isinf(low) else low
            found = near + math.copysign(max(abs(near) / 2, DEFAULT_START), -1.0 if math.isinf(low) else 1.0)
        else:
            found = low + (high - low) / 2
        if not self.integer:
            return found
        whole = float(round(found))
        return whole if low <= whole <= high else float(math.ceil(low) if whole < low else math.floor(high))


@dataclass(frozen=True, eq=False, repr=False)
class Template:
    """A law with a known part, before it meets data.

    Parameters
    ----------
    unknowns : tuple of Unknown
    parameters : tuple of Parameter
        In the order of their first use.
    outputs : tuple of Tree
        The known part of each output. Its names are columns and parameters; it calls the unknown functions, and their
        derivatives, by the names in `calls`.
    calls : mapping of str to (str, tuple of int)
        What is called: unknown function, and the arguments that it is differentiated by, one after the other.
    columns : tuple of str
        Names that must be columns of the data.
    open : frozenset of str
        Names of parameters that are columns instead if the data have such a column.
    groups : str, optional
        The column of groups.
    shrinkage : bool
        Whether the values of parameters by group are drawn towards their mean, the more the less their rows determine
        them.
    source : str
        The template as text.
    """

    unknowns: tuple[Unknown, ...]
    parameters: tuple[Parameter, ...]
    outputs: tuple[Tree, ...]
    calls: Mapping[str, tuple[str, tuple[int, ...]]]
    columns: tuple[str, ...] = ()
    open: frozenset[str] = frozenset()
    groups: str | None = None
    shrinkage: bool = False
    source: str = ""

    def __repr__(self) -> str:
        return f"Template({shown(self.source, 200)})"  # most characters of the formula in the `repr` of a template


_UNKNOWN = ("arguments", "primitives", "max_size", "max_depth", "constraints")
_PARAMETER = ("bounds", "integer", "value", "start")


def read_unknowns(source: object) -> dict[str, Unknown] | None:
    """The unknown functions by name; None if nothing is said. Those without arguments get them from their calls.

    A `TypeError` or `ValueError` if an option is invalid.
    """
    if source is None:
        return None
    if is_list(source):
        source = dict.fromkeys(source)  # type: ignore[call-overload]
    if not isinstance(source, Mapping):
        raise TypeError(f"unknown is a mapping such as {{'f': ['a', 'b']}}, not {value_text(source)}")
    return {check_name(name): _unknown(check_name(name), each) for name, each in source.items()}


def _unknown(name: str, source: object) -> Unknown:
    where = f"unknown {name!r}"
    if isinstance(source, Unknown):
        return source
    if source is None:
        return Unknown(name, ())
    if isinstance(source, str):
        source = [source]
    if is_list(source):
        source = {"arguments": source}
    if not isinstance(source, Mapping):
        raise TypeError(f"{where} is a list of its arguments, or a mapping with {', '.join(_UNKNOWN)}")
    _check_keys(where, source, _UNKNOWN)
    arguments = source.get("arguments") or ()
    if isinstance(arguments, str):
        arguments = (arguments,)
    if not is_list(arguments):
        raise TypeError(f"{where}: arguments is a list of names, not {value_text(arguments)}")
    names = tuple(check_name(each) for each in arguments)
    if len(set(names)) < len(names):
        raise ValueError(f"{where} lists an argument twice")
    primitives = source.get("primitives")
    if primitives is not None and (not is_list(primitives) or not len(primitives)):
        raise TypeError(f"{where}: primitives is a list, such as ['add', 'mul'], not {value_text(primitives)}")
    return Unknown(
        name,
        names,
        None if primitives is None else tuple(primitives),
        _size(where, "max_size", source),
        _size(where, "max_depth", source),
        _constraints(where, source.get("constraints") or {}),
    )


def _constraints(where: str, source: Any) -> Constraints:
    if isinstance(source, Constraints):
        return source
    if not isinstance(source, Mapping):
        raise TypeError(f"{where}: constraints is a mapping, not {value_text(source)}")
    _check_keys(f"{where}: constraints", source, [each.name for each in fields(Constraints)])
    with placed(f"{where}: constraints", ValueError, TypeError, AttributeError):
        return Constraints(**source)


def _size(where: str, key: str, source: Mapping[str, Any]) -> int | None:
    value = source.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{where}: {key} is a whole number from 1, not {value_text(value)}")
    return value


def read_parameters(source: object) -> dict[str, Parameter]:
    """The options of parameters, by name; a `TypeError` or `ValueError` if an option is invalid."""
    if source is None:
        return {}
    if is_list(source):
        source = dict.fromkeys(source)  # type: ignore[call-overload]
    if not isinstance(source, Mapping):
        raise TypeError(f"parameters is a mapping such as {{'k': (0, None)}}, not {value_text(source)}")
    return {check_name(name): _parameter(check_name(name), each) for name, each in source.items()}


def _parameter(name: str, source: object) -> Parameter:
    where = f"parameter {name!r}"
    if isinstance(source, Parameter):
        return source
    if _is_number(source):
        source = {"value": source}
    elif is_list(source):
        source = {"bounds": source}
    elif source is None:
        source = {}
    if not isinstance(source, Mapping):
        raise TypeError(
            f"{where} is a fixed value, bounds such as (0, None), or a mapping with {', '.join(_PARAMETER)}"
        )
    _check_keys(where, source, _PARAMETER)
    integer = source.get("integer", False)
    if not isinstance(integer, bool):
        raise TypeError(f"{where}: integer is true or false, not {value_text(integer)}")
    bounds = _bounds(where, source.get("bounds"))
    value, start = (_number(f"{where}: {key}", source[key]) if source.get(key) is not None else None for key in _LEAVES)
    if value is not None and start is not None:
        raise ValueError(f"{where} has a fixed value; start says nothing about it")
    if integer and all(map(math.isfinite, bounds)) and math.ceil(bounds[0]) > math.floor(bounds[1]):
        raise ValueError(f"{where}: there is no whole number from {bounds[0]:g} to {bounds[1]:g}")
    for key, number in (("value", value), ("start", start)):
        if number is not None and not bounds[0] <= number <= bounds[1]:
            raise ValueError(f"{where}: {key} {number:g} is not within the bounds {bounds[0]:g} to {bounds[1]:g}")
        if number is not None and integer and number != int(number):
            raise ValueError(f"{where} is a whole number; {key} is {number:g}")
    return Parameter(name, False, bounds, integer, value, start)


_LEAVES = ("value", "start")


def _bounds(where: str, source: object) -> tuple[float, float]:
    if source is None:
        return -math.inf, math.inf
    if not is_list(source) or len(source) != 2:  # type: ignore[arg-type]
        raise ValueError(
            f"{where}: bounds are two numbers, None where there is none: (0, None); not {value_text(source)}"
        )
    ends: Sequence[Any] = source  # type: ignore[assignment]
    low = -math.inf if ends[0] is None else _number(f"{where}: bounds", ends[0], infinite=True)
    high = math.inf if ends[1] is None else _number(f"{where}: bounds", ends[1], infinite=True)
    if not low < high:
        raise ValueError(f"{where}: the lower bound {low:g} is not below the upper bound {high:g}")
    return low, high


def _is_number(source: object) -> bool:
    return isinstance(source, int | float) and not isinstance(source, bool)


def _number(where: str, source: Any, *, infinite: bool = False) -> float:
    ordinary: Callable[[float], bool] = (lambda value: not math.isnan(value)) if infinite else math.isfinite
    try:
        found = float(source) if not isinstance(source, bool | str) else math.nan
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not ordinary(found):
        raise ValueError(f"{where} is a number, not {value_text(source)}")
    return found


def _check_keys(where: str, source: Mapping[Any, Any], allowed: Sequence[str]) -> None:
    wrong = [key for key in source if key not in allowed]
    if wrong:
        raise ValueError(f"{where} has the key {value_text(wrong[0])}; allowed are {', '.join(allowed)}")
