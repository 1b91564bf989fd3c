"""Data frames and arrays that hold more than numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.data.columns.kinds import HOLDS, recognized
from shine.data.files.numerals import numeral
from shine.data.files.source import RawColumn
from shine.lang.forms.names import listed, shortened, shown

_NUMBERS = "biuf"
"""Kinds of NumPy's types that are numbers."""

_REMEDIES = {
    "text": (
        "leave it out, or make 0/1 columns of it in a pipeline: make_pipeline(make_column_transformer("
        "(OneHotEncoder(sparse_output=False), {columns}), remainder='passthrough', "
        "verbose_feature_names_out=False).set_output(transform='pandas'), SymbolicRegressor())"
    ),
    "numbers as text": (
        "make numbers of it first, without signs and commas between thousands, in pandas: "
        "pandas.to_numeric(X[{first}].str.replace('[^0-9.eE+-]', '', regex=True))"
    ),
    "numbers and text": "make numbers of all its values, such as with pandas.to_numeric(..., errors='coerce')",
    "dates": "count the days since the first, in pandas: (X[{first}] - X[{first}].min()) / pandas.Timedelta(days=1)",
    "dates as text": (
        "make dates of it in pandas, pandas.to_datetime(X[{first}], dayfirst=...), and count days since the first: "
        "(X[{first}] - X[{first}].min()) / pandas.Timedelta(days=1)"
    ),
    "times as text": "make hours of it in pandas: pandas.to_timedelta(X[{first}]) / pandas.Timedelta(hours=1)",
    "times of day or durations": "count them in a unit, in pandas: X[{first}] / pandas.Timedelta(hours=1)",
    "complex numbers": "take their real and imaginary parts apart",
}
"""Remedies for columns of X, by their contents."""


def frame_problem(values: Any, name: str) -> str | None:
    """Message about a data frame, a series or an array of dates that cannot become numbers; None if it can.

    Parameters
    ----------
    values : array-like
        A data frame of pandas or Polars, an Arrow table, a series, or anything else.
    name : str
        ``X`` or ``y``, for messages.
    """
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        return f"{name} is sparse; make an array of it, with {name}.toarray()"
    records = getattr(getattr(values, "dtype", None), "names", None) is not None
    if records or (isinstance(values, Mapping) and not hasattr(values, "shape")):
        kind = "an array of records" if records else f"a {type(values).__name__}"
        return f"{name} is {kind}; make a data frame of it, with pandas.DataFrame({name})"
    return columns_problem(list(frame_columns(values)), name)


def dense(values: Any) -> Any:
    """A data frame of pandas with its sparse columns made dense; anything else as it is."""
    if not hasattr(values, "iloc"):
        return values
    if not hasattr(values, "columns"):
        return values.sparse.to_dense() if _is_sparse(values) else values
    sparse = [place for place in range(len(values.columns)) if _is_sparse(values.iloc[:, place])]
    values = values.copy(deep=False) if sparse else values
    for place in sparse:
        values.isetitem(place, values.iloc[:, place].sparse.to_dense())
    return values


def _is_sparse(column: Any) -> bool:
    return type(column.dtype).__name__ == "SparseDtype"


def columns_problem(columns: Sequence[tuple[object, Any]], name: str) -> str | None:
    """Message about columns of a data frame (see `frame_columns`); None if all can become numbers."""
    repeated = repeated_heading([heading for heading, _ in columns], name)
    if repeated is not None:
        return repeated
    found = [(heading, *problem) for heading, column in columns if (problem := _held(column)) is not None]
    return _message(name, found) if found else None


def repeated_heading(headings: Sequence[object], name: str) -> str | None:
    """The message for a heading that several columns have; None if there is none."""
    heading, count = Counter(headings).most_common(1)[0] if headings else ("", 1)
    return f"{name} has {count} columns with the heading {_shown(heading)}; rename them" if count > 1 else None


def array_problem(values: Any, name: str) -> str | None:
    """Message about an array-like of texts, rows of several lengths or other objects; None if NumPy makes numbers of
    it."""
    try:
        array = np.asarray(values, dtype=object)
    except ValueError:  # arrays of different lengths
        array = np.empty(len(values), dtype=object)
        array[:] = list(values)
    columns = [array] if array.ndim == 1 else list(array.T) if array.ndim == 2 else []
    found = []
    for place, column in enumerate(columns):
        problem = _held(column)
        if problem is not None and all(isinstance(value, str | float | int) or value is None for value in column):
            found.append((None if array.ndim == 1 else place, *problem))
    return _message(name, found) if found else _object_problem(array, name)


def _object_problem(array: NDArray[np.object_], name: str) -> str | None:
    """Message about the first value that is no number."""
    for place, value in np.ndenumerate(array) if array.ndim else ():
        if isinstance(value, Sized) and not isinstance(value, str | bytes):
            counts = [len(row) if isinstance(row, Sized) else -1 for row in array] if array.ndim == 1 else [0]
            other = next((row for row, count in enumerate(counts) if count != counts[0]), 0)
            if min(counts) >= 0 and other:
                return (
                    f"{name} has {counts[0]} values in row 0 and {counts[other]} in row {other}; all rows need as many"
                )
        elif isinstance(value, str) or value is None or hasattr(value, "__float__"):
            continue
        where = f"row {place[0]}" + (f", column {place[1]}" if array.ndim > 1 else "")
        return f"{name} has a value of type {type(value).__name__} in {where}; numbers are needed"
    return None


def columns_with(values: Any, infinite: bool) -> str:
    """The columns of a data frame or an array that have missing or infinite values, for a message; empty if none has.

    Parameters
    ----------
    values : array-like
    infinite : bool
        Whether to look for infinite values instead of missing ones.
    """
    columns: list[tuple[object, Any]] = list(frame_columns(values))
    if not columns:
        array = np.asarray(values)
        columns = list(enumerate(array.T)) if array.ndim == 2 else [(None, array)]
    told = []
    for heading, column in columns:
        found = recognized(RawColumn("", _array(column), str), ".")
        rows = np.flatnonzero(np.isinf(found.values) if infinite and found.kind == "number" else found.missing)
        if len(rows):
            place = "" if heading is None else f" in column {_shown(heading)}"
            told.append(f"{len(rows)}{place}, the first in row {rows[0]}")
    return listed(told, 5)


def frame_columns(values: Any) -> Iterator[tuple[object, Any]]:
    """Heading and values of each column of a data frame; a series, or an array of dates, is one column."""
    if hasattr(values, "iloc") and hasattr(values, "columns"):  # pandas
        yield from ((heading, values.iloc[:, place]) for place, heading in enumerate(values.columns))
    elif hasattr(values, "get_columns"):  # Polars
        yield from ((column.name, column) for column in values.get_columns())
    elif hasattr(values, "column_names") and hasattr(values, "column"):  # Arrow
        yield from ((heading, values.column(place)) for place, heading in enumerate(values.column_names))
    elif hasattr(values, "to_numpy") or (isinstance(values, np.ndarray) and values.dtype.kind in "mM"):
        yield getattr(values, "name", None), values if hasattr(values, "to_numpy") else values.ravel()


def _array(column: Any) -> NDArray[np.generic]:
    array: NDArray[np.generic] = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    return array


def _held(column: Any) -> tuple[str, str] | None:
    """Kind of a column's values and an example of text; None for numbers."""
    if getattr(getattr(column, "dtype", None), "kind", "O") in _NUMBERS:
        return None
    array = _array(column)
    if array.dtype.kind in _NUMBERS or array.ndim != 1:
        return None
    if array.dtype.kind == "c":
        return "complex numbers", ""
    found = recognized(RawColumn("", array, str), ".")
    if found.kind in ("date", "duration"):
        # Values of a column that tell whether it holds text.
        as_text = any(isinstance(value, str) for value in array[:100])
        return ({"date": "dates as text", "duration": "times as text"} if as_text else HOLDS)[found.kind], ""
    text = next((value for value in array if not _is_convertible(value)), None)
    if found.kind in ("number", "truth"):
        if text is None:
            return None
        return "numbers as text" if numeral(str(text), ",") else "numbers and text", str(text)
    return "text", str(array[int(np.flatnonzero(~found.missing)[0])] if text is None else text)


def _is_convertible(value: object) -> bool:
    """Whether Python makes a number of a value, as scikit-learn does."""
    if not isinstance(value, str):
        return True
    try:
        float(value)
    except ValueError:
        return False
    return True


def _message(name: str, found: Sequence[tuple[object, str, str]]) -> str:
    columns = []
    for heading, contents, example in found:
        place = name if heading is None or name == "y" else f"column {_shown(heading)}"
        columns.append(f"{place} holds {contents}{f', such as {shown(example)}' if example else ''}")
    message = f"{'; '.join(columns[:8])}{f' and {len(columns) - 8} more' if len(columns) > 8 else ''}"
    if name == "y" or found[0][0] is None:
        classes = name == "y" and found[0][1] == "text"
        return f"{message}; numbers are needed{' (SymbolicClassifier takes classes)' if classes else ''}"
    lines = [f"{name}: {message}; formulas need numbers"]
    for contents in dict.fromkeys(contents for _, contents, _ in found):
        own = [heading for heading, other, _ in found if other == contents]
        lines.append(f"{contents}: {_REMEDIES[contents].format(columns=own[:8], first=repr(own[0]))}")
    return "\n".join(lines)


def _shown(heading: object) -> str:
    return repr(shortened(heading)) if isinstance(heading, str) else str(heading)
