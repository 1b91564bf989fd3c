"""A table's columns as compiled code reads them: in place, in one or several pieces."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import AnyArray
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
    """A column.

    Parameters
    ----------
    type : ColumnType
    pieces : tuple of Piece
    """

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
        ...

    def column(self, name: str, is_quoted: bool) -> Column:
        """A column by its heading.

        Raises
        ------
        LookupError
            If there is none, or several.
        TypeError
            If it has no values that queries read.
        """
        ...


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
            known = self._by_normal_form.get(normalized(name) if not is_quoted else name.strip())
            found = known if known is None else self._positions[known]
        if found is not None and len(found) > 1:
            raise LookupError(
                f"{len(found)} columns are called {shown(name)}; rename them, as a query cannot tell them apart"
            )
        return None if found is None else found[0]

    @cached_property
    def _by_normal_form(self) -> dict[str, str]:
        forms: dict[str, str] = {}
        for heading in self._positions:
            forms.setdefault(heading.strip(), heading)
            forms.setdefault(normalized(heading), heading)
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
