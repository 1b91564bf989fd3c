"""Operations that change the shape, or ask for it."""

from __future__ import annotations

from math import prod

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.frontend.graph_builder import MOST_FOLDED, Operand, repeated
from shine.tensor.graphdef.constants import RESOURCE
from shine.tensor.graphdef.node import Operation, Rule, axis_of, takes


def _constant(n: Operation) -> Operand:
    tensor = n.tensor()
    if tensor.dtype != n.dtype("dtype"):
        raise GraphImportError(f"attr 'dtype' is {n.dtype('dtype')}, but its tensor is {tensor.dtype}")
    return n.b.constant(tensor.array(), is_parameter=True)


def _placeholder(n: Operation) -> Operand:
    """A feed replaces it where it is used."""
    if n.attribute("dtype", "type") == RESOURCE:
        raise GraphImportError(
            "it is a variable that a function uses, without its name; freeze the graph first, with "
            "convert_variables_to_constants_v2 of tensorflow.python.framework.convert_to_constants"
        )
    raise GraphImportError(
        "it is needed, but not fed; feed it, or fetch what does not need it; functions have arguments instead"
    )


def _shapes(n: Operation) -> list[Operand]:
    """Shapes are known here."""
    return [n.b.constant(operand.shape, n.dtype_or("int32", "out_type")) for operand in n.inputs]


def _reshape(n: Operation) -> Operand:
    """One size may be -1."""
    sizes = n.numbers(1, "shape")
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1:
        raise GraphImportError(f"its shape {list(sizes)} must have sizes, and -1 at most once")
    rest = prod(each for each in sizes if each != -1)
    free = prod(n[0].shape) // rest if rest else 0
    return n.b.reshape(n[0], shape=tuple(free if each == -1 else each for each in sizes))


def _squeeze(n: Operation) -> Operand:
    sizes = n[0].shape
    axes = {axis_of(each, len(sizes)) for each in n.listed("squeeze_dims", ())}
    if any(sizes[axis] != 1 for axis in axes):
        raise GraphImportError(f"it drops axes {sorted(axes)} of {list(sizes)}; only axes of size 1 can be dropped")
    kept = [each for axis, each in enumerate(sizes) if (axis not in axes if axes else each != 1)]
    return n.b.reshape(n[0], shape=tuple(kept))


def _expand(n: Operation) -> Operand:
    axis = n.axis(1, n[0].rank + 1)
    return n.b.reshape(n[0], shape=(*n[0].shape[:axis], 1, *n[0].shape[axis:]))


def _transpose(n: Operation) -> Operand:
    order = tuple(axis_of(each, n[0].rank) for each in n.numbers(1, "order of axes"))
    return n.b.transpose(n[0], permutation=order)


def _tile(n: Operation) -> Operand:
    operand, times = n[0], n.numbers(1, "multiples")
    if len(times) != operand.rank or min(times, default=0) < 0:
        raise GraphImportError(f"its multiples {list(times)} do not fit the shape {list(operand.shape)}")
    return repeated(n.b, operand, times)


def _range(n: Operation) -> Operand:
    """Of constants."""
    ends = [operand.known for operand in n.inputs]
    if any(end is None or end.ndim for end in ends) or len({operand.dtype for operand in n.inputs}) != 1:
        raise GraphImportError("start, limit and delta must be constant numbers of one element type: shapes are static")
    start, limit, delta = (end.item() for end in ends if end is not None)
    length = (limit - start) / delta if delta else float("nan")
    if not np.isfinite(length):
        raise GraphImportError(f"there is no range from {start} to {limit} by {delta}")
    # Integers are divided exactly.
    count = max(0, int(np.ceil(length)) if n[0].dtype.startswith("float") else -((start - limit) // delta))
    if count > MOST_FOLDED:
        raise GraphImportError(f"it has {count} numbers; at most {MOST_FOLDED} are supported")
    steps = np.arange(count, dtype=n[0].dtype)
    return n.b.constant(ends[0] + steps * ends[2], n[0].dtype)


SHAPING: dict[str, Rule] = {
    "Const": takes(0, _constant),
    "Placeholder": _placeholder,
    "Shape": takes(1, _shapes),
    "ShapeN": takes(1, _shapes, -1),
    "Size": takes(1, lambda n: n.b.constant(prod(n[0].shape), n.dtype_or("int32", "out_type"))),
    "Rank": takes(1, lambda n: n.b.constant(n[0].rank, "int32")),
    "Reshape": takes(2, _reshape),
    "Squeeze": takes(1, _squeeze),
    "ExpandDims": takes(2, _expand),
    "Transpose": takes(2, _transpose),
    "Tile": takes(2, _tile),
    "BroadcastTo": takes(2, lambda n: n.b.broadcast(n[0], shape=n.numbers(1, "shape"))),
    "Fill": takes(2, lambda n: n.b.broadcast(n[1], shape=n.numbers(0, "shape"))),
    "Range": takes(3, _range),
}
