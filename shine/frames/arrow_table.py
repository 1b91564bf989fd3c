"""Arrow's tables and record batches as tables of queries, chunk by chunk and without copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shine.frames.columns import Column, Headings, Piece, codes_of
from shine.lang.names import shown
from shine.lang.queries.types import ColumnType
from shine.typing import AnyArray

_STORAGES = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{"float": "float32", "double": "float64", "bool": "bit"},
}
"""Storage of Arrow's types by their names."""

_TEXTS = ("string", "large_string", "string_view")


class ArrowTable:
    """A table or a record batch.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.RecordBatch
    """

    def __init__(self, table: Any) -> None:
        self._table = table
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
        return arrow_column(self._table.column(position), name)


def arrow_column(array: Any, name: str) -> Column:
    """An array or a chunked array as a column.

    Raises
    ------
    TypeError
        If its type has no values that queries read.
    """
    chunks = list(getattr(array, "chunks", None) or [array]) if hasattr(array, "num_chunks") else [array]
    chunks = [chunk for chunk in chunks if not hasattr(chunk, "num_chunks")]
    kind = str(array.type)
    if kind == "null":
        return _nothing(len(array))
    if kind in _TEXTS:
        chunks = _encoded(array)
    elif kind == "halffloat":
        chunks = [chunk.cast("float32") for chunk in chunks]
    if not chunks:
        chunks = [array.combine_chunks()] if hasattr(array, "combine_chunks") else [array]
        chunks = [chunk for each in chunks for chunk in getattr(each, "chunks", [each])]
    type_ = _type(chunks[0].type if chunks else array.type, name)
    if any(chunk.null_count for chunk in chunks):
        type_ = ColumnType(type_.storage, "bits", type_.meaning, type_.unit, type_.zone)
    return Column(type_, tuple(_piece(chunk, type_) for chunk in chunks if len(chunk)))


def _encoded(array: Any) -> Sequence[Any]:
    encoded = array.dictionary_encode()
    return list(encoded.chunks) if hasattr(encoded, "chunks") else [encoded]


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
    if text.startswith("dictionary") and str(kind.value_type) in _TEXTS:
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
        size = np.dtype(type_.storage).itemsize
        numbers = np.frombuffer(values, type_.storage, rows, first * size)
    there: AnyArray | None = None
    if type_.missing == "bits":
        there = np.full((first + rows) // 8 + 1, 255, np.uint8) if marks is None else np.frombuffer(marks, np.uint8)
    return Piece(rows, numbers, first if type_.storage == "bit" else 0, there, first, codes)
