"""A call of a torch operation as the rules see it: arguments by name, and the type of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shine.base.errors import GraphImportError
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand


@dataclass(frozen=True, eq=False)
class Call:
    """A call in the making.

    Parameters
    ----------
    b : GraphBuilder
        The function in the making.
    arguments : mapping of str
        By the names of torch's schema: operands, numbers, lists, None.
    dtypes : tuple of str
        NumPy's names of the results' elements.
    shapes : tuple of tuple of int
        Shapes of the results.
    """

    b: GraphBuilder
    arguments: Mapping[str, Any]
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def builder(self) -> FunctionBuilder:
        """For compositions."""
        return self.b.builder

    @property
    def dtype(self) -> str:
        """Elements of the first result."""
        return self.dtypes[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        return self.shapes[0]

    def get(self, name: str, default: Any = None) -> Any:
        """An argument; None counts as left out."""
        found = self.arguments.get(name)
        return default if found is None else found

    def operand(self, name: str = "self", dtype: str | None = None) -> Operand:
        """An argument as an operand; a number becomes a constant.

        A `GraphImportError` if it is missing, or is neither a tensor nor a number.
        """
        found = self.arguments.get(name)
        if isinstance(found, bool | int | float):
            return self.b.constant(found, dtype or self.dtype)
        if not isinstance(found, Operand):
            raise GraphImportError(f"its argument {name} is {found!r}, and not a tensor")
        return found if dtype is None else self.b.cast_to(found, dtype)

    @property
    def first(self) -> Operand:
        """The first argument, which torch calls self, input or x."""
        for name in ("self", "input", "x", "condition"):
            if name in self.arguments:
                return self.operand(name)
        raise GraphImportError("its first argument is not a tensor")

    def value(self, name: str) -> Value | None:
        """An argument for compositions; None if it is left out."""
        return None if self.arguments.get(name) is None else self.operand(name).value

    def axis(self, name: str = "dim", extra: int = 0, default: int | None = None) -> int:
        """An axis of the first argument, counted from the end if it is negative."""
        return checked_axis(self.get(name, default), self.first.rank + extra)

    def axes(self, name: str = "dim") -> tuple[int, ...]:
        """Axes in ascending order; all if none are given."""
        given, rank = self.get(name), self.first.rank
        if given is None or (isinstance(given, Sequence) and not given):
            return tuple(range(rank))
        return tuple(sorted(checked_axis(axis, rank) for axis in ([given] if isinstance(given, int) else given)))


def checked_axis(axis: Any, rank: int) -> int:
    """An axis, counted from the end if it is negative; a scalar has one axis for torch."""
    if not isinstance(axis, int) or not -max(rank, 1) <= axis < max(rank, 1):
        raise GraphImportError(f"its axis {axis} is not one of {rank}")
    return axis % max(rank, 1)


def pair(given: Any, count: int, default: int) -> tuple[int, ...]:
    """Numbers for some axes: one for all, or one each; the default if there are none."""
    if given is None or (isinstance(given, Sequence) and not given):
        return (default,) * count
    found = (given,) * count if isinstance(given, int) else tuple(given)
    if len(found) == 1:
        found = found * count
    if len(found) != count or not all(isinstance(n, int) for n in found):
        raise GraphImportError(f"{list(found)} needs {count} integers")
    return found
