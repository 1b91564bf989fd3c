"""Numbers of 16 bits, float16 and bfloat16, which are read as float32."""

from __future__ import annotations

import numpy as np

from shine.base.typing import AnyArray

HALVES = ("float16", "bfloat16")
"""Types whose numbers are float32's, too. Programs in them compute in float32 here: with more digits, and in a wider
range."""


def widened(bits: AnyArray, dtype: str) -> AnyArray:
    """Numbers of 16 bits as float32, without rounding.

    Parameters
    ----------
    bits : ndarray of uint16, in the machine's byte order
    dtype : str
        One of `HALVES`.

    Returns
    -------
    ndarray of float32
        Of the same shape.
    """
    if dtype == "float16":
        return bits.view(np.float16).astype(np.float32)
    # bfloat16, which NumPy has not, is the upper half of float32.
    return (bits.astype(np.uint32) << 16).view(np.float32)
