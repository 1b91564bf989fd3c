"""Warnings of extrapolation: a feature leaves the range of the rows that a formula was fitted to."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from shine.base.errors import ExtrapolationWarning
from shine.base.typing import Floats
from shine.lang.forms.names import listed, shown

MARGIN = 0.1
"""Margin of a range without a warning, as a share of it: new rows of the same kind often leave it a little."""


def outside(columns: Mapping[str, Floats], ranges: Mapping[str, tuple[float, float]]) -> dict[str, int]:
    """Number of rows in which each feature leaves its range by more than the margin; only features that do.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n_rows,)
    ranges : mapping of str to (float, float)
    """
    found = {}
    for name, (low, high) in ranges.items():
        column, margin = columns[name], MARGIN * (high - low)
        count = int(np.count_nonzero((column < low - margin) | (column > high + margin)))
        if count:
            found[name] = count
    return found


def warn_of_extrapolation(
    found: Mapping[str, int], ranges: Mapping[str, tuple[float, float]], headings: Mapping[str, str], stacklevel: int
) -> None:
    """Warn of features that leave their ranges, as `outside` found them."""
    told = [
        f"{shown(headings.get(name, name))} ({ranges[name][0]:.4g} to {ranges[name][1]:.4g}) in {count} "
        f"row{'s' * (count != 1)}"
        for name, count in found.items()
    ]
    warnings.warn(
        f"the formula extrapolates: X leaves the range of the rows it was fitted to, of {listed(told)}; to silence "
        "this, warnings.simplefilter('ignore', shine.ExtrapolationWarning)",
        ExtrapolationWarning,
        stacklevel=stacklevel + 1,
    )
