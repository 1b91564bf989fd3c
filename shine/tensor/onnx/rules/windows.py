"""Pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shine.base.errors import GraphImportError
from shine.tensor.compositions.normalization import mean
from shine.tensor.compositions.pooling import Windows, avg_pool, max_pool
from shine.tensor.imported.building import Operand
from shine.tensor.onnx.node import Node
from shine.tensor.onnx.rules.products import list_of, padding


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
