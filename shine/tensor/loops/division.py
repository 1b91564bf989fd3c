"""A part of the work of a group of nests, for one of several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, counted
from shine.tensor.loops.index import Index, variable
from shine.tensor.loops.products.product import Span

MOST_BLOCKS = 32
"""Blocks of a group, taken by the threads one by one; so a thread that is late takes fewer."""


@dataclass(frozen=True)
class Sharing:
    """The division of a group into blocks.

    Parameters
    ----------
    over : str
        The divided dimension: outer loops, matrices, rows, columns, or filters.
    units : int
        The smallest parts.
    outer : int
        For outer loops, how many of them.
    most : int
        Most blocks.
    """

    over: str
    units: int
    outer: int = 0
    most: int = MOST_BLOCKS

    @property
    def blocks(self) -> int:
        """Parts that threads take."""
        return min(self.units, self.most)

    def __str__(self) -> str:
        return f"shared by threads in {self.blocks} blocks of {self.over}"


@dataclass(frozen=True)
class Part:
    """One call of the code of a divided group.

    Parameters
    ----------
    sharing : Sharing
    span : Span
        First unit and end.
    scratch : ir.Value
        Memory of the thread's own.
    """

    sharing: Sharing
    span: Span
    scratch: ir.Value


def shared_loops(
    builder: ir.IRBuilder, extents: Sequence[int], span: Span, body: Callable[[list[Index], list[ir.Value]], object]
) -> None:
    """Emit nested loops as one over some of their turns."""
    with counted(builder, *span) as loop:
        indices: list[Index] = []
        left = loop.index
        for extent in reversed(extents):
            found = builder.urem(left, ir.Constant(I64, extent)) if extent > 1 else None
            left = builder.udiv(left, ir.Constant(I64, extent)) if extent > 1 else left
            indices.insert(0, Index() if found is None else variable(found))
        body(indices, [])
