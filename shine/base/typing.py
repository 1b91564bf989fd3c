"""Types of NumPy arrays by their contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Numbers."""

Singles: TypeAlias = NDArray[np.float32]
"""Numbers in single precision, in half the memory."""

Indices: TypeAlias = NDArray[np.int64]
"""Positions, counts and sizes."""

Codes: TypeAlias = NDArray[np.int16]
"""Codes of the nodes of tapes, as a `PrimitiveSet` numbers them."""

Mask: TypeAlias = NDArray[np.bool_]
"""A selection of elements."""

Hashes: TypeAlias = NDArray[np.uint64]
"""Hashes of tapes."""

AnyArray: TypeAlias = NDArray[Any]
"""Numbers of a type known only at run time."""

ELEMENTS: dict[str, type[np.generic]] = {
    "Codes": np.int16,
    "Integers": np.int32,
    "Indices": np.int64,
    "Hashes": np.uint64,
    "Floats": np.float64,
    "Mask": np.bool_,
}
"""Elements of the arrays that a kernel takes, by the names of the types in its signature."""

Words: TypeAlias = Mapping[str, Any]
"""The words of a job by name, in a kernel: whole numbers and addresses."""

Address: TypeAlias = Any
"""Where an array is, in a kernel; 0 if there is none."""
