"""A table's columns as compiled code reads them, in place, and the vectors of values and masks made of them."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from llvmlite import ir

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
from shine.compiler.codegen.blocks import I64, POINTER, declare, element_pointer, load
from shine.compiler.codegen.numbers import splat
from shine.frames.language.types import ColumnType
from shine.lang.forms.names import listed, normalized, shown, similar


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of a column that lie together.

    Parameters
    ----------
    rows : int
    values : ndarray
        One number a row, at any distance; or the bytes of a bitmap.
    first : int
        Position of the first row in a bitmap of values.
    marks : ndarray, optional
        Bytes that mark missing values, or the bytes of a bitmap of those that are there.
    first_mark : int
        Position of the first row in these.
    codes : mapping of str to int
        Code of each text.
    """

    rows: int
    values: AnyArray
    first: int = 0
    marks: AnyArray | None = None
    first_mark: int = 0
    codes: Mapping[str, int] | None = None


@dataclass(frozen=True, eq=False)
class Column:
    """A column."""

    type: ColumnType
    pieces: tuple[Piece, ...]

    @cached_property
    def starts(self) -> list[int]:
        """First row of each piece, and the number of rows."""
        return [0, *accumulate(piece.rows for piece in self.pieces)]

    def at(self, row: int) -> tuple[Piece, int]:
        """The piece with a row, and the row's position in it."""
        number = bisect_right(self.starts, row) - 1
        return self.pieces[number], row - self.starts[number]


class Table(Protocol):
    """Interface of tables to queries."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    def column(self, name: str, is_quoted: bool) -> Column:
        """A column by its heading.

        Raises
        ------
        LookupError
            If there is none, or several.
        TypeError
            If it has no values that queries read.
        """


@dataclass(frozen=True)
class Segment:
    """Rows that lie together in all columns of a query."""

    start: int
    stop: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start


def segments(columns: Sequence[Column], rows: int) -> Iterator[Segment]:
    """The rows of a table, divided where a piece of any column ends."""
    bounds = sorted({0, rows}.union(*(column.starts for column in columns)))
    return (Segment(start, stop) for start, stop in pairwise(bounds))


class Headings:
    """The columns of a table by their headings.

    Parameters
    ----------
    headings : sequence
        Of any type; they are found by their texts.
    """

    def __init__(self, headings: Sequence[object]) -> None:
        self._positions: dict[str, list[int]] = {}
        for position, heading in enumerate(headings):
            self._positions.setdefault(str(heading), []).append(position)

    def position(self, name: str, is_quoted: bool) -> int | None:
        """Position of a column; None if there is none. A name without quotes is found as Python reads it."""
        found = self._positions.get(name)
        if found is None:
            known = self._by_normal_form.get(normalized(name) if not is_quoted else name.strip(), ())
            if len(known) > 1:
                raise LookupError(f"{shown(name)} may be {listed(map(repr, known))}; write the heading in backticks")
            found = self._positions[known[0]] if known else None
        if found is not None and len(found) > 1:
            raise LookupError(
                f"{len(found)} columns are called {shown(name)}; rename them, as a query cannot tell them apart"
            )
        return None if found is None else found[0]

    @cached_property
    def _by_normal_form(self) -> dict[str, list[str]]:
        forms: dict[str, list[str]] = {}
        for heading in self._positions:
            for form in {heading.strip(), normalized(heading)}:
                forms.setdefault(form, []).append(heading)
        return forms

    def missing(self, name: str, others: Sequence[str] = ()) -> LookupError:
        """The error about a column that does not exist."""
        known = [*self._positions, *others]
        near = similar(name, known)
        hint = f"did you mean {_written(near)}? " if near else ""
        return LookupError(f"there is no column {shown(name)}; {hint}columns are {listed(known) or 'none'}")


def _written(heading: str) -> str:
    """A heading as a query writes it."""
    return heading if heading.isidentifier() else f"`{heading}`"


def codes_of(texts: Sequence[object]) -> dict[str, int]:
    """Code of each text of a dictionary; an entry that is missing has none."""
    return {text: code for code, text in enumerate(texts) if isinstance(text, str)}


NUMBERS: Mapping[str, str] = {
    **{kind: kind for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{"float32": "float32", "float64": "float64", "bool": "bool"},
}
"""Storage of each of NumPy's types."""


def numpy_piece(values: AnyArray, marks: AnyArray | None = None) -> tuple[str, Piece]:
    """A piece of a NumPy array, copied only if its bytes are swapped or lie at odd addresses, and its storage."""
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    if not values.dtype.isnative or not values.flags.aligned:
        values = values.astype(values.dtype.newbyteorder("="))
    return NUMBERS[values.dtype.name], Piece(len(values), values, marks=marks)


class Encodings:
    """The encoded columns of one data frame.

    A column is encoded again if its memory is another one. Its former memory is kept until then, so that no other
    column can lie at the same addresses.
    """

    _kept: ClassVar[dict[int, tuple[weakref.ref[Any], Encodings]]] = {}

    def __init__(self) -> None:
        self._columns: dict[str, tuple[Any, Column]] = {}
        self._codes: dict[str, tuple[Any, dict[str, int]]] = {}

    @classmethod
    def of(cls, frame: object) -> Encodings:
        """The columns of a data frame; new ones if it has none."""
        key = id(frame)
        kept = cls._kept.get(key)
        if kept is not None and kept[0]() is frame:
            return kept[1]
        made = cls()
        cls._kept[key] = weakref.ref(frame, lambda dead: cls._forget(key, dead)), made
        return made

    @classmethod
    def _forget(cls, key: int, dead: weakref.ref[Any]) -> None:
        if key in cls._kept and cls._kept[key][0] is dead:
            del cls._kept[key]

    def column(self, name: str, source: Any, encode: Callable[[], Column]) -> Column:
        """The encoded column for an array of Arrow."""
        known = self._columns.get(name)
        if known is not None and _layout(known[0]) == _layout(source):
            return known[1]
        made = encode()
        self._columns[name] = source, made
        return made

    def codes(self, name: str, categories: Any) -> dict[str, int] | None:
        """Codes of the categories of pandas, which never change; None if one is no text."""
        known = self._codes.get(name)
        if known is None or known[0] is not categories:
            known = categories, codes_of(list(categories))
            self._codes[name] = known
        return known[1] if len(known[1]) == len(categories) else None


def _layout(array: Any) -> list[tuple[int, int, str, list[int]]]:
    """Address, step and length of an array."""
    return [
        (
            len(chunk),
            chunk.offset,
            str(chunk.type),
            [buffer.address for buffer in chunk.buffers() if buffer is not None],
        )
        for chunk in getattr(array, "chunks", [array])
    ]


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
