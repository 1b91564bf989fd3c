"""Queries of Polars' data frames: ``import shine.polars`` gives each of them a namespace ``shine``."""

from __future__ import annotations

from typing import Any

from shine.base.errors import needing
from shine.frames.arrow import arrow_array, arrow_column, arrow_mask
from shine.frames.columns import Column, Encodings, Headings
from shine.frames.querying import Frames
from shine.frames.running import Computed, Selection
from shine.lang.forms.names import shown


class PolarsTable:
    """A data frame of Polars, whose columns Arrow reads in place."""

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


class PolarsFrames(Frames):
    """Filters and projections of a data frame; ``import shine.polars`` makes it ``df.shine``.

    A mask is a Series of Boolean, as are values one of their type.

    Examples
    --------
    >>> import polars, shine.polars
    >>> df = polars.DataFrame({"x": [1.0, 3.0, None, 7.0]})
    >>> df.shine.query("x > 2.0")
    array([1, 3], dtype=uint32)
    """

    _table = PolarsTable

    def _rows(self, found: Selection, result: str) -> Any:
        import polars

        mask = polars.Series("mask", arrow_mask(found))
        return mask if result == "mask" else self._frame.filter(mask)

    def _values(self, found: Computed) -> Any:
        import polars

        return polars.Series("", arrow_array(found))


with needing("shine.polars", "Polars with Arrow", "polars"):
    import polars
    import pyarrow  # noqa: F401  # reads the columns in place

polars.api.register_dataframe_namespace("shine")(PolarsFrames)
