"""Tiles: how many rows a machine works on at a time, and the loop over the places where the rows lie."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import I64, Variables, counted, element_pointer, load, number, store
from shine.compiler.codegen.moments import TILE_BYTES
from shine.evaluate.machine.job import Job

ROW_GROUP = 64
"""Columns are padded to a multiple of this many rows, which the width of every vector divides."""

CACHE_BYTES = 24 * 1024
"""Bytes that the live tiles of an individual may take together; an individual with more tiles gets shorter ones."""

COLUMN_OPERAND, TILE_OPERAND, CONSTANT_OPERAND = 0, 1, 2
"""Kinds of operands: a column of the data, a tile of the stack, a constant."""

OPERAND_BYTES = 24
"""Size of an operand on the stack: its kind, then its two words in an instruction."""

_KIND, _WORDS = 0, (8, 16)
"""Byte offsets in an operand."""

_BYTE = ir.IntType(8)


def tile_rows(dtype: str) -> int:
    """Rows of a tile."""
    return TILE_BYTES // np.dtype(dtype).itemsize


def tile_length(build: ir.IRBuilder, tiles: ir.Value, shortest: int) -> ir.Value:
    """Bytes of a tile: `TILE_BYTES`, halved until all `tiles` fit into the cache, but at least `shortest`."""
    length: ir.Value = number(TILE_BYTES)
    for _ in range((TILE_BYTES // shortest).bit_length() - 1):
        too_much = build.icmp_unsigned(">", build.mul(tiles, length), number(CACHE_BYTES))
        length = build.select(too_much, build.lshr(length, number(1)), length)
    return length


def padded_rows(build: ir.IRBuilder, rows: ir.Value) -> ir.Value:
    """A number of rows, padded to a multiple of `ROW_GROUP`."""
    group = number(ROW_GROUP)
    return build.mul(build.udiv(build.add(rows, number(ROW_GROUP - 1)), group), group)


@contextmanager
def over_parts(build: ir.IRBuilder, job: Job, wanted: Variables) -> Iterator[tuple[Job, ir.Value, ir.Value]]:
    """A loop over the two parts of the rows, those in place and the tail, as long as ``wanted["further"]`` is not 0.

    Yields
    ------
    job : Job
        With the addresses of the part.
    begin, end : ir.Value
        Its first row, and the row after its last.
    """
    with counted(build, number(0), number(2)) as part:
        tail = build.icmp_unsigned("==", part.index, number(1))
        here = job | {
            field: build.select(tail, job[f"tail_{field}"], job[field])
            for field in ("columns", "target", "weights", "loss_columns")
        }
        begin = build.select(tail, job["full"], number(0))
        end = build.select(tail, job["rows"], job["full"])
        exists = build.icmp_unsigned("<", begin, end)
        with build.if_then(build.and_(exists, build.icmp_unsigned("!=", wanted["further"], number(0)))):
            yield here, begin, end


class OperandStack:
    """Operands of nodes whose function comes later on the tape.

    Parameters
    ----------
    build : ir.IRBuilder
        Stands at the beginning of the assembler.
    memory : ir.Value
        Room for `OPERAND_BYTES` per operand.
    """

    def __init__(self, build: ir.IRBuilder, memory: ir.Value) -> None:
        self._build, self._memory = build, memory
        self._state = Variables(build, height=0)

    @property
    def height(self) -> ir.Value:
        """Number of operands."""
        return self._state["height"]

    def cut(self, height: ir.Value) -> None:
        """Pop all operands from a position on."""
        self._state["height"] = height

    def push(self, kind: ir.Value | int, base: ir.Value, mask: int) -> None:
        """Push an operand."""
        height = self.height
        self.replace(height, kind, base, mask)
        self._state["height"] = self._build.add(height, number(1))

    def replace(self, index: ir.Value, kind: ir.Value | int, base: ir.Value, mask: int) -> None:
        """Put another operand at a position; its words are an address or a constant, and a mask."""
        place = self._place(index)
        for field, value in zip((_KIND, *_WORDS), (kind, base, mask), strict=True):
            store(self._build, number(value), place, number(field), _BYTE, 8)

    def kind(self, index: ir.Value) -> ir.Value:
        """Kind of the operand at a position."""
        return load(self._build, self._place(index), number(_KIND), _BYTE, I64, 8)

    def word(self, index: ir.Value, position: int) -> ir.Value:
        """A word of the operand at a position: 0 is its address or constant, 1 its mask."""
        return load(self._build, self._place(index), number(_WORDS[position]), _BYTE, I64, 8)

    def is_constant(self, index: ir.Value) -> ir.Value:
        """1 if the operand at a position is a constant, else 0; i64."""
        build = self._build
        return build.zext(build.icmp_unsigned("==", self.kind(index), number(CONSTANT_OPERAND)), I64)

    def count(self, kind: int, first: ir.Value, arity: ir.Value) -> ir.Value:
        """Number of a function's operands of one kind; they begin at a position."""
        build = self._build
        with counted(build, number(0), arity, carried=[number(0)]) as loop:
            found = self.kind(build.add(first, loop.index))
            alike = build.zext(build.icmp_unsigned("==", found, number(kind)), I64)
            loop.results = [build.add(loop.values[0], alike)]
        return loop.values[0]

    def _place(self, index: ir.Value) -> ir.Value:
        offset = self._build.mul(index, number(OPERAND_BYTES))
        return element_pointer(self._build, self._memory, offset, _BYTE)
