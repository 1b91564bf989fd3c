"""What ``df.shine`` is for a data frame of pandas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shine.frames.pandas_table import PandasTable
from shine.frames.querying import caller, check_result, computed, selected, variables_of

_NULLABLE = {"float64": "Float64", "float32": "Float32", "int64": "Int64", "uint64": "UInt64", "bool": "boolean"}
"""pandas' types with missing values."""


class PandasFrames:
    """Filters and projections of a data frame, compiled to native code; ``import shine.pandas`` makes it ``df.shine``.

    Parameters
    ----------
    frame : pandas.DataFrame
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def query(
        self,
        text: str,
        result: str = "indices",
        variables: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> Any:
        """The rows where a condition is true; neither those where it is false nor those where a value is missing.

        Parameters
        ----------
        text : str
            A condition over columns, as for `pandas.DataFrame.query`: ``(x > 2.0) & (name in ("a", "b"))``. A heading
            that is no name stands in backticks; ``@limit`` is a variable of the calling function.
        result : {"indices", "mask", "rows"}
            Positions of the rows, whether each row is one, or a data frame of them.
        variables : mapping of str to object, optional
            Values of the names after ``@``, instead of the caller's variables.
        threads : int, optional
            Threads that share the rows of large tables; all processors by default. They change nothing in the result.

        Returns
        -------
        ndarray of uint32, ndarray of bool, or pandas.DataFrame
            Indices are uint64 if the table has more than 2**32 rows.

        Raises
        ------
        UnsupportedSyntaxError
            If the text is no condition, a column does not exist, or types do not fit; with the place in the text.

        Examples
        --------
        >>> import pandas, shine.pandas
        >>> df = pandas.DataFrame({"x": [1.0, 3.0, 5.0, 7.0]})
        >>> df.shine.query("(x > 2.0) & (x < 6.0)")
        array([1, 2], dtype=uint32)
        """
        check_result(result)
        found = selected(text, PandasTable(self._frame), variables_of(caller(), variables), threads)
        if result == "mask":
            return found.mask()
        indices = found.indices()
        return self._frame.take(indices) if result == "rows" else indices

    def eval(self, text: str, variables: Mapping[str, Any] | None = None, threads: int | None = None) -> Any:
        """The values of an expression, one a row.

        Parameters
        ----------
        text : str
            An expression over columns, such as ``sqrt(a*a + b*b)``.
        variables, threads
            As for `query`.

        Returns
        -------
        pandas.Series
            Of float64, float32, int64, uint64 or bool, with the data frame's index; of pandas' type with missing values
            if a column has such a type or a value is missing.

        Raises
        ------
        UnsupportedSyntaxError
            As for `query`.

        Examples
        --------
        >>> import pandas, shine.pandas
        >>> df = pandas.DataFrame({"a": [3.0, 5.0], "b": [4.0, 12.0]})
        >>> df.shine.eval("sqrt(a*a + b*b)").tolist()
        [5.0, 13.0]
        """
        import pandas

        found = computed(text, PandasTable(self._frame), variables_of(caller(), variables), threads)
        series = pandas.Series(found.values, index=self._frame.index, copy=False)
        if not found.is_nullable:
            return series
        series = series.astype(_NULLABLE[found.values.dtype.name])
        if found.valid is not None:
            series[~np.asarray(found.valid)] = pandas.NA
        return series
