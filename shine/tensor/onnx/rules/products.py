"""Matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shine.base.errors import GraphImportError
from shine.tensor.compositions.contraction import einsum
from shine.tensor.imported.building import Operand
from shine.tensor.imported.channels import Convolution, convolution, transposed_convolution
from shine.tensor.onnx.node import Node


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
    totals = [
        max((-(-size // stride) - 1) * stride + (wide - 1) * by + 1 - size, 0)
        for size, wide, stride, by in zip(sizes, window, strides, dilation, strict=True)
    ]
    less, more = tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)
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
    totals = [max(have - want, 0) for have, want in zip(full, wanted, strict=True)]
    less, more = tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)
    short = tuple(max(want - have, 0) for have, want in zip(full, wanted, strict=True))
    return (less, more, short) if auto == "SAME_UPPER" else (more, less, short)


PRODUCTS: dict[str, Callable[[Node], Operand | Sequence[Operand]]] = {
    "MatMul": lambda n: n.b.dot(*n.values),
    "Gemm": _gemm,
    "Einsum": lambda n: Operand(einsum(n.builder, n.get("equation", ""), *(x.value for x in n.values))),
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
}
