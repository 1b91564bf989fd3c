"""Static shapes: the known part of an array's shape, before the array exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from shine.base.errors import GraphImportError

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

    Raises
    ------
    GraphImportError
        If a length is below -1, or there are too many axes, or more elements than addresses.
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

    Raises
    ------
    GraphImportError
        If the shapes do not broadcast, or small arrays would become a very large one.
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


def covers(others: Sequence[Shape], shape: Shape) -> bool:
    """Whether broadcasting the other shapes gives the same result with and without this shape."""
    if shape == ():
        return True
    if not others or shape is None or any(other is None for other in others):
        return False
    without = broadcast(others)
    if without is None or len(shape) > len(without):
        return False
    return all(size in (1, known) for size, known in zip(reversed(shape), reversed(without), strict=False))


def same(shapes: Sequence[Shape]) -> Shape:
    """The known part of the shape of arrays that must have the same shape.

    Raises
    ------
    GraphImportError
        If two of them differ.
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
