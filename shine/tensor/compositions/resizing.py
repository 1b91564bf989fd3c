"""Images of another size: each element of the result has a place between those of the image, axis by axis.

How places follow from sizes is the frontends' matter, because libraries differ in the last bit, and nearest neighbours
jump there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.base.errors import FormError
from shine.base.typing import AnyArray
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value
from shine.tensor.form.types import FLOATS


def upsample(b: FunctionBuilder, x: Value, factors: Sequence[int]) -> Value:
    """Each element repeated along each axis: enlargement by whole factors to the nearest neighbour.

    Parameters
    ----------
    b : FunctionBuilder
    x : Value
    factors : sequence of int
        One for each axis.
    """
    if len(factors) != x.type.rank or min(factors, default=1) < 1:
        raise FormError(f"factors = {list(factors)}: {x.type} needs a number for each axis, at least 1")
    ones = [n for size in x.type.shape for n in (size, 1)]
    repeated = [n for size, factor in zip(x.type.shape, factors, strict=True) for n in (size, factor)]
    x = b.emit("broadcast", [b.emit("reshape", [x], shape=tuple(ones))[0]], shape=tuple(repeated))[0]
    sizes = tuple(size * factor for size, factor in zip(repeated[::2], factors, strict=True))
    return b.emit("reshape", [x], shape=sizes)[0]


def resize_nearest(b: FunctionBuilder, x: Value, axis: int, places: AnyArray) -> Value:
    """The elements at some places of an axis.

    Parameters
    ----------
    b : FunctionBuilder
    x : Value
    axis : int
    places : ndarray of shape (n,)
        Whole numbers, one for each element of the result; those outside the axis mean its nearest end.
    """
    length = _length(x, axis)
    indices = np.clip(places, 0, length - 1).astype(np.int64)
    factor = len(indices) // length
    if factor and np.array_equal(indices, np.arange(length).repeat(factor)):
        factors = [1] * x.type.rank
        factors[axis] = factor
        return x if factor == 1 else upsample(b, x, factors)
    return b.emit("gather", [x, b.constant(indices, "i64")], axis=axis)[0]


def resize_linear(b: FunctionBuilder, x: Value, axis: int, places: AnyArray) -> Value:
    """Elements between the two neighbours of places along an axis, in proportion to the distances.

    Parameters
    ----------
    b : FunctionBuilder
    x : Value
        Of floats.
    axis : int
    places : ndarray of shape (n,)
        One for each element of the result; those outside the axis mean its nearest end.
    """
    if x.type.dtype not in FLOATS:
        raise FormError(f"{x.type} has nothing between its elements; cast it to one of {', '.join(sorted(FLOATS))}")
    places = np.clip(places, 0, _length(x, axis) - 1)
    below = np.floor(places)
    low = resize_nearest(b, x, axis, below)
    if np.array_equal(below, places):
        return low
    high = resize_nearest(b, x, axis, np.ceil(places))
    shares = (places - below).reshape(-1, *(1,) * (x.type.rank - 1 - axis))
    step = b.emit("mul", [b.emit("sub", [high, low])[0], b.constant(shares, x.type.dtype)])[0]
    return b.emit("add", [low, step])[0]


def _length(x: Value, axis: int) -> int:
    length = x.type.shape[axis]
    if not length:
        raise FormError(f"{x.type} is empty along axis {axis}: nothing is near its places")
    return length
