"""Operations over windows of images, and their resizing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions import pooling
from shine.tensor.compositions.pooling import resize_linear, resize_nearest
from shine.tensor.frontend.channels import Convolution, same_padding, transposed_convolution
from shine.tensor.frontend.graph_builder import GraphBuilder, Operand
from shine.tensor.graphdef.constants import MAX_ELEMENTS
from shine.tensor.graphdef.node import Operation, Rule, takes

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


def _conv2d(n: Operation) -> Operand:
    """Groups follow from the numbers of channels."""
    image, kernel, window = _prepared(n)
    if not kernel.shape[2] or image.shape[3] % kernel.shape[2]:
        raise GraphImportError(f"a kernel of {kernel.shape[2]} channels does not fit an image of {image.shape[3]}")
    return _convolved(n.b, image, kernel, window, image.shape[3] // kernel.shape[2])


def _depthwise(n: Operation) -> Operand:
    """Each channel has filters of its own."""
    image, kernel, window = _prepared(n)
    rows, columns, channels, filters = kernel.shape
    if channels != image.shape[3]:
        raise GraphImportError(f"a kernel of {channels} channels does not fit an image of {image.shape[3]}")
    kernel = n.b.reshape(kernel, shape=(rows, columns, 1, channels * filters))
    return _convolved(n.b, image, kernel, window, channels)


def _transposed_conv2d(n: Operation) -> Operand:
    """The adjoint of Conv2D, by which networks enlarge images."""
    b, sizes, kernel, given = n.b, n.numbers(0, "input sizes"), n[1], n[2]
    if len(sizes) != 4 or min(sizes) < 0 or kernel.rank != 4 or given.rank != 4:
        raise GraphImportError(f"it needs four axes, but the shapes are {list(kernel.shape)} and {list(given.shape)}")
    window = _window(n, sizes, kernel.shape[:2], n.listed("strides"), n.listed("dilations", (1,) * 4))
    small, large = _in_order(n, given.shape)[1:3], _in_order(n, sizes)[1:3]
    steps = zip(small, large, kernel.shape, window.strides, window.dilation, window.low, window.high, strict=False)
    extra = [
        size + low + high - ((count - 1) * by + (wide - 1) * gap + 1) for count, size, wide, by, gap, low, high in steps
    ]
    if any(not 0 <= more < by for more, by in zip(extra, window.strides, strict=True)):
        raise GraphImportError(f"input sizes {list(sizes)} do not fit the shape {list(given.shape)}")
    options = Convolution(window.strides, window.low, window.high, window.dilation, 1)
    image = given if window.channels_first else b.transpose(given, permutation=(0, 3, 1, 2))
    made = transposed_convolution(b, image, b.transpose(kernel, permutation=(3, 2, 0, 1)), options, extra)
    return made if window.channels_first else b.transpose(made, permutation=(0, 2, 3, 1))


def _prepared(n: Operation) -> tuple[Operand, Operand, _Window]:
    image, kernel = n.inputs
    if image.rank != 4 or kernel.rank != 4:
        raise GraphImportError(f"it needs four axes, but the shapes are {list(image.shape)} and {list(kernel.shape)}")
    window = _window(n, image.shape, kernel.shape[:2], n.listed("strides"), n.listed("dilations", (1,) * 4))
    return _channels_last(n.b, image, window), kernel, window


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


def _max_pool(n: Operation) -> Operand:
    image, window = _pooled_image(n)
    if image.dtype == "bool":
        raise GraphImportError("there is no MaxPool of bool; supported are numbers")
    return _as_given(n.b, Operand(pooling.max_pool(n.b.builder, image.value, _windows(window))), window)


def _avg_pool(n: Operation) -> Operand:
    """The mean of the elements that are not padding."""
    image, window = _pooled_image(n)
    if not image.dtype.startswith("float"):
        raise GraphImportError(f"there is no AvgPool of {image.dtype}; supported are float32, float64")
    if prod(image.shape[1:3]) > MAX_ELEMENTS:
        raise GraphImportError(f"its image of {list(image.shape)} is too large to count the elements of windows")
    mean = pooling.avg_pool(n.b.builder, image.value, _windows(window), count_padding=False)
    return _as_given(n.b, Operand(mean), window)


def _windows(window: _Window) -> pooling.Windows:
    if max(window.sizes) > MOST_STEPS:
        raise GraphImportError(f"its window {list(window.sizes)} is larger than {MOST_STEPS}, which is not supported")
    return pooling.Windows((1, 2), window.sizes, window.strides, window.low, window.high)


def _pooled_image(n: Operation) -> tuple[Operand, _Window]:
    if n.op == "MaxPoolV2":
        sizes, strides = n.numbers(1, "window"), n.numbers(2, "strides")
    else:
        sizes, strides = n.listed("ksize"), n.listed("strides")
    image = n[0]
    if image.rank != 4 or len(sizes) != 4:
        raise GraphImportError(f"it needs four axes, but the shape is {list(image.shape)} and the window {list(sizes)}")
    batch, rows, columns, channels = _in_order(n, sizes)
    if (batch, channels) != (1, 1):
        raise GraphImportError("its window must be 1 along batch and channels; others are not supported")
    window = _window(n, image.shape, (rows, columns), strides, (1,) * 4)
    return _channels_last(n.b, image, window), window


def _in_order(n: Operation, given: Sequence[int]) -> tuple[int, ...]:
    """Numbers of the axes in the order batch, rows, columns, channels."""
    if len(given) != 4:
        raise GraphImportError(f"it needs a number for each of four axes, but has {list(given)}")
    return (given[0], given[2], given[3], given[1]) if _channels_first(n) else tuple(given)


def _channels_first(n: Operation) -> bool:
    return n.one_of("data_format", "NHWC", ("NHWC", "NCHW")) == "NCHW"


def _window(
    n: Operation, image: Sequence[int], sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> _Window:
    strides, dilations = _in_order(n, strides), _in_order(n, dilations)
    if (strides[0], strides[3], dilations[0], dilations[3]) != (1, 1, 1, 1):
        raise GraphImportError("its strides and dilations must be 1 along batch and channels")
    by, apart, shape = strides[1:3], dilations[1:3], _in_order(n, image)[1:3]
    if min(*by, *apart, *sizes) < 1:
        raise GraphImportError(
            f"its window {list(sizes)}, strides {list(by)} and dilations {list(apart)} must be above 0"
        )
    padding = n.one_of("padding", None, ("SAME", "VALID", "EXPLICIT"))
    if padding == "EXPLICIT":
        pads = n.listed("explicit_paddings")
        low, high = (_in_order(n, pads[start::2])[1:3] for start in (0, 1))
    else:
        low, high = same_padding(shape, sizes, by, apart) if padding == "SAME" else ((0, 0), (0, 0))
    for size, before, after, wide, gap in zip(shape, low, high, sizes, apart, strict=True):
        width = (wide - 1) * gap + 1
        if not (0 <= before <= _ROOM and 0 <= after <= _ROOM) or size + before + after < width:
            raise GraphImportError(f"a window of {width} does not fit {size} elements with padding {before}, {after}")
    return _Window(tuple(sizes), by, apart, low, high, _channels_first(n))


def _channels_last(b: GraphBuilder, image: Operand, window: _Window) -> Operand:
    return b.transpose(image, permutation=(0, 2, 3, 1)) if window.channels_first else image


def _as_given(b: GraphBuilder, image: Operand, window: _Window) -> Operand:
    return b.transpose(image, permutation=(0, 3, 1, 2)) if window.channels_first else image


_MOST = 1 << 16
"""Most rows or columns of a result."""


def _nearest(n: Operation) -> Operand:
    image, sizes = _read(n)
    corners = n.flag("align_corners")
    shift = np.float32(0.5 if n.flag("half_pixel_centers") else 0)
    value = image.value
    for axis, size in zip((1, 2), sizes, strict=True):
        places = (np.arange(size, dtype=np.float32) + shift) * _scale(image.shape[axis], size, corners)
        rounded = np.floor(places + np.float32(0.5)) if corners else np.floor(places)
        value = resize_nearest(n.b.builder, value, axis, rounded)
    return Operand(value)


def _bilinear(n: Operation) -> Operand:
    """Between the two neighbours along each axis, columns first."""
    image, sizes = _read(n)
    value = n.b.cast_to(image, "float32").value
    shift = np.float32(0.5 if n.flag("half_pixel_centers") else 0)
    for axis, size in ((2, sizes[1]), (1, sizes[0])):
        scale = _scale(image.shape[axis], size, n.flag("align_corners"))
        places = (np.arange(size, dtype=np.float32) + shift) * scale - shift
        value = resize_linear(n.b.builder, value, axis, places)
    return Operand(value)


def _scale(length: int, size: int, corners: bool) -> np.float32:
    """Pixels of the image for each one of the result, in single precision as TensorFlow computes it."""
    if corners and size > 1:
        return np.float32(length - 1) / np.float32(size - 1)
    return np.float32(length) / np.float32(size)


def _read(n: Operation) -> tuple[Operand, tuple[int, ...]]:
    image, sizes = n[0], n.numbers(1, "size")
    if image.rank != 4 or len(sizes) != 2 or not all(0 < size <= _MOST for size in sizes) or 0 in image.shape:
        raise GraphImportError(f"an image of shape {list(image.shape)} cannot become {list(sizes)}")
    return image, sizes


WINDOWS: dict[str, Rule] = {
    "Conv2D": takes(2, _conv2d),
    "DepthwiseConv2dNative": takes(2, _depthwise),
    "Conv2DBackpropInput": takes(3, _transposed_conv2d),
    "ResizeNearestNeighbor": takes(2, _nearest),
    "ResizeBilinear": takes(2, _bilinear),
    "MaxPool": takes(1, _max_pool),
    "MaxPoolV2": takes(3, _max_pool),
    "AvgPool": takes(1, _avg_pool),
}
