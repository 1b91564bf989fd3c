"""Inputs of a query: vectors of values and masks of missing ones, from columns as they lie in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, declare, element_pointer, load
from shine.compiler.codegen.numbers import splat
from shine.frames.language.types import ColumnType

GROUP = 64
"""Rows of a group: their mask is one word."""

AHEAD = 2048
"""Bytes that columns are fetched into the cache ahead of their use. Processors see one column coming by themselves, but
not two or more at once: a condition on two columns takes three quarters of the time with this."""

BYTE, BIT = ir.IntType(8), ir.IntType(1)
_LINE, _I32 = 64, ir.IntType(32)

ELEMENTS: dict[str, ir.Type] = {
    **{f"{sign}int{bits}": ir.IntType(bits) for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": ir.FloatType(),
    "float64": ir.DoubleType(),
    "bool": BYTE,
}
"""LLVM type of each type of values in memory."""


def size_of(kind: str) -> int:
    """Bytes of a type."""
    return 1 if kind == "bool" else np.dtype(kind).itemsize


def lanes(element: ir.Type, width: int) -> ir.VectorType:
    """A vector of some lanes."""
    return ir.VectorType(element, width)


class Inputs:
    """The columns of a query, and the words of their bitmaps in one group of rows.

    ``columns`` points to two addresses for each column, of its values and of what marks missing ones; ``offsets`` to
    two numbers each: the first row's position in these, in bits, if they are bitmaps.

    Parameters
    ----------
    builder : ir.IRBuilder
        Before the loop over groups.
    types : sequence of ColumnType
    columns, offsets : ir.Value
    """

    def __init__(
        self, builder: ir.IRBuilder, types: Sequence[ColumnType], columns: ir.Value, offsets: ir.Value
    ) -> None:
        self._builder, self._types = builder, types
        count = 2 * len(types)
        self._pointers = [load(builder, columns, ir.Constant(I64, i), POINTER, POINTER) for i in range(count)]
        self._offsets = [load(builder, offsets, ir.Constant(I64, i), I64, I64) for i in range(count)]
        self._words: dict[int, ir.Value] = {}

    def begin(self, group: ir.Value) -> None:
        """Read the words of a group of rows, and fetch later rows."""
        for column, type_ in enumerate(self._types):
            if type_.storage != "bit":
                self._fetch(self._pointers[2 * column], group, size_of(type_.storage))
            if type_.missing == "bytes":
                self._fetch(self._pointers[2 * column + 1], group, 1)
        bitmaps = [2 * i for i, each in enumerate(self._types) if each.storage == "bit"]
        bitmaps += [2 * i + 1 for i, each in enumerate(self._types) if each.missing == "bits"]
        self._words = {i: self._word(self._pointers[i], self._offsets[i], group) for i in bitmaps}

    def _fetch(self, pointer: ir.Value, group: ir.Value, size: int) -> None:
        """Fetch the lines of a group's numbers of some bytes."""
        build, module = self._builder, self._builder.module
        start = build.mul(group, ir.Constant(I64, GROUP * size))
        name = "llvm.prefetch.p0"
        kinds, labels = [POINTER, _I32, _I32, _I32], ("address", "writes", "locality", "cache")
        function = module.globals.get(name) or declare(module, name, ir.VoidType(), kinds, labels)
        for line in range(GROUP * size // _LINE):
            place = build.add(start, ir.Constant(I64, AHEAD + line * _LINE))
            numbers = [ir.Constant(_I32, number) for number in (0, 3, 1)]  # read, keep in all caches, data
            build.call(function, [element_pointer(build, pointer, place, BYTE), *numbers])

    def _word(self, pointer: ir.Value, offset: ir.Value, group: ir.Value) -> ir.Value:
        """64 bits at any position."""
        build = self._builder
        position = build.add(offset, build.mul(group, ir.Constant(I64, GROUP)))
        first, shift = build.lshr(position, ir.Constant(I64, 3)), build.and_(position, ir.Constant(I64, 7))
        low = build.load(element_pointer(build, pointer, first, BYTE), typ=I64, align=1)
        # Without a shift there may be no ninth byte.
        is_shifted = build.icmp_unsigned("!=", shift, ir.Constant(I64, 0))
        last = build.add(first, build.select(is_shifted, ir.Constant(I64, 8), ir.Constant(I64, 7)))
        high = build.zext(build.load(element_pointer(build, pointer, last, BYTE), typ=BYTE, align=1), I64)
        return build.call(i64_intrinsic(build.module, "llvm.fshr", 3), [high, low, shift])

    def bits(self, place: int, lane: ir.Value, width: int) -> ir.Value:
        """A mask of some lanes, from a bitmap's word."""
        build = self._builder
        word = build.lshr(self._words[place], lane)
        if width < GROUP:
            word = build.trunc(word, ir.IntType(width))
        return build.bitcast(word, lanes(BIT, width))

    def values(self, column: int, row: ir.Value, lane: ir.Value, width: int) -> ir.Value:
        """A vector of a column's values; a mask if it holds truth values."""
        build, storage = self._builder, self._types[column].storage
        if storage == "bit":
            return self.bits(2 * column, lane, width)
        element = ELEMENTS[storage]
        value = load(build, self._pointers[2 * column], row, element, lanes(element, width))
        return build.icmp_unsigned("!=", value, splat(value.type, 0)) if storage == "bool" else value

    def valid(self, column: int, value: ir.Value, row: ir.Value, lane: ir.Value) -> ir.Value | None:
        """Mask of the values that are not missing; None if none is."""
        build, missing, width = self._builder, self._types[column].missing, value.type.count
        if missing == "none":
            return None
        if missing == "bits":
            return self.bits(2 * column + 1, lane, width)
        if missing == "bytes":
            marks = load(build, self._pointers[2 * column + 1], row, BYTE, lanes(BYTE, width))
            return build.icmp_unsigned("==", marks, splat(marks.type, 0))
        if missing == "negative":
            return build.icmp_signed(">=", value, splat(value.type, 0))
        least = -(2 ** (value.type.element.width - 1))
        return build.icmp_signed("!=", value, splat(value.type, least))


def i64_intrinsic(module: ir.Module, name: str, arity: int) -> ir.Function:
    """An LLVM intrinsic of 64-bit integers."""
    name = f"{name}.i64"
    return module.globals.get(name) or declare(module, name, I64, [I64] * arity, [f"a{i}" for i in range(arity)])
