"""Types of tensors: an element type and a static shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from shine.base.errors import FormError
from shine.base.typing import AnyArray

DTYPES: dict[str, np.dtype] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}
"""NumPy's type for each element type."""

NAMES = {dtype: name for name, dtype in DTYPES.items()}
"""Element types by NumPy's."""

FLOATS = frozenset({"f32", "f64"})
INTEGERS = frozenset({"i8", "u8", "i16", "i32", "i64"})
NUMBERS = FLOATS | INTEGERS
TRUTH = frozenset({"bool"})
ANY = NUMBERS | TRUTH

MOST_AXES = 32
"""Axes of a tensor: NumPy 1 has no arrays of more."""

MOST_ELEMENTS = 2**48
"""Elements of a tensor below which addresses and products of sizes fit into 64 bits with room to spare."""


@dataclass(frozen=True)
class TensorType:
    """An element type and a shape.

    Parameters
    ----------
    dtype : str
        One of `DTYPES`.
    shape : tuple of int
        At least 0 each; () for a scalar.

    Raises
    ------
    FormError
        If there is no such element type, or a size is negative or too large.
    """

    dtype: str
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, str) or self.dtype not in DTYPES:
            raise FormError(f"there is no element type {self.dtype!r}; there are {', '.join(DTYPES)}")
        if not isinstance(self.shape, tuple) or not all(type(size) is int for size in self.shape):
            object.__setattr__(self, "shape", _integers(self.shape))
        if len(self.shape) > MOST_AXES:
            raise FormError(f"a tensor has at most {MOST_AXES} axes, and not {len(self.shape)}")
        if any(size < 0 for size in self.shape) or math.prod(max(size, 1) for size in self.shape) > MOST_ELEMENTS:
            raise FormError(f"the shape {list(self.shape)} has a negative size or more than 2**48 elements")

    def __str__(self) -> str:
        """As in the text form: `<2 x 3 x f32>`, or `f32` for a scalar."""
        return f"<{' x '.join([*map(str, self.shape), self.dtype])}>" if self.shape else self.dtype

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def numpy(self) -> np.dtype:
        """NumPy's element type."""
        return DTYPES[self.dtype]

    @property
    def bytes(self) -> int:
        """Bytes of all elements."""
        return self.elements * self.numpy.itemsize

    def with_shape(self, shape: Sequence[int]) -> TensorType:
        """The same elements in another shape."""
        return TensorType(self.dtype, tuple(shape))

    def with_dtype(self, dtype: str) -> TensorType:
        """The same shape of other elements."""
        return TensorType(dtype, self.shape)


def _integers(shape: Any) -> tuple[int, ...]:
    """A shape of other integers, such as NumPy's."""
    try:
        return tuple(map(index, shape))
    except TypeError:
        raise FormError(f"the sizes of a shape must be integers, and one is not: {shape!r}") from None


def type_of(array: np.ndarray) -> TensorType:
    """The type of an array; a `FormError` if its elements have no type here."""
    return TensorType(dtype_of(array.dtype), array.shape)


def dtype_of(dtype: DTypeLike) -> str:
    """The element type that NumPy's stands for; byte order does not matter. Raises a `FormError` if there is none."""
    found = NAMES.get(np.dtype(dtype).newbyteorder("="))
    if found is None:
        raise FormError(f"elements of type {np.dtype(dtype)} are not supported; there are {', '.join(DTYPES)}")
    return found


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without its leading axes of size 1, which broadcasting adds."""
    first = next((axis for axis, size in enumerate(shape) if size != 1), len(shape))
    return shape[first:]


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that shapes are broadcast to, by NumPy's rule; a `FormError` if sizes differ and none of them is 1."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(shape)) for shape in shapes)
        raise FormError(f"shapes {listed} cannot be broadcast together; sizes must be equal or 1") from None


def axis_of(rank: int, axis: int) -> int:
    """An axis counted from 0; negative ones count from the end. Raises a `FormError` if there is no such axis."""
    if not -rank <= axis < rank:
        raise FormError(f"there is no axis {axis} of {rank}")
    return axis % rank


def axes_of(found: TensorType, axes: Sequence[int] | None) -> tuple[tuple[int, ...], int]:
    """Axes counted from 0, ascending, all for None; and the number of elements along them.

    A `FormError` if there is no such axis, or one is named twice.
    """
    counted = range(found.rank) if axes is None else [axis_of(found.rank, axis) for axis in axes]
    if len(set(counted)) != len(counted):
        raise FormError(f"axes = {list(axes or ())} name an axis twice")
    return tuple(sorted(counted)), math.prod(found.shape[axis] for axis in counted)


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
    """
    if dtype == "float16":
        return bits.view(np.float16).astype(np.float32)
    # bfloat16, which NumPy has not, is the upper half of float32.
    return (bits.astype(np.uint32) << 16).view(np.float32)
