"""Operations that change the shape, or ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.frontend.graph_builder import MOST_FOLDED, GraphBuilder, Operand, numbers, repeated
from shine.tensor.graphdef.constants import RESOURCE
from shine.tensor.graphdef.node import Node, axis_of, check_count, listed, one_number


def constant(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Const."""
    check_count(inputs, 0)
    tensor = node.tensor()
    if tensor.dtype != node.dtype("dtype"):
        raise GraphImportError(f"attr 'dtype' is {node.dtype('dtype')}, but its tensor is {tensor.dtype}")
    return (b.constant(tensor.array(), is_parameter=True),)


def placeholder(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Placeholder, replaced by a feed."""
    if node.attribute("dtype", "type") == RESOURCE:
        raise GraphImportError(
            "it is a variable that a function uses, without its name; freeze the graph first, with "
            "convert_variables_to_constants_v2 of tensorflow.python.framework.convert_to_constants"
        )
    raise GraphImportError(
        "it is needed, but not fed; feed it, or fetch what does not need it; functions have arguments instead"
    )


def shape(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Shape and ShapeN: shapes are known here."""
    check_count(inputs, 1, 1 if node.op == "Shape" else -1)
    return [b.constant(operand.shape, _out_type(node)) for operand in inputs]


def size(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Size: the number of elements."""
    check_count(inputs, 1)
    return (b.constant(prod(inputs[0].shape), _out_type(node)),)


def rank(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Rank: the number of axes."""
    check_count(inputs, 1)
    return (b.constant(inputs[0].rank, "int32"),)


def _out_type(node: Node) -> str:
    return "int32" if node.optional("out_type", "type") is None else node.dtype("out_type")


def reshape(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Reshape; one size may be -1."""
    check_count(inputs, 2)
    sizes = numbers(inputs[1], "shape")
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1:
        raise GraphImportError(f"its shape {list(sizes)} must have sizes, and -1 at most once")
    rest = prod(each for each in sizes if each != -1)
    free = prod(inputs[0].shape) // rest if rest else 0
    return b.emit("reshape", inputs[:1], shape=tuple(free if each == -1 else each for each in sizes))


def squeeze(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Squeeze: without axes of size 1."""
    check_count(inputs, 1)
    sizes = inputs[0].shape
    axes = {axis_of(each, len(sizes)) for each in listed(node, "squeeze_dims", ())}
    if any(sizes[axis] != 1 for axis in axes):
        raise GraphImportError(f"it drops axes {sorted(axes)} of {list(sizes)}; only axes of size 1 can be dropped")
    kept = [each for axis, each in enumerate(sizes) if (axis not in axes if axes else each != 1)]
    return b.emit("reshape", inputs, shape=tuple(kept))


def expand(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """ExpandDims: an axis of size 1 more."""
    check_count(inputs, 2)
    operand = inputs[0]
    axis = axis_of(one_number(inputs[1], "axis"), operand.rank + 1)
    return b.emit("reshape", [operand], shape=(*operand.shape[:axis], 1, *operand.shape[axis:]))


def transpose(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Transpose."""
    check_count(inputs, 2)
    order = tuple(axis_of(each, inputs[0].rank) for each in numbers(inputs[1], "order of axes"))
    return b.emit("transpose", inputs[:1], permutation=order)


def tile(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Tile: repeated along each axis."""
    check_count(inputs, 2)
    operand, times = inputs[0], numbers(inputs[1], "multiples")
    if len(times) != operand.rank or min(times, default=0) < 0:
        raise GraphImportError(f"its multiples {list(times)} do not fit the shape {list(operand.shape)}")
    return (repeated(b, operand, times),)


def broadcast_to(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """BroadcastTo."""
    check_count(inputs, 2)
    return b.emit("broadcast", inputs[:1], shape=numbers(inputs[1], "shape"))


def fill(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Fill: one number everywhere."""
    check_count(inputs, 2)
    return b.emit("broadcast", inputs[1:], shape=numbers(inputs[0], "shape"))


def number_range(b: GraphBuilder, node: Node, inputs: Sequence[Operand]) -> Sequence[Operand]:
    """Range of constants."""
    check_count(inputs, 3)
    ends = [operand.known for operand in inputs]
    if any(end is None or end.ndim for end in ends) or len({operand.dtype for operand in inputs}) != 1:
        raise GraphImportError("start, limit and delta must be constant numbers of one element type: shapes are static")
    start, limit, delta = (end.item() for end in ends if end is not None)
    length = (limit - start) / delta if delta else float("nan")
    if not np.isfinite(length):
        raise GraphImportError(f"there is no range from {start} to {limit} by {delta}")
    # Integers are divided exactly.
    count = max(0, int(np.ceil(length)) if inputs[0].dtype.startswith("float") else -((start - limit) // delta))
    if count > MOST_FOLDED:
        raise GraphImportError(f"it has {count} numbers; at most {MOST_FOLDED} are supported")
    steps = np.arange(count, dtype=inputs[0].dtype)
    return (b.constant(ends[0] + steps * ends[2], inputs[0].dtype),)
