"""Pickling by arguments: for objects with compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class PickledByArguments:
    """Base of classes with compiled code and addresses of data, which mean nothing to another process, nor to a copy.

    Pickling such an object keeps the arguments of its class; reading it makes it anew.
    """

    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        self = super().__new__(cls)
        self._arguments = arguments, named
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), *self._arguments)


def _rebuilt(cls: type[PickledByArguments], arguments: tuple[Any, ...], named: Mapping[str, Any]) -> PickledByArguments:
    return cls(*arguments, **named)
