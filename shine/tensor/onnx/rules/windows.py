"""Matrix products, convolutions, and operations over windows of images; resizing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray
from shine.tensor.compositions.contraction import einsum
from shine.tensor.compositions.normalization import mean
from shine.tensor.compositions.pooling import Windows, avg_pool, max_pool, resize_linear, resize_nearest
from shine.tensor.frontend.channels import Convolution, convolution, halves, same_padding, transposed_convolution
from shine.tensor.frontend.graph_builder import Operand, numbers
from shine.tensor.onnx.node import Node, checked_axes


def _windows(node: Node) -> Windows:
    x = node.input(0)
    space = x.rank - 2
    if space < 1:
        raise GraphImportError(f"its input has {x.rank} axes; batch, channels and space are needed")
    sizes = tuple(node.get("kernel_shape"))
    if len(sizes) != space:
        raise GraphImportError(f"its kernel_shape {list(sizes)} needs {space} numbers")
    strides, dilation = list_of(node, "strides", space, 1), list_of(node, "dilations", space, 1)
    low, high = padding(node, x.shape[2:], sizes, strides, dilation)
    return Windows(tuple(range(2, x.rank)), sizes, strides, low, high, dilation, bool(node.get("ceil_mode", 0)))


def _max_pool(node: Node) -> Operand:
    if node.outputs > 1:
        raise GraphImportError("the indices of its maxima are asked for; only the first output is supported")
    return Operand(max_pool(node.builder, node.value(0), _windows(node)))


def _avg_pool(node: Node) -> Operand:
    counted = bool(node.get("count_include_pad", 0))
    return Operand(avg_pool(node.builder, node.value(0), _windows(node), counted))


def _global(reduce: str) -> Callable[[Node], Operand]:
    def rule(node: Node) -> Operand:
        x = node.value(0)
        axes = tuple(range(2, x.type.rank))
        if reduce == "mean":
            return Operand(mean(node.builder, x, axes, keep=True))
        return Operand(node.builder.emit(reduce, [x], axes=axes, keep=True)[0])

    return rule


WINDOWS: dict[str, Callable[[Node], Operand | Sequence[Operand]]] = {
    "MaxPool": _max_pool,
    "AveragePool": _avg_pool,
    "GlobalMaxPool": _global("reduce_max"),
    "GlobalAveragePool": _global("mean"),
}


_f32 = np.float32

MOST = 1 << 16
"""Most elements of a result along an axis."""

TIE = 1e-6
"""Distance from the middle between two elements at which a place counts as the middle, because of rounding:
https://github.com/microsoft/onnxruntime/issues/28291."""


def _half_pixel(i: AnyArray, scale: np.float32, old: int, new: int) -> AnyArray:
    return (i + _f32(0.5)) / scale - _f32(0.5)


def _half_pixel_symmetric(i: AnyArray, scale: np.float32, old: int, new: int) -> AnyArray:
    """The result's middle is the image's, also if its size had to be rounded."""
    shift = _f32(old) / _f32(2) * (_f32(1) - _f32(new) / (scale * _f32(old)))
    return shift + (i + _f32(0.5)) / scale - _f32(0.5)


PLACES: dict[str, Callable[[AnyArray, np.float32, int, int], AnyArray]] = {
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": lambda i, scale, old, new: _half_pixel(i, scale, old, new) if new > 1 else i * _f32(0),
    "half_pixel_symmetric": _half_pixel_symmetric,
    "align_corners": lambda i, scale, old, new: i * _f32(old - 1) / _f32(max(new - 1, 1)),
    "asymmetric": lambda i, scale, old, new: i / scale,
}
"""Places in the image of an axis' elements, by coordinate_transformation_mode."""

ROUNDED: dict[str, Callable[[AnyArray], AnyArray]] = {
    "round_prefer_floor": lambda places: np.ceil(places.astype(np.float64) - 0.5 - TIE),
    "round_prefer_ceil": lambda places: np.floor(places.astype(np.float64) + 0.5 + TIE),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""Whole places, by nearest_mode."""


def _resize(node: Node) -> Operand:
    x, value = node.input(0), node.value(0)
    mode = node.get("mode", "nearest")
    places_of = _row(PLACES, "coordinate_transformation_mode", "half_pixel", node)
    rounded = _row(ROUNDED, "nearest_mode", "round_prefer_floor", node)
    if mode not in ("nearest", "linear"):
        raise GraphImportError(f"its mode is {mode!r}; nearest and linear are supported")
    if mode == "linear" and x.dtype not in ("float32", "float64"):
        raise GraphImportError(f"elements {x.dtype} are not interpolated; cast them to float32")
    sizes = _sizes(node, x)
    if all(new == x.shape[axis] for axis, new, _ in sizes):
        return x  # For any scales, as ONNX Runtime does.
    for axis, new, scale in reversed(sizes):
        old = x.shape[axis]
        if not (0 < new <= MOST and old):
            raise GraphImportError(f"an axis of {old} elements cannot become one of {new}")
        if node.get("antialias", 0) and new < old:
            raise GraphImportError("antialias = 1 is not supported for images that become smaller")
        if scale == 1 and old == new:
            continue
        places = places_of(np.arange(new, dtype=_f32), scale, old, new)
        if mode == "linear":
            value = resize_linear(node.builder, value, axis, places)
        else:
            value = resize_nearest(node.builder, value, axis, rounded(places))
    return Operand(value)


def _row(table: dict[str, Callable[..., AnyArray]], name: str, default: str, node: Node) -> Callable[..., AnyArray]:
    given = node.get(name, default)
    if given not in table:
        raise GraphImportError(f"its {name} is {given!r}; supported are {', '.join(table)}")
    return table[given]


def _sizes(node: Node, x: Operand) -> list[tuple[int, int, np.float32]]:
    """The axes that are resized, their sizes, and the factors of enlargement."""
    given = node.get("axes", tuple(range(x.rank)))
    checked_axes(given, x.rank)
    axes = [axis % x.rank for axis in given]
    scales, sizes = node.optional(2), node.optional(3)
    if sizes is not None:
        wanted = numbers(sizes, "sizes")
        if len(wanted) == len(axes):
            return _by_sizes(node, x, axes, wanted)
    elif scales is not None and scales.known is not None and scales.known.shape == (len(axes),):
        factors = scales.known.astype(_f32)
        if not ((factors > 0) & (factors <= MOST)).all():
            raise GraphImportError(f"its scales {factors.tolist()} must be positive numbers up to {MOST}")
        return [(axis, int(_f32(x.shape[axis]) * factor), factor) for axis, factor in zip(axes, factors, strict=True)]
    raise GraphImportError(f"its sizes or scales must be constants, one for each of {len(axes)} axes")


def _by_sizes(node: Node, x: Operand, axes: list[int], wanted: tuple[int, ...]) -> list[tuple[int, int, np.float32]]:
    policy = node.get("keep_aspect_ratio_policy", "stretch")
    factors = [_f32(size) / _f32(max(x.shape[axis], 1)) for axis, size in zip(axes, wanted, strict=True)]
    if policy == "stretch":
        return list(zip(axes, wanted, factors, strict=True))
    if policy not in ("not_larger", "not_smaller"):
        raise GraphImportError(
            f"its keep_aspect_ratio_policy is {policy!r}; there are stretch, not_larger, not_smaller"
        )
    factor = (min if policy == "not_larger" else max)(factors, default=_f32(1))
    return [(axis, int(np.floor(factor * _f32(x.shape[axis]) + _f32(0.5))), factor) for axis in axes]


RESIZING: dict[str, Callable[[Node], Operand]] = {"Resize": _resize}


def _gemm(node: Node) -> Operand:
    b, (x, y), c = node.b, (node.input(0), node.input(1)), node.optional(2)
    x = b.transpose(x, permutation=(1, 0)) if node.get("transA", 0) else x
    y = b.transpose(y, permutation=(1, 0)) if node.get("transB", 0) else y
    found = b.dot(x, y)
    if node.get("alpha", 1.0) != 1:
        found = b.mul(found, b.like(found, node.get("alpha", 1.0)))
    if c is None or node.get("beta", 1.0) == 0:
        return found
    if node.get("beta", 1.0) != 1:
        c = b.mul(c, b.like(c, node.get("beta", 1.0)))
    total = b.add(found, c)
    return total


def padding(
    node: Node, sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding before and after, as numbers or as `auto_pad` says."""
    auto, space = node.get("auto_pad", "NOTSET"), len(sizes)
    if auto == "NOTSET":
        pads = list_of(node, "pads", 2 * space, 0)
        return pads[:space], pads[space:]
    if auto == "VALID":
        return (0,) * space, (0,) * space
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise GraphImportError(f"its attribute auto_pad = {auto!r} is not one of NOTSET, SAME_UPPER, SAME_LOWER, VALID")
    less, more = same_padding(sizes, window, strides, dilation)
    return (less, more) if auto == "SAME_UPPER" else (more, less)


def list_of(node: Node, name: str, count: int, default: int) -> tuple[int, ...]:
    """An attribute of several integers."""
    found = node.get(name, (default,) * count)
    if len(found) != count or not all(isinstance(n, int) for n in found):
        raise GraphImportError(f"its attribute {name} = {list(found)} needs {count} integers")
    return tuple(found)


def _with_bias(node: Node, image: Operand) -> Operand:
    bias = node.optional(2)
    if bias is None:
        return image
    found = node.b.add(image, node.b.reshape(bias, shape=(*bias.shape, *[1] * (image.rank - 2))))
    return found


def _conv(node: Node) -> Operand:
    x, kernel = node.input(0), node.input(1)
    space = x.rank - 2
    strides, dilation = list_of(node, "strides", space, 1), list_of(node, "dilations", space, 1)
    low, high = padding(node, x.shape[2:], kernel.shape[2:], strides, dilation)
    options = Convolution(strides, low, high, dilation, node.get("group", 1))
    return _with_bias(node, convolution(node.b, x, kernel, options))


def _conv_transpose(node: Node) -> Operand:
    x, kernel = node.input(0), node.input(1)
    space = x.rank - 2
    strides, dilation = list_of(node, "strides", space, 1), list_of(node, "dilations", space, 1)
    extra = list_of(node, "output_padding", space, 0)
    reach = [(wide - 1) * by for wide, by in zip(kernel.shape[2:], dilation, strict=True)]
    low, high, short = _cut_away(node, x.shape[2:], reach, strides, extra)
    extra = tuple(more + missing for more, missing in zip(extra, short, strict=True))
    options = Convolution(strides, low, high, dilation, node.get("group", 1))
    return _with_bias(node, transposed_convolution(node.b, x, kernel, options, extra))


def _cut_away(
    node: Node, sizes: Sequence[int], reach: Sequence[int], strides: Sequence[int], extra: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Elements that padding takes away from each end of the full result, and that the result lacks at the upper end."""
    space = len(sizes)
    full = [(n - 1) * s + far + 1 + more for n, s, far, more in zip(sizes, strides, reach, extra, strict=True)]
    auto = node.get("auto_pad", "NOTSET")
    if "output_shape" in node.attributes:
        wanted: Sequence[int] = list_of(node, "output_shape", space, 0)
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * s for n, s in zip(sizes, strides, strict=True)]
    else:
        pads = (0,) * (2 * space) if auto == "VALID" else list_of(node, "pads", 2 * space, 0)
        return pads[:space], pads[space:], (0,) * space
    less, more = halves([max(have - want, 0) for have, want in zip(full, wanted, strict=True)])
    short = tuple(max(want - have, 0) for have, want in zip(full, wanted, strict=True))
    return (less, more, short) if auto == "SAME_UPPER" else (more, less, short)


PRODUCTS: dict[str, Callable[[Node], Operand | Sequence[Operand]]] = {
    "MatMul": lambda n: n.b.dot(*n.values),
    "Gemm": _gemm,
    "Einsum": lambda n: Operand(einsum(n.builder, n.get("equation", ""), *(x.value for x in n.values))),
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
}
