"""Values of a stream's columns -> numbers, as the preparation of a data set says."""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats, Mask
from shine.data.columns.kinds import Column
from shine.data.datasets.preparation import PreparedColumn
from shine.data.files.source import RawColumn
from shine.data.streams.streams import Texts, Values


def gone(values: Values) -> Mask | None:
    """Which rows have no value; None if all have one by their type."""
    if isinstance(values, Texts):
        return values.codes < 0
    if values.dtype.kind in "mM":
        missing: Mask = np.isnat(values)
        return missing
    return np.isnan(values) if values.dtype.kind == "f" else None


def numbers_of(own: PreparedColumn, values: Values) -> list[Floats]:
    """The columns of numbers of some rows."""
    raw = RawColumn(own.heading, np.zeros(0), str)
    if isinstance(values, Texts):
        texts = np.array([*values.texts, None], object)
        return [numbers[values.codes] for numbers in own.numbers(Column(raw, "text", texts))]
    if values.dtype.kind in "mM":
        return own.numbers(Column(raw, own.raw_kind, values.astype(f"{values.dtype.kind}8[us]")))
    return [values.astype(np.float64, copy=False)]
