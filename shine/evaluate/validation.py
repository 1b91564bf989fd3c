"""The validator of settings, with the user's names and values in messages; and the options of evaluators."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from annotated_types import Ge, Le

from shine.lang.forms.names import cut, similar, value_text

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

Section = TypeVar("Section")

Show = Callable[[object], str]
"""A value as the message shows it: of YAML or of Python."""

Wording = Callable[[dict[str, Any], object, Show], str]

BOUNDS = ("ge", "gt", "le", "lt")
"""Bounds of numbers, by the functions that compare with them."""

LARGEST = 2**63 - 1
"""Largest whole number that compiled code takes."""


def valid_settings(
    kind: type[Section], values: Mapping[str, Any], words: Mapping[str, str] | None = None, prefix: str = ""
) -> Section:
    """Settings within their bounds; a `ValueError` names those outside.

    Parameters
    ----------
    kind : type
    values : mapping of str to object
    words : mapping of str to str, optional
        The user's words for the settings, if they are others.
    prefix : str
        Goes before the names in messages.
    """
    # NumPy's numbers are numbers.
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    defaults = {each.name: each.default for each in fields(kind)}  # type: ignore[arg-type]
    plain = {name: value for name, value in plain.items() if not _is_same(value, defaults.get(name, MISSING))}
    huge = [name for name, value in plain.items() if isinstance(value, int) and abs(value) > LARGEST]
    if huge:
        raise ValueError("; ".join(_problem((name,), "must be below 2**63", words, prefix) for name in huge))
    quick = _plainly_valid(kind, plain)
    if quick is not None:
        return quick
    from pydantic import ValidationError

    try:
        found = _validator(kind).validate_python(plain)  # type: ignore[arg-type]
    except ValidationError as error:
        problems = (_problem(details["loc"], worded(details, value_text), words, prefix) for details in error.errors())
        raise ValueError("; ".join(problems)) from None
    for name, value in plain.items():
        made = getattr(found, name)
        # pydantic takes text and truth values for numbers.
        if isinstance(value, str | bytes | bool) and type(made) is not type(value):
            article = "true or false" if isinstance(made, bool) else "a number"
            raise ValueError(_problem((name,), f"must be {article}, is {value_text(value)}", words, prefix))
    return found


def _plainly_valid(kind: type[Section], values: Mapping[str, Any]) -> Section | None:
    """Settings of plain values, or None: pydantic, which takes an eighth of a first search, decides the rest."""
    hints = get_type_hints(kind, include_extras=True)
    try:
        return kind(**{name: _plain(value, hints[name]) for name, value in values.items()})
    except (KeyError, TypeError, ValueError):
        return None


def _plain(value: Any, hint: Any) -> Any:
    """A value of a type; a `ValueError` if that is in doubt."""
    inner = get_args(hint)
    if get_origin(hint) is Annotated:
        found, bounds = _plain(value, inner[0]), [(type(bound).__name__.lower(), bound) for bound in inner[1:]]
        if all(name in BOUNDS and getattr(operator, name)(found, getattr(bound, name)) for name, bound in bounds):
            return found
    elif get_origin(hint) in (Union, UnionType):
        for each in inner:
            with suppress(ValueError):
                return _plain(value, each)
    elif get_origin(hint) is Literal:
        if isinstance(value, str) and value in inner:
            return value
    elif hint is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    elif hint in (int, bool, str, NoneType) and type(value) is hint:
        return value
    raise ValueError("not plain")


@cache
def _validator(kind: type[Section]) -> TypeAdapter[Section]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _is_same(value: object, default: object) -> bool:
    return type(value) is type(default) and bool(value == default)


def _problem(place: Sequence[str | int], message: str, words: Mapping[str, str] | None, prefix: str) -> str:
    if not place:
        return message
    first, *rest = map(str, place)
    return f"{prefix}{'.'.join([(words or {}).get(first, first), *rest])} {message}"


def worded(details: ErrorDetails, shown: Show) -> str:
    """The message of one of pydantic's errors, worded to follow the name of the value."""
    kind, value = details["type"], details["input"]
    if kind not in _WORDINGS:
        message = cut(details["msg"])
        return f"{message[0].lower()}{message[1:]}, is {shown(value)}"
    return _WORDINGS[kind](details.get("ctx", {}), value, shown)


def _kind(article: str) -> Wording:
    return lambda context, value, shown: f"must be {article}, is {shown(value)}"


def _bound(words: str, key: str) -> Wording:
    return lambda context, value, shown: f"must be {words} {_number(context[key])}, is {shown(value)}"


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _choice(context: dict[str, Any], value: object, shown: Show) -> str:
    options = [option.strip("' ") for option in context["expected"].replace(" or ", ",").split(",")]
    near = similar(value, options) if isinstance(value, str) else None
    hint = f'; did you mean "{near}"?' if near else ""
    return f"must be one of {', '.join(options)}, is {shown(value)}{hint}"


_BOOL = _kind("true or false")
_FLOAT = _kind("a number")
_INTEGER = _kind("a whole number")
_MAPPING = _kind("a mapping of keys to values")
_LIST = _kind("a list, such as [a, b]")
_TEXT = _kind("text")

_WORDINGS: dict[str, Wording] = {
    "missing": lambda context, value, shown: "is missing, and has no default",
    "bool_type": _BOOL,
    "bool_parsing": _BOOL,
    "dataclass_type": _MAPPING,
    "dict_type": _MAPPING,
    "finite_number": _kind("a finite number"),
    "float_type": _FLOAT,
    "float_parsing": _FLOAT,
    "greater_than": _bound("above", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "int_from_float": _INTEGER,
    "int_parsing": _INTEGER,
    "int_parsing_size": _INTEGER,
    "int_type": _INTEGER,
    "less_than": _bound("below", "lt"),
    "less_than_equal": _bound("at most", "le"),
    "literal_error": _choice,
    "model_type": _MAPPING,
    "path_type": _kind("a path"),
    "string_type": _TEXT,
    "too_long": lambda context, value, shown: (
        f"must have {context['max_length']} entries, has {context['actual_length']}"
    ),
    "tuple_type": _LIST,
    "value_error": lambda context, value, shown: cut(context["error"], 1000),
}
"""Message by the type of pydantic's error; other types keep pydantic's own message."""


Dtype = Literal["float64", "float32"]
Tier = Literal["machine", "native", "reference"]
Threads = Annotated[int, Ge(1), Le(1024)]


@dataclass(frozen=True)
class EvaluatorOptions:
    """Options of an evaluator (see `shine.Evaluator`)."""

    linear_scaling: bool
    dtype: Dtype
    tier: Tier
    threads: Threads | None

    @classmethod
    def checked(cls, **values: Any) -> EvaluatorOptions:
        """Options within their bounds; a `ValueError` names those outside."""
        return valid_settings(cls, values)
