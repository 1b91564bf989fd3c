"""Queries of Arrow's tables and record batches: `filter` and `eval`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shine.frames.arrow_table import ArrowTable
from shine.frames.querying import Frames, caller, variables_of
from shine.frames.running import Computed, Selection

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
