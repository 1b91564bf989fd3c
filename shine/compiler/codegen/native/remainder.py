"""The rows after the last full vector of columns of several types: copied to a vector of their own and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, element_pointer, load, stack, store

_BYTE = ir.IntType(8)
_ZERO, _ONE = ir.Constant(I64, 0), ir.Constant(I64, 1)


class Remainder:
    """A vector of rows for each column, on the stack; `table` points to the vectors."""

    def __init__(self, builder: ir.IRBuilder, dtypes: Sequence[str], name: str, vector_bytes: int) -> None:
        self.builder, self._vector_bytes = builder, vector_bytes
        self.table = stack(builder, POINTER, max(len(dtypes), 1))
        self._slots = stack(builder, _BYTE, vector_bytes * max(len(dtypes), 1))
        # One loop copies all columns of a size, so that thousands of columns need little code.
        self._positions: dict[int, tuple[ir.Value, ir.Value]] = {}
        for size in sorted({np.dtype(dtype).itemsize for dtype in dtypes}):
            positions = [i for i, dtype in enumerate(dtypes) if np.dtype(dtype).itemsize == size]
            kind = ir.ArrayType(I64, len(positions))
            listing = ir.GlobalVariable(builder.module, kind, f"{name}.{size}")
            listing.type = POINTER
            listing.linkage, listing.global_constant = "internal", True
            listing.initializer = ir.Constant(kind, positions)
            self._positions[size] = listing, ir.Constant(I64, len(positions))

    def point(self) -> None:
        """Let the table point to the vectors."""
        build = self.builder
        for _, position in self._columns():
            store(build, self._slot(position), self.table, position, POINTER)

    def fill(self, columns: ir.Value, first: ir.Value, rest: ir.Value, width: int) -> None:
        """Copy the last `rest` rows, from row `first` on, to the vectors; the free lanes repeat the last row."""
        build = self.builder
        last = build.sub(rest, _ONE)
        for element, position in self._columns():
            source = load(build, columns, position, POINTER, POINTER)
            with counted(build, _ZERO, ir.Constant(I64, width)) as lane:
                beyond = build.icmp_signed(">", lane.index, last)
                row = build.add(first, build.select(beyond, last, lane.index))
                store(build, load(build, source, row, element, element), self._slot(position), lane.index, element)

    def empty(self, columns: ir.Value, first: ir.Value, rest: ir.Value) -> None:
        """Copy `rest` rows of the vectors to the columns, from row `first` on."""
        build = self.builder
        for element, position in self._columns():
            target = load(build, columns, position, POINTER, POINTER)
            with counted(build, _ZERO, rest) as lane:
                value = load(build, self._slot(position), lane.index, element, element)
                store(build, value, target, build.add(first, lane.index), element)

    def _columns(self) -> Iterator[tuple[ir.Type, ir.Value]]:
        """Loops over all columns, one for each size; yields the type of an element and a column's position."""
        for size, (listing, count) in self._positions.items():
            with counted(self.builder, _ZERO, count) as column:
                yield ir.IntType(8 * size), load(self.builder, listing, column.index, I64, I64)

    def _slot(self, position: ir.Value) -> ir.Value:
        offset = self.builder.mul(position, ir.Constant(I64, self._vector_bytes))
        return element_pointer(self.builder, self._slots, offset, _BYTE)
