"""Constants of a graph, their element types and static shapes, checked before memory is allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray
from shine.formats.read.protobuf import TYPE_NAMES
from shine.tensor.form.types import widened

Shape = tuple[int | None, ...] | None
"""Lengths of the axes, None for an unknown length; None for an unknown number of axes."""

MAX_ELEMENTS = 1 << 26
"""Most elements of a constant, and of an array made by broadcasting smaller ones."""

MAX_RANK = 32
"""Most axes that every version of NumPy supports."""


def shape_text(shape: Shape) -> str:
    """A shape as messages show it, with ``?`` for unknown lengths."""
    if shape is None:
        return "of unknown rank"
    return f"[{', '.join('?' if axis is None else str(axis) for axis in shape)}]"


def checked_shape(axes: Iterable[int]) -> tuple[int | None, ...]:
    """The shape from a message's axes; -1 is an unknown length.

    A `GraphImportError` if a length is below -1, or there are too many axes, or more elements than addresses.
    """
    sizes = list(axes)
    if len(sizes) > MAX_RANK:
        raise GraphImportError(f"its shape has {len(sizes)} axes; at most {MAX_RANK} are supported")
    shape = tuple(None if size == -1 else size for size in sizes)
    if any(size is not None and size < 0 for size in shape):
        raise GraphImportError(f"its shape {shape_text(shape)} has a negative length")
    # Axes of length 0 are left out: the other axes must be addressable even in an empty array.
    if prod(size for size in shape if size) >= 1 << 60:
        raise GraphImportError(f"its shape {shape_text(shape)} has more elements than 64 bits can address")
    return shape


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape of an elementwise operation's result.

    A `GraphImportError` if the shapes do not broadcast, or small arrays would become a very large one.
    """
    known = [shape for shape in shapes if shape is not None]
    result: list[int | None] = [1] * max((len(shape) for shape in known), default=0)
    for shape in known:
        for axis in range(1, len(shape) + 1):
            size = shape[-axis]
            if size == 1 or size == result[-axis]:
                continue
            # An unknown length is either 1 or equal to the other length, unless the other is 1.
            if result[-axis] == 1 or (result[-axis] is None and size is not None):
                result[-axis] = size
            elif size is not None:
                raise GraphImportError(f"shapes {' and '.join(map(shape_text, known))} do not broadcast")
    elements = count(result)
    if elements > MAX_ELEMENTS and elements > max(map(count, known)):
        raise GraphImportError(
            f"broadcasting {' and '.join(map(shape_text, known))} makes {elements} elements; "
            f"at most {MAX_ELEMENTS} are supported, or as many as an input has"
        )
    return tuple(result) if len(known) == len(shapes) else None


def count(shape: Iterable[int | None]) -> int:
    """Number of elements, with an unknown length taken as 1."""
    return prod(1 if size is None else size for size in shape)


def same(shapes: Sequence[Shape]) -> Shape:
    """The known part of the shape of arrays that must have the same shape.

    A `GraphImportError` if two of them differ.
    """
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return None
    result = list(known[0])
    for shape in known[1:]:
        fits = len(shape) == len(result) and all(None in (a, b) or a == b for a, b in zip(shape, result, strict=True))
        if not fits:
            raise GraphImportError(f"shapes {shape_text(known[0])} and {shape_text(shape)} must be the same")
        result = [b if a is None else a for a, b in zip(result, shape, strict=True)]
    return tuple(result)


DTYPES: dict[int, str] = {1: "float32", 2: "float64", 3: "int32", 9: "int64", 10: "bool"}
"""Shine's storage types by TensorFlow's numbers."""

HALF_TYPES: dict[int, str] = {14: "bfloat16", 19: "float16"}
"""Types of 16 bits that are read as float32, by TensorFlow's numbers."""

MAX_FILLED = 1 << 22
"""Most elements that repeating last values may add to a graph's constants; constants of equal elements do not count."""

_FIELDS: dict[str, str] = {
    "float32": "float_val",
    "float64": "double_val",
    "int32": "int_val",
    "int64": "int64_val",
    "bool": "bool_val",
    "uint8": "int_val",
    "int16": "int_val",
    "int8": "int_val",
}
"""Field of a message for values given as numbers."""

_OTHER_FIELDS = ("half_val", "string_val", "uint32_val", "uint64_val")


def _field(message: Any, dtype: str) -> str:
    """The field of a TensorProto with the numbers of an array of a type."""
    return "half_val" if message.dtype in HALF_TYPES else _FIELDS[dtype]


def stored(number: int, dtype: str) -> np.dtype[Any]:
    """The type of the bytes of elements that are read as `dtype`, by TensorFlow's number of theirs."""
    return np.dtype("uint16" if number in HALF_TYPES else "uint8" if dtype == "bool" else dtype)


def from_stored(values: AnyArray, number: int, dtype: str) -> AnyArray:
    """Elements of the type `stored(number, dtype)`, in any byte order, as those of `dtype`."""
    if number in HALF_TYPES:
        return widened(values.astype(np.uint16, copy=False), HALF_TYPES[number])
    return values != 0 if dtype == "bool" else values.astype(dtype, copy=False)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A constant.

    Parameters
    ----------
    dtype : str
        A storage type of Shine.
    shape : tuple of int
    values : ndarray
        An array of that shape, or one element if all are equal.
    """

    dtype: str
    shape: tuple[int, ...]
    values: AnyArray

    @property
    def number(self) -> float | int | None:
        """The value of every element; None if they differ or there are none. A bool is 0 or 1."""
        if self.values.size != 1:
            return None
        value: float | int = self.values.item()
        return int(value) if self.dtype == "bool" else value

    def array(self) -> AnyArray:
        """The whole array; it takes no memory if all elements are equal."""
        if self.values.size == 1:
            return np.broadcast_to(self.values.reshape(()), self.shape)
        return self.values.reshape(self.shape)


def dtype_name(number: int, dtypes: Mapping[int, str] = DTYPES) -> str:
    """NumPy's name of an element type; a `GraphImportError` if it is not among the types that are read."""
    if number not in dtypes:
        supported = ", ".join(TYPE_NAMES[known] for known in dtypes)
        name = TYPE_NAMES.get(number, f"number {number}")
        raise GraphImportError(f"element type {name} is not supported; supported are {supported}")
    return dtypes[number]


def shape_from_message(message: Any) -> Shape:
    """The shape in a TensorShapeProto; a `GraphImportError` if it is not a shape of an array."""
    if message.unknown_rank:
        return None
    return checked_shape(axis.size for axis in message.dim)


class Tensors:
    """The constants of a graph: each is read once, however often its function is called.

    Parameters
    ----------
    dtypes : mapping of int to str
        Element types that are read, by TensorFlow's numbers.
    """

    def __init__(self, dtypes: Mapping[int, str] = DTYPES) -> None:
        self.dtypes = dtypes
        self._known: dict[int, Tensor] = {}
        self._room = MAX_FILLED

    def read(self, key: int, message: Callable[[], Any]) -> Tensor:
        """The constant with a key, read from its TensorProto the first time; see `tensor_from_message`."""
        if key not in self._known:
            written = message()
            tensor = tensor_from_message(written, self._room, self.dtypes)
            if not written.tensor_content and tensor.values.size > 1:
                self._room -= tensor.values.size - len(getattr(written, _field(written, tensor.dtype)))
            self._known[key] = tensor
        return self._known[key]


def tensor_from_message(message: Any, room: int = MAX_FILLED, dtypes: Mapping[int, str] = DTYPES) -> Tensor:
    """The constant in a TensorProto.

    Its values are bytes in little-endian order, or numbers; the last number is repeated to the end. Without values, all
    elements are zero.

    Parameters
    ----------
    message : TensorProto
    room : int
        Most elements made by repeating the last value, unless all elements are equal.
    dtypes : mapping of int to str
        Element types that are read, by TensorFlow's numbers.

    Raises
    ------
    GraphImportError
        If type, shape and number of values do not agree, or exceed Shine's limits.
    """
    dtype = dtype_name(message.dtype, dtypes)
    shape = shape_from_message(message.tensor_shape)
    if shape is None or None in shape:
        raise GraphImportError(f"the shape of a constant must be known, but is {shape_text(shape)}")
    sizes = tuple(size for size in shape if size is not None)
    elements = prod(sizes)
    if elements > MAX_ELEMENTS:
        raise GraphImportError(
            f"its shape {shape_text(shape)} has {elements} elements; at most {MAX_ELEMENTS} are read"
        )
    kind = stored(message.dtype, dtype)
    content = message.tensor_content
    if content:
        values = _from_bytes(content, kind, dtype, elements)
    else:
        values = _from_numbers(message, kind, dtype, elements, room)
    return Tensor(dtype, sizes, from_stored(values, message.dtype, dtype))


def _from_bytes(content: bytes, kind: np.dtype[Any], dtype: str, elements: int) -> AnyArray:
    if len(content) != elements * kind.itemsize:
        raise GraphImportError(
            f"tensor_content has {len(content)} bytes, but {elements} elements of {dtype} take "
            f"{elements * kind.itemsize}"
        )
    # Comparing bits: NaN equals itself, and -0.0 differs from 0.0.
    bits = np.frombuffer(content, f"u{kind.itemsize}")
    uniform = bool((bits == bits[0]).all())
    return np.frombuffer(content, kind.newbyteorder("<"), count=1 if uniform else -1)


def _from_numbers(message: Any, kind: np.dtype[Any], dtype: str, elements: int, room: int) -> AnyArray:
    own = _field(message, dtype)
    numbers = getattr(message, own)
    given = len(numbers)
    if given == 0:
        for field in (*_FIELDS.values(), *_OTHER_FIELDS):
            if len(getattr(message, field)):
                raise GraphImportError(f"its values are in {field}, but those of {dtype} belong in {own}")
        return np.zeros(min(elements, 1), kind)
    if given > elements:
        raise GraphImportError(f"{own} has {given} values, but the shape has {elements} elements")
    # Small integers stand in fields of larger ones, and are cut off, as TensorFlow does it.
    values = np.fromiter(numbers, np.int32 if own in ("int_val", "half_val") else kind, given).astype(kind)
    if given == 1:
        return values
    if elements - given > room:
        raise GraphImportError(
            f"{own} has {given} values for {elements} elements; the last values of a graph's constants are repeated "
            f"for up to {MAX_FILLED} elements in all"
        )
    return np.concatenate([values, np.full(elements - given, values[-1])]) if given < elements else values


ELEMENTS: dict[int, str] = {**DTYPES, 4: "uint8", 5: "int16", 6: "int8", **dict.fromkeys(HALF_TYPES, "float32")}
"""NumPy's names by TensorFlow's numbers; half precision is read as float32."""

RESOURCE = 20
"""Number of the type of variables themselves."""

VARIANT = 21
"""Number of the type of lists of tensors."""
