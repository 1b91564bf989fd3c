"""Pooling over windows of images, and their resizing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.errors import FormError
from shine.base.typing import AnyArray
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value
from shine.tensor.form.types import FLOATS

MOST_PADDED = 1 << 24
"""Most elements of an axis with its padding, and of a window: damaged files ask for billions."""


@dataclass(frozen=True)
class Windows:
    """Windows along the axes of an image.

    Parameters
    ----------
    axes : tuple of int
        The axes that are pooled. For channels last they are 1 and 2.
    sizes, strides : tuple of int
        One number for each of the axes, as below.
    low, high : tuple of int
        Padding before and after the elements; empty for none.
    dilation : tuple of int
        Distance between the elements of a window; empty for 1.
    ceil : bool
        Whether a last window may reach beyond the padding, if it begins within the elements or the padding before.
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    ceil: bool = False

    def along(self, shape: Sequence[int]) -> list[Line]:
        """The windows along each axis of a shape.

        A `FormError` if numbers are missing, too small, or an axis is shorter than its window.
        """
        n = len(self.axes)
        given = (self.sizes, self.strides, self.low or (0,) * n, self.high or (0,) * n, self.dilation or (1,) * n)
        words = ("sizes", "strides", "low", "high", "dilation")
        for word, numbers, least in zip(words, given, (1, 1, 0, 0, 1), strict=True):
            if len(numbers) != n or min(numbers, default=least) < least:
                raise FormError(f"{word} = {list(numbers)} of windows: {n} numbers are needed, at least {least}")
        if not all(0 <= axis < len(shape) for axis in self.axes) or len(set(self.axes)) != n:
            raise FormError(f"axes = {list(self.axes)} of windows: {list(shape)} has the axes 0 to {len(shape) - 1}")
        each = zip(self.axes, *given, strict=True)
        return [Line(axis, shape[axis], self.ceil, *numbers) for axis, *numbers in each]


@dataclass(frozen=True)
class Line:
    """Windows along one axis; a `FormError` if it is shorter than its window."""

    axis: int
    length: int
    ceil: bool
    size: int
    stride: int
    low: int
    high: int
    dilation: int

    def __post_init__(self) -> None:
        if max(self._padded, self._wide, self.stride) > MOST_PADDED:
            sizes = f"{self._wide} elements, or {self._padded} with padding"
            raise FormError(f"axis {self.axis} has windows of {sizes}; too many")
        if self.count < 1:
            found = f"{self._padded} elements with padding, and a window needs {self._wide}"
            raise FormError(f"axis {self.axis} has {found}")

    @property
    def _padded(self) -> int:
        return self.low + self.length + self.high

    @property
    def _wide(self) -> int:
        return (self.size - 1) * self.dilation + 1

    @property
    def count(self) -> int:
        """Number of windows."""
        room = self._padded - self._wide
        if not self.ceil:
            return room // self.stride + 1
        count = -(-room // self.stride) + 1
        return count - ((count - 1) * self.stride >= self.low + self.length)

    @property
    def beyond(self) -> int:
        """Elements of the last window beyond the padding."""
        return max((self.count - 1) * self.stride + self._wide - self._padded, 0)

    def elements(self, padding_too: bool) -> np.ndarray:
        """Number of elements of each window."""
        inside = np.full(self.low + self.length + self.high + self.beyond, float(padding_too))
        inside[self.low : self.low + self.length] = 1.0
        inside[self.low + self.length + self.high :] = 0.0
        places = np.arange(self.count)[:, None] * self.stride + np.arange(self.size) * self.dilation
        return np.asarray(inside[places].sum(axis=1))


def max_pool(b: FunctionBuilder, x: Value, windows: Windows) -> Value:
    """The largest element of each window; padding never is."""
    lowest = -np.inf if x.type.dtype in FLOATS else np.iinfo(x.type.numpy).min
    return _reduced(b, "max", x, windows, lowest)


def avg_pool(b: FunctionBuilder, x: Value, windows: Windows, count_padding: bool = True) -> Value:
    """The mean of each window of floats.

    Parameters
    ----------
    b : FunctionBuilder
    x : Value
    windows : Windows
    count_padding : bool
        Whether padding counts as zeros; padding of `ceil` never counts.
    """
    total = _reduced(b, "add", x, windows, 0.0)
    counts = np.ones(())
    for line in windows.along(x.type.shape):
        along = [1] * x.type.rank
        along[line.axis] = line.count
        counts = counts * line.elements(count_padding).reshape(along)
    same = counts.size and (counts == counts.flat[0]).all()
    return b.emit("div", [total, b.constant(counts.flat[0] if same else counts, x.type.dtype)])[0]


def _reduced(b: FunctionBuilder, operation: str, x: Value, windows: Windows, filling: float) -> Value:
    # The last axis first: the derivative of `max` then finds the first of equals in the order of rows.
    for line in sorted(windows.along(x.type.shape), key=lambda line: -line.axis):
        x = _reduced_line(b, operation, x, line, filling)
    return x


def _reduced_line(b: FunctionBuilder, operation: str, x: Value, line: Line, filling: float) -> Value:
    at = line.axis
    if line.low or line.high or line.beyond:
        low, high = [0] * x.type.rank, [0] * x.type.rank
        low[at], high[at] = line.low, line.high + line.beyond
        x = b.emit("pad", [x, b.like(x, filling)], low=tuple(low), high=tuple(high))[0]
    start, stop, step = [0] * x.type.rank, list(x.type.shape), [1] * x.type.rank
    step[at], found = line.stride, None
    for place in range(line.size):
        start[at] = place * line.dilation
        stop[at] = start[at] + (line.count - 1) * line.stride + 1
        piece = b.emit("slice", [x], start=tuple(start), stop=tuple(stop), step=tuple(step))[0]
        # Of equal operands, the second one gets the derivative.
        found = piece if found is None else b.emit(operation, [piece, found])[0]
    assert found is not None
    return found


def upsample(b: FunctionBuilder, x: Value, factors: Sequence[int]) -> Value:
    """Each element repeated along each axis: enlargement by whole factors to the nearest neighbour."""
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
