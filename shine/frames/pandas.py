"""Queries of pandas' data frames: ``import shine.pandas`` gives each of them an attribute ``shine``."""

from __future__ import annotations

from shine.frames.pandas_frames import PandasFrames

try:
    import pandas
except ImportError:
    raise ImportError("shine.pandas needs pandas; install it with: pip install 'shine[pandas]'") from None

pandas.api.extensions.register_dataframe_accessor("shine")(PandasFrames)
