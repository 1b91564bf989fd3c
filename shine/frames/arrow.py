"""Queries of Arrow's tables and record batches: `filter` and `eval`, chunk by chunk and without copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from shine.base.typing import AnyArray
from shine.frames.columns import Column, Encodings, Headings, Piece, codes_of
from shine.frames.language.types import ColumnType
from shine.frames.querying import Frames, caller, variables_of
from shine.frames.running import Computed, Selection
from shine.lang.forms.names import shown

_STORAGES = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{"float": "float32", "double": "float64", "bool": "bit"},
}
"""Storage of Arrow's types by their names."""

_TEXTS = ("string", "large_string", "string_view")

_CAST: Mapping[str, str] = {"halffloat": "float32", "string_view": "large_string"}
"""Types that are cast to others before they are read."""


class ArrowTable:
    """A table or a record batch."""

    def __init__(self, table: Any) -> None:
        if not (hasattr(table, "schema") and hasattr(table, "num_rows") and hasattr(table, "column")):
            raise TypeError(f"a table is a pyarrow.Table or a pyarrow.RecordBatch, not {type(table).__name__}")
        self._table, self._encodings = table, Encodings.of(table)
        self._headings = Headings(table.schema.names)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._table.num_rows)

    def column(self, name: str, is_quoted: bool) -> Column:
        """A column."""
        position = self._headings.position(name, is_quoted)
        if position is None:
            raise self._headings.missing(name)
        return arrow_column(self._table.column(position), name, self._encodings)


def arrow_column(array: Any, name: str, encodings: Encodings) -> Column:
    """An array or a chunked array as a column; a `TypeError` if its type has no values that queries read.

    Parameters
    ----------
    array : pyarrow.Array or pyarrow.ChunkedArray
    name : str
    encodings : Encodings
        Where texts are kept as codes.
    """
    kind = str(array.type)
    if kind == "null":
        return _nothing(len(array))
    if kind in _TEXTS or kind.startswith("dictionary"):
        return encodings.column(name, array, lambda: _read(_encoded(array, kind), name))
    return _read(array.cast(_CAST[kind]) if kind in _CAST else array, name)


def _read(array: Any, name: str) -> Column:
    chunks = [chunk for chunk in getattr(array, "chunks", [array]) if len(chunk)]
    type_ = _type(array.type, name)
    if any(chunk.null_count for chunk in chunks):
        type_ = replace(type_, missing="bits")
    return Column(type_, tuple(_piece(chunk, type_) for chunk in chunks))


def _encoded(array: Any, kind: str) -> Any:
    """Texts as codes of a dictionary without missing entries; the values of other dictionaries."""
    if kind in _TEXTS:
        return (array.cast(_CAST[kind]) if kind in _CAST else array).dictionary_encode()
    value_type = array.type.value_type
    chunks = getattr(array, "chunks", [array])
    if str(value_type) not in _TEXTS:
        return array.cast(value_type)
    if any(chunk.dictionary.null_count for chunk in chunks):
        return array.cast(value_type).dictionary_encode()
    return array


def _nothing(rows: int) -> Column:
    """A column of Arrow's type null: missing numbers."""
    marks = np.zeros(rows // 8 + 1, np.uint8)
    piece = Piece(rows, np.zeros(rows), marks=marks)
    return Column(ColumnType("float64", "bits"), (piece,) if rows else ())


def _type(kind: Any, name: str) -> ColumnType:
    text = str(kind)
    if text in _STORAGES:
        return ColumnType(_STORAGES[text])
    if text.startswith("date32"):
        return ColumnType("int32", meaning="time", unit="D")
    if text.startswith("date64"):
        return ColumnType("int64", meaning="time", unit="ms")
    if text.startswith("timestamp"):
        return ColumnType("int64", meaning="time", unit=kind.unit, zone=kind.tz)
    if text.startswith("duration"):
        return ColumnType("int64", meaning="duration", unit=kind.unit)
    if text.startswith("dictionary"):
        return ColumnType(_STORAGES[str(kind.index_type)], meaning="text")
    raise TypeError(f"column {shown(name)} is of type {text}, which queries do not read; cast it")


def _piece(chunk: Any, type_: ColumnType) -> Piece:
    codes = None
    if type_.meaning == "text":
        codes = codes_of(chunk.dictionary.to_pylist())
        chunk = chunk.indices
    marks, values = chunk.buffers()[:2]
    rows, first = len(chunk), chunk.offset
    if type_.storage == "bit":
        numbers = np.frombuffer(values, np.uint8)
    else:
        numbers = np.frombuffer(values, type_.storage, rows, first * np.dtype(type_.storage).itemsize)
    there: AnyArray | None = None
    if type_.missing == "bits":
        there = np.full((first + rows) // 8 + 1, 255, np.uint8) if marks is None else np.frombuffer(marks, np.uint8)
    return Piece(rows, numbers, first if type_.storage == "bit" else 0, there, first, codes)


__all__ = ["eval", "filter"]


class ArrowFrames(Frames):
    """Filters and projections of a table or record batch (see `shine.arrow`)."""

    _table = ArrowTable

    def _rows(self, found: Selection, result: str) -> Any:
        mask = arrow_mask(found)
        return mask if result == "mask" else self._frame.filter(mask)

    def _values(self, found: Computed) -> Any:
        return arrow_array(found)


def arrow_mask(found: Selection) -> Any:
    """The selected rows as an array of Arrow, whose bits are those that were computed, if the rows lie together."""
    import pyarrow

    if len(found.parts) == 1:
        return pyarrow.Array.from_buffers(pyarrow.bool_(), found.rows, [None, pyarrow.py_buffer(found.parts[0][1])])
    return pyarrow.array(found.mask())


def arrow_array(found: Computed) -> Any:
    """Values as an array of Arrow."""
    import pyarrow

    return pyarrow.array(found.values, mask=None if found.valid is None else ~np.asarray(found.valid))


def __dir__() -> list[str]:
    return __all__


def filter(
    table: Any,
    text: str,
    result: str = "indices",
    variables: Mapping[str, Any] | None = None,
    threads: int | None = None,
) -> Any:
    """The rows of a table where a condition is true; neither those where it is false nor those where a value is null.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.RecordBatch
        It is read in place, chunk by chunk.
    result : {"indices", "mask", "rows"}
        Positions of the rows, whether each row is one, or a table or record batch of them.
    text, variables, threads
        As for `shine.frames.querying.Frames.query`.

    Returns
    -------
    ndarray of uint32, pyarrow.BooleanArray, or what `table` is
        Indices are uint64 if the table has more than 2**32 rows.

    Raises
    ------
    UnsupportedSyntaxError
        If the text is no condition, a column does not exist, or types do not fit; with the place in the text.

    Examples
    --------
    >>> import pyarrow
    >>> table = pyarrow.table({"x": [1.0, 3.0, None, 7.0]})
    >>> filter(table, "x > 2.0")
    array([1, 3], dtype=uint32)
    """
    return ArrowFrames(table).query(text, result, variables_of(caller(), variables), threads)


def eval(table: Any, text: str, variables: Mapping[str, Any] | None = None, threads: int | None = None) -> Any:
    """The values of an expression for each row of a table.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.RecordBatch
    text : str
        An expression over columns, such as ``sqrt(a*a + b*b)``.
    variables, threads
        As for `filter`.

    Returns
    -------
    pyarrow.Array
        Of double, float, int64, uint64 or bool.

    Raises
    ------
    UnsupportedSyntaxError
        As for `filter`.

    Examples
    --------
    >>> import pyarrow
    >>> eval(pyarrow.table({"a": [3.0, None], "b": [4.0, 12.0]}), "sqrt(a*a + b*b)").to_pylist()
    [5.0, None]
    """
    return ArrowFrames(table).eval(text, variables_of(caller(), variables), threads)
