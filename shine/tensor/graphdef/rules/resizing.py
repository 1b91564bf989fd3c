"""Images of another size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions.resizing import resize_linear, resize_nearest
from shine.tensor.graphdef.node import Node
from shine.tensor.graphdef.rules.attributes import check_count, flag
from shine.tensor.imported.building import Building, Operand, numbers

_MOST = 1 << 16
"""Most rows or columns of a result."""


def nearest(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """ResizeNearestNeighbor."""
    image, sizes = _read(inputs)
    corners = flag(node, "align_corners")
    shift = np.float32(0.5 if flag(node, "half_pixel_centers") else 0)
    value = image.value
    for axis, size in zip((1, 2), sizes, strict=True):
        places = (np.arange(size, dtype=np.float32) + shift) * _scale(image.shape[axis], size, corners)
        rounded = np.floor(places + np.float32(0.5)) if corners else np.floor(places)
        value = resize_nearest(b.builder, value, axis, rounded)
    return (Operand(value),)


def bilinear(b: Building, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """ResizeBilinear: between the two neighbours along each axis, columns first."""
    image, sizes = _read(inputs)
    value = b.cast_to(image, "float32").value
    shift = np.float32(0.5 if flag(node, "half_pixel_centers") else 0)
    for axis, size in ((2, sizes[1]), (1, sizes[0])):
        scale = _scale(image.shape[axis], size, flag(node, "align_corners"))
        places = (np.arange(size, dtype=np.float32) + shift) * scale - shift
        value = resize_linear(b.builder, value, axis, places)
    return (Operand(value),)


def _scale(length: int, size: int, corners: bool) -> np.float32:
    """Pixels of the image for each one of the result, in single precision as TensorFlow computes it."""
    if corners and size > 1:
        return np.float32(length - 1) / np.float32(size - 1)
    return np.float32(length) / np.float32(size)


def _read(inputs: Sequence[Operand]) -> tuple[Operand, tuple[int, ...]]:
    check_count(inputs, 2)
    image, sizes = inputs[0], numbers(inputs[1], "size")
    if image.rank != 4 or len(sizes) != 2 or not all(0 < size <= _MOST for size in sizes) or 0 in image.shape:
        raise GraphImportError(f"an image of shape {list(image.shape)} cannot become {list(sizes)}")
    return image, sizes
