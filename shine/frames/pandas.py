"""Queries of pandas' data frames: ``import shine.pandas`` gives each of them an attribute ``shine``."""

from __future__ import annotations

from typing import Any

import numpy as np

from shine.frames.pandas_table import PandasTable
from shine.frames.querying import Frames
from shine.frames.running import Computed, Selection

_NULLABLE = {"float64": "Float64", "float32": "Float32", "int64": "Int64", "uint64": "UInt64", "bool": "boolean"}
"""pandas' types with missing values."""


class PandasFrames(Frames):
    """Filters and projections of a data frame, compiled to native code; ``import shine.pandas`` makes it ``df.shine``.

    Parameters
    ----------
    frame : pandas.DataFrame
    """

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


try:
    import pandas
except ImportError:
    raise ImportError("shine.pandas needs pandas; install it with: pip install 'shine[pandas]'") from None

pandas.api.extensions.register_dataframe_accessor("shine")(PandasFrames)
