"""Queries of Polars' data frames: ``import shine.polars`` gives each of them a namespace ``shine``."""

from __future__ import annotations

from shine.frames.polars_frames import PolarsFrames

try:
    import polars
    import pyarrow  # reads the columns in place
except ImportError:
    raise ImportError("shine.polars needs Polars and Arrow; install them with: pip install 'shine[polars]'") from None

polars.api.register_dataframe_namespace("shine")(PolarsFrames)
