"""How equal two arrays of floating-point numbers are: to the bit, or by units in the last place."""

from __future__ import annotations

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
