"""Attributes of nodes with their defaults, numbers of inputs, axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from shine.base.errors import GraphImportError
from shine.tensor.graphdef.node import Node
from shine.tensor.graphdef.order import shown
from shine.tensor.imported.building import Building, Operand, Output, numbers

Rule: TypeAlias = Callable[[Building, Node, Sequence[Operand]], Sequence[Output]]
"""Takes a node and its inputs; returns its outputs."""


def check_count(inputs: Sequence[object], least: int, most: int | None = None) -> None:
    """Raise GraphImportError unless a node reads `least` to `most` values; `most` is `least` by default, -1 for any."""
    most = least if most is None else most
    if len(inputs) < least or 0 <= most < len(inputs):
        wanted = str(least) if most == least else f"at least {least}" if most < 0 else f"{least} to {most}"
        raise GraphImportError(f"reads {len(inputs)} values, but takes {wanted}")


def check_types(inputs: Sequence[Operand], dtype: str) -> None:
    """Raise GraphImportError unless all inputs have an element type."""
    for position, operand in enumerate(inputs):
        if operand.dtype != dtype:
            raise GraphImportError(f"input {position} is {operand.dtype}, but must be {dtype}")


def flag(node: Node, key: str, default: bool = False) -> bool:
    """An attribute that is true or false."""
    given = node.optional(key, "b")
    return default if given is None else bool(given)


def word(node: Node, key: str, default: str | None = None) -> str:
    """An attribute that is a word; required if there is no default."""
    given = node.attribute(key, "s") if default is None else node.optional(key, "s")
    return str(default) if given is None else given.decode(errors="replace")


def one_of(node: Node, key: str, default: str | None, allowed: Sequence[str]) -> str:
    """An attribute that is one of some words."""
    given = word(node, key, default)
    if given not in allowed:
        raise GraphImportError(f"attr {key!r} must be {' or '.join(allowed)}, is {shown(given)}")
    return given


def listed(node: Node, key: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
    """An attribute that is a list of integers; required if there is no default."""
    given = node.attribute(key, "list") if default is None else node.optional(key, "list")
    found = () if given is None else tuple(given.i)
    return found or tuple(default or ())


def axis_of(number: int, rank: int, what: str = "axis") -> int:
    """An axis, counted from the end if it is negative."""
    if not -rank <= number < rank:
        raise GraphImportError(f"its {what} {number} is beyond the {rank} axes")
    return number % rank


def one_number(operand: Operand, what: str) -> int:
    """The only integer of a constant."""
    found = numbers(operand, what)
    if len(found) != 1:
        raise GraphImportError(f"its {what} must be one integer, but is {len(found)}")
    return found[0]


def axes_of(operand: Operand, rank: int) -> tuple[int, ...]:
    """Axes from a constant, ascending, each once."""
    return tuple(sorted({axis_of(number, rank) for number in numbers(operand, "axes")}))
