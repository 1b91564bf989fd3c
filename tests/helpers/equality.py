"""Compares arrays of floating-point numbers: to the bit, or in units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def same_bits(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Where two arrays are identical, signs of zero included; all NaNs count as one."""
    nan = np.isnan(first) & np.isnan(second)
    return nan | ((first == second) & (np.signbit(first) == np.signbit(second)))


def ulps(first: NDArray[np.floating], second: NDArray[np.floating]) -> NDArray[np.floating]:
    """Distance in units of the last place of the second."""
    with np.errstate(all="ignore"):
        distance = np.abs(first - second) / np.spacing(np.abs(second))
    return np.where(
        (first == second) | (np.isnan(first) & np.isnan(second)), 0, np.where(np.isfinite(distance), distance, np.inf)
    )


def assert_same_bits(found: NDArray[Any], expected: NDArray[Any], what: str = "") -> None:
    """Fail unless all bits are equal, except those of NaNs."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if found.dtype.kind == "f":
        nan = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(found), nan, err_msg=what)
        found, expected = found[~nan], expected[~nan]
    unsigned = f"u{found.dtype.itemsize}"
    np.testing.assert_array_equal(found.view(unsigned), expected.view(unsigned), err_msg=what)
