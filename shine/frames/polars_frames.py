"""What ``df.shine`` is for a data frame of Polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shine.frames.arrow_frames import arrow_array, arrow_mask
from shine.frames.arrow_table import arrow_column
from shine.frames.columns import Column, Headings
from shine.frames.encodings import Encodings
from shine.frames.querying import caller, check_result, computed, selected, variables_of
from shine.lang.names import shown


class PolarsTable:
    """A data frame of Polars, whose columns Arrow reads in place.

    Parameters
    ----------
    frame : polars.DataFrame
    """

    def __init__(self, frame: Any) -> None:
        self._frame, self._encodings = frame, Encodings.of(frame)
        self._headings = Headings(frame.columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._frame.height)

    def column(self, name: str, is_quoted: bool) -> Column:
        """A column."""
        position = self._headings.position(name, is_quoted)
        if position is None:
            raise self._headings.missing(name)
        series = self._frame.to_series(position)
        import polars
        import pyarrow

        # The newest forms of Arrow are those that Polars has; others would be copies.
        newest = polars.CompatLevel.newest()
        try:
            chunks = [part.to_arrow(compat_level=newest) for part in series.get_chunks()]
        except (pyarrow.ArrowException, polars.exceptions.PolarsError):
            raise TypeError(f"column {shown(name)} is {series.dtype}, which queries do not read; cast it") from None
        return arrow_column(pyarrow.chunked_array(chunks), name, self._encodings)


class PolarsFrames:
    """Filters and projections of a data frame; ``import shine.polars`` makes it ``df.shine``.

    Parameters
    ----------
    frame : polars.DataFrame
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
        """The rows where a condition is true, as `shine.frames.pandas_frames.PandasFrames.query`.

        Returns
        -------
        ndarray of uint32, polars.Series of Boolean, or polars.DataFrame

        Examples
        --------
        >>> import polars, shine.polars
        >>> df = polars.DataFrame({"x": [1.0, 3.0, None, 7.0]})
        >>> df.shine.query("x > 2.0")
        array([1, 3], dtype=uint32)
        """
        import polars

        check_result(result)
        found = selected(text, PolarsTable(self._frame), variables_of(caller(), variables), threads)
        if result == "indices":
            return found.indices()
        mask = polars.Series("mask", arrow_mask(found))
        return mask if result == "mask" else self._frame.filter(mask)

    def eval(self, text: str, variables: Mapping[str, Any] | None = None, threads: int | None = None) -> Any:
        """The values of an expression, one a row, as `shine.frames.pandas_frames.PandasFrames.eval`.

        Returns
        -------
        polars.Series
        """
        import polars

        found = computed(text, PolarsTable(self._frame), variables_of(caller(), variables), threads)
        return polars.Series("", arrow_array(found))
