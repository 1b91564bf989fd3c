"""Operators that move, repeat or choose elements, and those that give constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError
from shine.base.typing import AnyArray
from shine.tensor.compositions.networks import cumsum
from shine.tensor.frontend.graph_builder import (
    Operand,
    cut,
    elements_along,
    from_the_end,
    numbers,
    one_hot,
    picked,
    repeated,
    triangle,
)
from shine.tensor.onnx.files import array_of, dtype_name
from shine.tensor.onnx.node import Node, checked_axes, checked_axis

MOST_MADE = 1 << 24
"""Most elements of a constant that an operator makes from a few numbers."""


def _known(node: Node, place: int, what: str) -> AnyArray:
    found = node.input(place).known
    if found is None:
        raise GraphImportError(f"its {what} must be a constant, but depends on the arguments: shapes are static here")
    return found


def _constant(node: Node) -> Operand:
    given = [key for key in node.attributes if key.startswith("value") or key == "sparse_value"]
    if len(given) != 1 or given[0] not in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        raise GraphImportError("it needs one value of numbers")
    value = node.attributes[given[0]]
    if given[0] == "value":
        return node.b.constant(array_of(value, None))
    return node.b.constant(np.array(value, np.float32 if "float" in given[0] else np.int64))


def _constant_of_shape(node: Node) -> Operand:
    shape = numbers(node.input(0), "shape")
    value = array_of(node.attributes["value"], None) if "value" in node.attributes else np.zeros(1, np.float32)
    if value.size != 1:
        raise GraphImportError(f"its value has {value.size} elements; it needs one")
    if min(shape, default=0) < 0:
        raise GraphImportError(f"its shape is {list(shape)}; lengths are at least 0")
    return node.b.constant(np.broadcast_to(value.reshape(()), shape))


def _shape(node: Node) -> Operand:
    shape = np.array(node.input(0).shape, np.int64)
    start, end = node.get("start", 0), node.attributes.get("end")
    return node.b.constant(shape[slice(start, end)])


def _range(node: Node) -> Operand:
    start, limit, delta = (_known(node, place, name) for place, name in enumerate(("start", "limit", "delta")))
    if delta.size != 1 or not delta:
        raise GraphImportError("its delta is 0, or no number")
    if abs((limit - start) / delta) > MOST_MADE:
        raise GraphImportError(
            f"it makes {abs((limit - start) / delta):.0f} elements; at most {MOST_MADE} are supported"
        )
    count = max(math.ceil((float(limit) - float(start)) / float(delta)), 0)
    return node.b.constant((start + np.arange(count) * delta).astype(start.dtype).reshape(-1))


def _eye_like(node: Node) -> Operand:
    shape = node.input(0).shape
    if len(shape) != 2:
        raise GraphImportError(f"its input has {len(shape)} axes; 2 are needed")
    dtype = dtype_name(node.get("dtype", 1)) if "dtype" in node.attributes else node.input(0).dtype
    return node.b.constant(np.eye(*shape, k=node.get("k", 0)).astype(dtype))


def _reshape(node: Node) -> Operand:
    x, shape = node.input(0), list(numbers(node.input(1), "shape"))
    if not node.get("allowzero", 0):
        for place, size in enumerate(shape):
            if size == 0 and place < x.rank:
                shape[place] = x.shape[place]
    return _reshaped(node, x, shape)


def _reshaped(node: Node, x: Operand, shape: Sequence[int]) -> Operand:
    """With -1 for the size that follows from the others."""
    found, rest = list(shape), math.prod(size for size in shape if size != -1)
    if found.count(-1) == 1 and rest:
        found[found.index(-1)] = math.prod(x.shape) // rest
    if min(found, default=0) < 0 or math.prod(found) != math.prod(x.shape):
        raise GraphImportError(f"its input of shape {list(x.shape)} cannot get the shape {list(shape)}")
    return node.b.reshape(x, shape=tuple(found))


def _flatten(node: Node) -> Operand:
    x = node.input(0)
    axis = node.get("axis", 1)
    axis = x.rank if axis == x.rank else checked_axis(axis, x.rank)
    return node.b.reshape(x, shape=(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _squeeze(node: Node) -> Operand:
    x = node.input(0)
    given = node.sizes("axes", 1)
    ones = tuple(i for i, size in enumerate(x.shape) if size == 1)
    axes = ones if given is None else checked_axes(given, x.rank)
    if not set(axes) <= set(ones):
        raise GraphImportError(f"its axes {list(axes)} of the shape {list(x.shape)} do not all have size 1")
    return node.b.reshape(x, shape=tuple(size for i, size in enumerate(x.shape) if i not in axes))


def _unsqueeze(node: Node) -> Operand:
    x, given = node.input(0), node.sizes("axes", 1, ())
    assert given is not None
    axes = checked_axes(given, x.rank + len(given))
    shape = list(x.shape)
    for axis in axes:
        shape.insert(axis, 1)
    return node.b.reshape(x, shape=tuple(shape))


def _transpose(node: Node) -> Operand:
    x = node.input(0)
    order = node.get("perm", tuple(reversed(range(x.rank))))
    return node.b.transpose(x, permutation=tuple(order))


def _expand(node: Node) -> Operand:
    x, wanted = node.input(0), numbers(node.input(1), "shape")
    return node.b.broadcast(x, shape=tuple(int(n) for n in np.broadcast_shapes(x.shape, wanted)))


def _tile(node: Node) -> Operand:
    x, repeats = node.input(0), numbers(node.input(1), "repeats")
    if len(repeats) != x.rank or min(repeats, default=0) < 0:
        raise GraphImportError(f"its repeats {list(repeats)} need a number of at least 0 for each of {x.rank} axes")
    return repeated(node.b, x, repeats)


def _concat(node: Node) -> Operand:
    axis = checked_axis(node.get("axis"), node.input(0).rank)
    return node.b.concatenate(*node.values, axis=axis)


def _split(node: Node) -> list[Operand]:
    x = node.input(0)
    axis = node.axis("axis", 0, x.rank)
    sizes = node.sizes("split", 1)
    if sizes is None:
        parts = node.get("num_outputs", node.outputs)
        each = -(-x.shape[axis] // max(parts, 1))
        sizes = tuple(max(min(each, x.shape[axis] - i * each), 0) for i in range(parts))
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 0:
        raise GraphImportError(f"its parts {list(sizes)} do not make {x.shape[axis]} elements")
    ends = np.cumsum((0, *sizes)).tolist()
    return [cut(node.b, x, axis, a, b) for a, b in pairwise(ends)]


def _slice(node: Node) -> Operand:
    x = node.input(0)
    starts, ends = (numbers(node.input(place), name) for place, name in ((1, "starts"), (2, "ends")))
    axes = tuple(range(len(starts))) if node.optional(3) is None else numbers(node.input(3), "axes")
    steps = (1,) * len(starts) if node.optional(4) is None else numbers(node.input(4), "steps")
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise GraphImportError("its starts, ends, axes and steps differ in length, or a step is 0")
    checked_axes(axes, x.rank)
    for start, end, given, step in zip(starts, ends, axes, steps, strict=True):
        axis = checked_axis(given, x.rank)
        size = x.shape[axis]
        if step < 0:
            # Counted from the end, -1 is the last element; an end before the first is below -size.
            first = min(max(start if start >= 0 else start + size, 0), size - 1)
            last = max(end if end >= 0 else end + size, -1)
            places = np.arange(first, last, step) if first >= 0 else np.arange(0)
            x = picked(node.b, x, places, axis)
        else:
            first, last, _ = slice(start, end, step).indices(size)
            x = cut(node.b, x, axis, first, max(last, first), step)
    return x


def _pad(node: Node) -> Operand:
    x, mode = node.input(0), node.get("mode", "constant")
    pads = node.sizes("pads", 1)
    axes = tuple(range(x.rank)) if node.optional(3) is None else numbers(node.input(3), "axes")
    if pads is None or len(pads) != 2 * len(axes):
        raise GraphImportError(f"its pads need two numbers for each of {len(axes)} axes")
    low, high = [0] * x.rank, [0] * x.rank
    for place, axis in enumerate(axes):
        low[checked_axis(axis, x.rank)], high[checked_axis(axis, x.rank)] = pads[place], pads[place + len(axes)]
    if mode != "constant":
        return _padded_by_itself(node, x, mode, low, high)
    for axis, size in enumerate(x.shape):
        if size + low[axis] + high[axis] < 0:
            raise GraphImportError(f"its pads cut off more than the {size} elements of axis {axis}")
        start, stop = max(-low[axis], 0), size - max(-high[axis], 0)
        first = min(start, size)
        x = cut(node.b, x, axis, first, max(stop, first)) if start or stop < size else x
        # Where more is cut off than there is, the rest is taken from the padding of the other end.
        low[axis], high[axis] = max(low[axis], 0) + min(stop, 0), max(high[axis], 0) - max(start - size, 0)
    filling = node.optional(2) or node.b.like(x, node.get("value", 0.0))
    filling = node.b.reshape(filling, shape=()) if filling.rank else filling
    return node.b.pad(x, filling, low=tuple(low), high=tuple(high))


def _padded_by_itself(node: Node, x: Operand, mode: str, low: list[int], high: list[int]) -> Operand:
    """Padding with elements of the input: of the edge, mirrored, or from the other side."""
    if mode not in ("edge", "reflect", "wrap"):
        raise GraphImportError(f"its attribute mode = {mode!r} is not one of constant, edge, reflect, wrap")
    for axis, (before, after) in enumerate(zip(low, high, strict=True)):
        if before < 0 or after < 0 or ((before or after) and not x.shape[axis]):
            raise GraphImportError(f"its pads {low} and {high} are negative, or an axis is empty")
        if before or after:
            kind: Any = mode
            x = picked(node.b, x, np.pad(np.arange(x.shape[axis]), (before, after), kind), axis)
    return x


def _gather(node: Node) -> Operand:
    x = node.input(0)
    axis = node.axis("axis", 0, x.rank)
    return node.b.gather(x, from_the_end(node.b, node.input(1), x.shape[axis]), axis=axis)


def _gather_elements(node: Node) -> Operand:
    x = node.input(0)
    axis = node.axis("axis", 0, x.rank)
    return elements_along(node.b, x, from_the_end(node.b, node.input(1), x.shape[axis]), axis)


def _cumsum(node: Node) -> Operand:
    axis = int(_known(node, 1, "axis").reshape(-1)[0])
    exclusive, back = bool(node.get("exclusive", 0)), bool(node.get("reverse", 0))
    axis = checked_axis(axis, node.input(0).rank)
    return Operand(cumsum(node.builder, node.value(0), axis, exclusive, back))


def _triangle(node: Node) -> Operand:
    x = node.input(0)
    k = 0 if node.optional(1) is None else int(_known(node, 1, "k").reshape(-1)[0])
    if x.rank < 2:
        raise GraphImportError("its input needs two axes")
    return triangle(node.b, x, k, bool(node.get("upper", 1)))


def _one_hot(node: Node) -> Operand:
    b, indices = node.b, node.input(0)
    depth = int(_known(node, 1, "depth").reshape(-1)[0])
    axis = node.axis("axis", -1, indices.rank + 1)
    values = node.input(2)
    if depth < 0 or depth > MOST_MADE or values.shape != (2,):
        raise GraphImportError(f"its depth is {depth}, and its values have the shape {list(values.shape)}")
    off, on = (b.reshape(cut(b, values, 0, i, i + 1), shape=()) for i in (0, 1))
    return one_hot(b, from_the_end(b, indices, depth), depth, axis, on, off)


def _depth_to_space(node: Node) -> Operand:
    b, x, size = node.b, node.input(0), node.get("blocksize")
    n, c, h, w = _image(x)
    if size < 1 or c % (size * size):
        raise GraphImportError(f"its {c} channels are not a multiple of blocksize {size} squared")
    if node.get("mode", "DCR") == "DCR":
        parts, order = (n, size, size, c // size**2, h, w), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (n, c // size**2, size, size, h, w), (0, 1, 4, 2, 5, 3)
    moved = b.transpose(b.reshape(x, shape=parts), permutation=order)
    return b.reshape(moved, shape=(n, c // size**2, h * size, w * size))


def _space_to_depth(node: Node) -> Operand:
    b, x, size = node.b, node.input(0), node.get("blocksize")
    n, c, h, w = _image(x)
    if size < 1 or h % size or w % size:
        raise GraphImportError(f"its image of {h} x {w} is not a multiple of blocksize {size}")
    parts = b.reshape(x, shape=(n, c, h // size, size, w // size, size))
    orders = {"DCR": (0, 3, 5, 1, 2, 4), "CRD": (0, 1, 3, 5, 2, 4)}
    mode = node.get("mode", "DCR")
    if mode not in orders:
        raise GraphImportError(f"its mode is {mode!r}; allowed are DCR and CRD")
    moved = b.transpose(parts, permutation=orders[mode])
    return b.reshape(moved, shape=(n, c * size**2, h // size, w // size))


def _image(x: Operand) -> tuple[int, ...]:
    if x.rank != 4:
        raise GraphImportError(f"its input has {x.rank} axes; 4 are needed")
    return x.shape


MOVEMENT: dict[str, Callable[[Node], Operand | Sequence[Operand]]] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Shape": _shape,
    "Size": lambda n: n.b.constant(np.int64(math.prod(n.input(0).shape))),
    "Range": _range,
    "EyeLike": _eye_like,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Expand": _expand,
    "Tile": _tile,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Pad": _pad,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "CumSum": _cumsum,
    "Trilu": _triangle,
    "OneHot": _one_hot,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}
