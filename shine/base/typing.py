"""Types of NumPy arrays by their contents."""

from __future__ import annotations

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
