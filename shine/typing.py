"""Types of NumPy arrays, by what they hold."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Numbers."""

Singles: TypeAlias = NDArray[np.float32]
"""Numbers of half the precision, where twice as many fit."""

Indices: TypeAlias = NDArray[np.int64]
"""Positions, counts and sizes."""

Codes: TypeAlias = NDArray[np.int16]
"""What the nodes of tapes are, numbered by a `PrimitiveSet`."""

Mask: TypeAlias = NDArray[np.bool_]
"""Which elements are meant."""

Hashes: TypeAlias = NDArray[np.uint64]
"""Hashes of tapes."""

AnyArray: TypeAlias = NDArray[Any]
"""Numbers of a type that is known when the program runs."""
