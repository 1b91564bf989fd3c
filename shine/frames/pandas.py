"""Queries of pandas' data frames: ``import shine.pandas`` gives each of them an attribute ``shine``."""

from __future__ import annotations

import contextlib
import datetime
from dataclasses import replace
from typing import Any

import numpy as np

from shine.base.errors import needing
from shine.base.typing import AnyArray
from shine.frames.arrow import arrow_column
from shine.frames.columns import NUMBERS, Column, Encodings, Headings, Piece, codes_of, numpy_piece
from shine.frames.language.types import UNITS, ColumnType
from shine.frames.querying import Frames
from shine.frames.running import Computed, Selection
from shine.lang.forms.names import shown

_NULLABLE = {"float64": "Float64", "float32": "Float32", "int64": "Int64", "uint64": "UInt64", "bool": "boolean"}
"""pandas' types with missing values."""


class PandasTable:
    """A data frame."""

    def __init__(self, frame: Any) -> None:
        self._frame, self._encodings = frame, Encodings.of(frame)
        self._headings = Headings(list(frame.columns))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self._frame)

    def column(self, name: str, is_quoted: bool) -> Column:
        """A column, or a level of the index by its name, or ``index``."""
        position = self._headings.position(name, is_quoted)
        if position is not None:
            return pandas_column(self._frame.iloc[:, position].array, name, self._encodings)
        index = self._frame.index
        names = [f"ilevel_{level}" if each is None else each for level, each in enumerate(index.names)]
        if name == "index" and index.nlevels == 1:
            name = names[0]
        if name in names:
            return pandas_column(index.get_level_values(names.index(name)).array, name, self._encodings)
        raise self._headings.missing(name, [each for each in index.names if isinstance(each, str)])


def pandas_column(array: Any, name: str, encodings: Encodings) -> Column:
    """An array of pandas as a column; texts of Arrow are kept in `encodings`.

    A `TypeError` if its type has no values that queries read.
    """
    dtype = array.dtype
    kind = type(dtype).__name__
    if kind == "ArrowDtype" or (kind == "StringDtype" and dtype.storage == "pyarrow"):
        return arrow_column(array.__arrow_array__(), name, encodings)
    if kind == "CategoricalDtype":
        return _categorical(array, name, encodings)
    if hasattr(array, "_mask") and hasattr(array, "_data"):
        storage, piece = numpy_piece(array._data, array._mask)
        return Column(ColumnType(storage, "bytes"), (piece,))
    zone = getattr(dtype, "tz", None)
    values = np.asarray(array.tz_convert(None) if zone is not None else array)
    if values.dtype.kind in "mM":
        return _times(values, None if zone is None else str(zone), name)
    if values.dtype.kind in "OUT":
        return _objects(array, name, encodings)
    if values.dtype.name not in (*NUMBERS, "float16"):
        return _refused(array, name)
    storage, piece = numpy_piece(values)
    return Column(ColumnType(storage), (piece,))


def _times(values: AnyArray, zone: str | None, name: str) -> Column:
    unit, count = np.datetime_data(values.dtype)
    if unit not in UNITS or count != 1:
        raise TypeError(f"column {shown(name)} counts {count} {unit}; convert it to s, ms, us or ns")
    meaning = "time" if values.dtype.kind == "M" else "duration"
    _, piece = numpy_piece(values.view(np.int64))
    return Column(ColumnType("int64", "least", meaning, unit, zone), (piece,))


def _categorical(array: Any, name: str, encodings: Encodings) -> Column:
    categories = array.categories
    storage, piece = numpy_piece(array.codes)
    codes = encodings.codes(name, categories)
    if codes is None:
        # Categories of numbers or dates: their values.
        values = pandas_column(categories.take(np.maximum(array.codes, 0)).array, name, encodings)
        marked = tuple(replace(each, marks=array.codes < 0) for each in values.pieces)
        return Column(replace(values.type, missing="bytes"), marked)
    return Column(ColumnType(storage, "negative", "text"), (replace(piece, codes=codes),))


def _objects(array: Any, name: str, encodings: Encodings) -> Column:
    """Texts, truth values or dates as Python's objects; they are read at each call, as they may be others by then."""
    import pandas

    try:
        codes, texts = pandas.factorize(np.asarray(array, dtype=object))
    except TypeError:
        raise TypeError(f"column {shown(name)} has Python objects; convert it to numbers, dates or texts") from None
    known = list(texts)
    if known and all(isinstance(text, bool | np.bool_) for text in known):
        values = np.array([bool(text) for text in known])[codes]
        return Column(ColumnType("bool", "bytes"), (numpy_piece(values, (codes < 0))[1],))
    if known and all(isinstance(text, datetime.date) for text in known):
        with contextlib.suppress(ValueError):  # some with a time zone and some without
            return pandas_column(pandas.to_datetime(known).array.take(codes, allow_fill=True), name, encodings)
    if not all(isinstance(text, str) for text in known):
        other = next(text for text in known if not isinstance(text, str))
        raise TypeError(
            f"column {shown(name)} has Python objects of type {type(other).__name__}; convert it to numbers, dates or "
            "texts"
        )
    return Column(ColumnType("int64", "negative", "text"), (Piece(len(codes), codes, codes=codes_of(known)),))


def _refused(array: Any, name: str) -> Column:
    raise TypeError(f"column {shown(name)} is of type {array.dtype}, which queries do not read; convert it")


class PandasFrames(Frames):
    """Filters and projections of a data frame as native code; ``import shine.pandas`` makes it ``df.shine``."""

    _table = PandasTable

    def _rows(self, found: Selection, result: str) -> Any:
        return found.mask() if result == "mask" else self._frame.take(found.indices())

    def _values(self, found: Computed) -> Any:
        import pandas

        series = pandas.Series(found.values, index=self._frame.index, copy=False)
        if not found.is_nullable:
            return series
        series = series.astype(_NULLABLE[found.values.dtype.name])
        if found.valid is not None:
            series[~np.asarray(found.valid)] = pandas.NA
        return series


with needing("shine.pandas", "pandas", "pandas"):
    import pandas

pandas.api.extensions.register_dataframe_accessor("shine")(PandasFrames)
