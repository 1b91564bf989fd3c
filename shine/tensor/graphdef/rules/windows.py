"""Operations over windows of images, and their resizing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions import pooling
from shine.tensor.compositions.pooling import resize_linear, resize_nearest
from shine.tensor.frontend.channels import Convolution, transposed_convolution
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand, numbers
from shine.tensor.graphdef.constants import MAX_ELEMENTS
from shine.tensor.graphdef.node import Node, check_count, flag, listed, one_of

MOST_STEPS = 1024
"""Most elements of a pooling window along an axis; each may take an instruction or two."""

_ROOM = 1 << 20
"""Most elements of padding beside the image along an axis."""


@dataclass(frozen=True)
class _Window:
    """A window along both axes of an image, whose axes are batch, rows, columns, channels.

    Parameters
    ----------
    sizes, strides, dilation, low, high : tuple of int
        One number for rows and one for columns.
    channels_first : bool
        Whether the graph has the channels before rows and columns.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    channels_first: bool


def conv2d(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Conv2D; groups follow from the numbers of channels."""
    check_count(inputs, 2)
    image, kernel, window = _prepared(b, node, inputs)
    if not kernel.shape[2] or image.shape[3] % kernel.shape[2]:
        raise GraphImportError(f"a kernel of {kernel.shape[2]} channels does not fit an image of {image.shape[3]}")
    return (_convolved(b, image, kernel, window, image.shape[3] // kernel.shape[2]),)


def depthwise(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """DepthwiseConv2dNative: each channel has filters of its own."""
    check_count(inputs, 2)
    image, kernel, window = _prepared(b, node, inputs)
    rows, columns, channels, filters = kernel.shape
    if channels != image.shape[3]:
        raise GraphImportError(f"a kernel of {channels} channels does not fit an image of {image.shape[3]}")
    kernel = b.reshape(kernel, shape=(rows, columns, 1, channels * filters))
    return (_convolved(b, image, kernel, window, channels),)


def transposed_conv2d(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Conv2DBackpropInput: the adjoint of Conv2D, by which networks enlarge images."""
    check_count(inputs, 3)
    sizes, kernel, given = numbers(inputs[0], "input sizes"), inputs[1], inputs[2]
    if len(sizes) != 4 or min(sizes) < 0 or kernel.rank != 4 or given.rank != 4:
        raise GraphImportError(f"it needs four axes, but the shapes are {list(kernel.shape)} and {list(given.shape)}")
    window = _window(node, sizes, kernel.shape[:2], listed(node, "strides"), listed(node, "dilations", (1,) * 4))
    small, large = _in_order(node, given.shape)[1:3], _in_order(node, sizes)[1:3]
    steps = zip(small, large, kernel.shape, window.strides, window.dilation, window.low, window.high, strict=False)
    extra = [
        size + low + high - ((count - 1) * by + (wide - 1) * gap + 1) for count, size, wide, by, gap, low, high in steps
    ]
    if any(not 0 <= more < by for more, by in zip(extra, window.strides, strict=True)):
        raise GraphImportError(f"input sizes {list(sizes)} do not fit the shape {list(given.shape)}")
    options = Convolution(window.strides, window.low, window.high, window.dilation, 1)
    image = given if window.channels_first else b.transpose(given, permutation=(0, 3, 1, 2))
    made = transposed_convolution(b, image, b.transpose(kernel, permutation=(3, 2, 0, 1)), options, extra)
    return (made if window.channels_first else b.transpose(made, permutation=(0, 2, 3, 1)),)


def _prepared(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> tuple[Operand, Operand, _Window]:
    image, kernel = inputs
    if image.rank != 4 or kernel.rank != 4:
        raise GraphImportError(f"it needs four axes, but the shapes are {list(image.shape)} and {list(kernel.shape)}")
    window = _window(node, image.shape, kernel.shape[:2], listed(node, "strides"), listed(node, "dilations", (1,) * 4))
    return _channels_last(b, image, window), kernel, window


def _convolved(b: GraphBuilder, image: Operand, kernel: Operand, window: _Window, groups: int) -> Operand:
    made = b.convolve(
        image,
        kernel,
        strides=window.strides,
        low=window.low,
        high=window.high,
        dilation=window.dilation,
        groups=groups,
    )
    return _as_given(b, made, window)


def max_pool(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """MaxPool."""
    image, window = _pooled_image(b, node, inputs)
    if image.dtype == "bool":
        raise GraphImportError("there is no MaxPool of bool; supported are numbers")
    return (_as_given(b, Operand(pooling.max_pool(b.builder, image.value, _windows(window))), window),)


def avg_pool(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """AvgPool: the mean of the elements that are not padding."""
    image, window = _pooled_image(b, node, inputs)
    if not image.dtype.startswith("float"):
        raise GraphImportError(f"there is no AvgPool of {image.dtype}; supported are float32, float64")
    if prod(image.shape[1:3]) > MAX_ELEMENTS:
        raise GraphImportError(f"its image of {list(image.shape)} is too large to count the elements of windows")
    mean = pooling.avg_pool(b.builder, image.value, _windows(window), count_padding=False)
    return (_as_given(b, Operand(mean), window),)


def _windows(window: _Window) -> pooling.Windows:
    if max(window.sizes) > MOST_STEPS:
        raise GraphImportError(f"its window {list(window.sizes)} is larger than {MOST_STEPS}, which is not supported")
    return pooling.Windows((1, 2), window.sizes, window.strides, window.low, window.high)


def _pooled_image(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> tuple[Operand, _Window]:
    if node.op == "MaxPoolV2":
        check_count(inputs, 3)
        sizes, strides = numbers(inputs[1], "window"), numbers(inputs[2], "strides")
    else:
        check_count(inputs, 1)
        sizes, strides = listed(node, "ksize"), listed(node, "strides")
    image = inputs[0]
    if image.rank != 4 or len(sizes) != 4:
        raise GraphImportError(f"it needs four axes, but the shape is {list(image.shape)} and the window {list(sizes)}")
    batch, rows, columns, channels = _in_order(node, sizes)
    if (batch, channels) != (1, 1):
        raise GraphImportError("its window must be 1 along batch and channels; others are not supported")
    window = _window(node, image.shape, (rows, columns), strides, (1,) * 4)
    return _channels_last(b, image, window), window


def _in_order(node: Node, given: Sequence[int]) -> tuple[int, ...]:
    """Numbers of the axes in the order batch, rows, columns, channels."""
    if len(given) != 4:
        raise GraphImportError(f"it needs a number for each of four axes, but has {list(given)}")
    if _channels_first(node):
        given = (given[0], given[2], given[3], given[1])
    return tuple(given)


def _channels_first(node: Node) -> bool:
    return one_of(node, "data_format", "NHWC", ("NHWC", "NCHW")) == "NCHW"


def _window(
    node: Node, image: Sequence[int], sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> _Window:
    strides, dilations = _in_order(node, strides), _in_order(node, dilations)
    if (strides[0], strides[3], dilations[0], dilations[3]) != (1, 1, 1, 1):
        raise GraphImportError("its strides and dilations must be 1 along batch and channels")
    by, apart, shape = strides[1:3], dilations[1:3], _in_order(node, image)
    if min(*by, *apart, *sizes) < 1:
        raise GraphImportError(
            f"its window {list(sizes)}, strides {list(by)} and dilations {list(apart)} must be above 0"
        )
    wide = [(size - 1) * gap + 1 for size, gap in zip(sizes, apart, strict=True)]
    padding = one_of(node, "padding", None, ("SAME", "VALID", "EXPLICIT"))
    if padding == "EXPLICIT":
        pads = listed(node, "explicit_paddings")
        low, high = (_in_order(node, pads[start::2])[1:3] for start in (0, 1))
    else:
        needed = [
            max((-(-size // step) - 1) * step + width - size, 0) if padding == "SAME" else 0
            for size, step, width in zip(shape[1:3], by, wide, strict=True)
        ]
        low, high = tuple(each // 2 for each in needed), tuple(each - each // 2 for each in needed)
    for size, before, after, width in zip(shape[1:3], low, high, wide, strict=True):
        if not (0 <= before <= _ROOM and 0 <= after <= _ROOM) or size + before + after < width:
            raise GraphImportError(f"a window of {width} does not fit {size} elements with padding {before}, {after}")
    return _Window(tuple(sizes), by, apart, low, high, _channels_first(node))


def _channels_last(b: GraphBuilder, image: Operand, window: _Window) -> Operand:
    return b.transpose(image, permutation=(0, 2, 3, 1)) if window.channels_first else image


def _as_given(b: GraphBuilder, image: Operand, window: _Window) -> Operand:
    return b.transpose(image, permutation=(0, 3, 1, 2)) if window.channels_first else image


_MOST = 1 << 16
"""Most rows or columns of a result."""


def nearest(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
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


def bilinear(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
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
