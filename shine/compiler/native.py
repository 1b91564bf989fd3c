"""Kernels: plain Python functions of numbers and arrays that run as native code (see `shine.compiler.kernels`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

from shine.base.typing import ELEMENTS

F = TypeVar("F", bound=Callable[..., None])

_groups: dict[str, list[Callable[..., None]]] = defaultdict(list)


@cache
def _compiled(group: str) -> dict[str, Any]:
    """The kernels of a group, compiled at the first call of one: a module with kernels is imported without LLVM."""
    from shine.compiler.kernels import native_functions

    return native_functions(group, _groups[group])


def native(group: str, writes: int) -> Callable[[F], F]:
    """A decorator of kernels of numbers, then arrays; they write to the last ones, the others may be in pieces.

    Kernels of a group are compiled together. An array that a kernel writes to overlaps none of the others.
    """

    def decorated(kernel: F) -> F:
        name = kernel.__name__
        _groups[group].append(kernel)
        kinds = [kind for label, kind in kernel.__annotations__.items() if label != "return"]
        types = [np.dtype(ELEMENTS[kind]) for kind in kinds if kind in ELEMENTS]
        numbers = len(kinds) - len(types)

        @wraps(kernel)
        def native(*arguments: Any) -> None:
            # The copies of arrays in pieces live until the call is over.
            arrays = list(map(np.ascontiguousarray, arguments[numbers:], types))
            for own, each in zip(arrays[-writes:], arguments[-writes:], strict=True):
                if own is not each:
                    raise TypeError(f"{name} writes to an array of {own.dtype} in one piece, not of {each.dtype}")
            _compiled(group)[name](*arguments[:numbers], *map(id, arrays))

        return cast(F, native)

    return decorated
