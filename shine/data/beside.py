"""Columns beside the features: those that a loss reads, taken out of a data frame or given as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.data.headings import frame_headings, names_of_headings
from shine.errors import DataError
from shine.lang.given import is_list
from shine.lang.names import listed, shown, similar, value_text

Beside = Mapping[str, ArrayLike] | Sequence[str]
"""The forms in which they are given: arrays by name, or headings of columns of the data frame."""


def taken_apart(X: Any, beside: Beside | None) -> tuple[Any, dict[str, ArrayLike]]:
    """The features, and the columns beside them by name.

    Parameters
    ----------
    X : array-like or data frame
    beside : mapping of str to array-like, or sequence of str, optional
        Arrays by name; or headings of columns of the data frame, which are then no features. A heading that is not an
        identifier is turned into one, as for features.

    Raises
    ------
    DataError
        If a column is missing, or X has no headings.
    TypeError
        If it is neither.
    """
    if beside is None:
        return X, {}
    if isinstance(beside, Mapping):
        return X, {str(name): values for name, values in beside.items()}
    if isinstance(beside, str) or not is_list(beside):
        allowed = "a mapping of names to arrays, or a list of columns of the data frame"
        raise TypeError(f"beside must be {allowed}, is {value_text(beside)}")
    headings = frame_headings(X)
    if headings is None:
        raise DataError("beside lists columns of a data frame, and X is none; give arrays: beside={'name': values}")
    for heading in beside:
        if heading not in headings:
            near = similar(str(heading), headings)
            hint = f"did you mean {shown(near)}? " if near else ""
            raise DataError(f"X has no column {value_text(heading)} to stand beside; {hint}it has {listed(headings)}")
    columns: dict[str, ArrayLike] = {
        name: np.asarray(X[heading]) for name, heading in zip(names_of_headings(beside), beside, strict=True)
    }
    return without_columns(X, beside), columns


def without_columns(X: Any, headings: Sequence[str]) -> Any:
    """A data frame without some of its columns; anything else as it is."""
    own = frame_headings(X)
    if own is None or not set(own) & set(headings):
        return X
    kept = [heading for heading in own if heading not in headings]
    return X.select(kept) if hasattr(X, "select") else X[kept]
