"""pydantic's errors about one value in plain words: what is allowed, and what was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shine.lang.forms.names import cut, similar

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Show = Callable[[object], str]
"""A value as the message shows it: of YAML or of Python."""

Wording = Callable[[dict[str, Any], object, Show], str]


def worded(details: ErrorDetails, shown: Show) -> str:
    """The message of one of pydantic's errors, worded to follow the name of the value.

    Parameters
    ----------
    details : ErrorDetails
    shown : callable
    """
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
