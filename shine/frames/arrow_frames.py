"""Filters and projections of Arrow's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shine.frames.arrow_table import ArrowTable
from shine.frames.querying import check_result, computed, selected
from shine.frames.running import Computed, Selection


def arrow_filter(table: Any, text: str, result: str, variables: Mapping[str, Any], threads: int | None) -> Any:
    """See `shine.arrow.filter`."""
    check_result(result)
    found = selected(text, ArrowTable(table), variables, threads)
    if result == "indices":
        return found.indices()
    return arrow_mask(found) if result == "mask" else table.filter(arrow_mask(found))


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


def arrow_eval(table: Any, text: str, variables: Mapping[str, Any], threads: int | None) -> Any:
    """See `shine.arrow.eval`."""
    return arrow_array(computed(text, ArrowTable(table), variables, threads))
