"""Filters and projections of Arrow's tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from shine.frames.arrow_table import ArrowTable
from shine.frames.querying import Frames
from shine.frames.running import Computed, Selection


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
