"""Kinds of user input, told apart before use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def is_list(value: object) -> bool:
    """Whether a value is a collection of things, not one text, a mapping or an array without dimensions."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        return False
    return getattr(value, "ndim", 1) > 0
