"""Operations that move, repeat, choose or make elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions.networks import cumsum
from shine.tensor.compositions.pooling import resize_linear, resize_nearest
from shine.tensor.frontend.graph_builder import Operand, cut, elements_along, from_the_end, picked, repeated, triangle
from shine.tensor.torch.call import Call, checked_axis

Rule = Callable[[Call], "Operand | Sequence[Operand]"]

MOST_MADE = 1 << 24
"""Most elements of a constant that an operation makes."""


def _reshaped(call: Call) -> Operand:
    """The result's shape is known."""
    return call.b.reshape(call.first, shape=call.shape)


def _same(call: Call) -> Operand:
    return call.first


def _permute(call: Call) -> Operand:
    rank = call.first.rank
    return call.b.transpose(call.first, permutation=tuple(checked_axis(d, rank) for d in call.get("dims", ())))


def _transpose(call: Call) -> Operand:
    order = list(range(call.first.rank))
    if order:
        a, b = (checked_axis(call.get(name, default), len(order)) for name, default in (("dim0", 0), ("dim1", -1)))
        order[a], order[b] = order[b], order[a]
    return call.b.transpose(call.first, permutation=tuple(order))


def _slice(call: Call) -> Operand:
    axis = call.axis(default=0)
    start, stop, step = slice(call.get("start"), call.get("end"), call.get("step", 1)).indices(call.first.shape[axis])
    return cut(call.b, call.first, axis, start, max(stop, start), step)


def _select(call: Call) -> Operand:
    axis = call.axis()
    index = checked_axis(call.get("index"), call.first.shape[axis])
    return call.b.reshape(cut(call.b, call.first, axis, index, index + 1), shape=call.shape)


def _split(call: Call) -> list[Operand]:
    axis = call.axis(default=0)
    ends = np.cumsum([0, *(shape[axis] for shape in call.shapes)]).tolist()
    return [cut(call.b, call.first, axis, a, b) for a, b in pairwise(ends)]


def _unbind(call: Call) -> list[Operand]:
    axis = call.axis(default=0)
    return [call.b.reshape(cut(call.b, call.first, axis, i, i + 1), shape=shape) for i, shape in enumerate(call.shapes)]


def _cat(call: Call) -> Operand:
    given = [call.b.cast_to(x, call.dtype) for x in call.get("tensors", ())]
    # torch leaves out empty vectors beside tensors of other ranks.
    parts = [x for x in given if x.shape != (0,) or len(call.shape) == 1]
    return call.b.concatenate(*parts, axis=checked_axis(call.get("dim", 0), parts[0].rank))


def _stack(call: Call) -> Operand:
    axis = checked_axis(call.get("dim", 0), len(call.shape))
    shape = (*call.shape[:axis], 1, *call.shape[axis + 1 :])
    parts = [call.b.reshape(x, shape=shape) for x in call.get("tensors", ())]
    return call.b.concatenate(*parts, axis=axis)


def _pad(call: Call) -> Operand:
    """Two numbers an axis, the last axis first; negative ones cut away."""
    b, x, pads = call.b, call.first, list(call.get("pad", ()))
    low, high = [0] * x.rank, [0] * x.rank
    for place in range(len(pads) // 2):
        low[x.rank - 1 - place], high[x.rank - 1 - place] = pads[2 * place : 2 * place + 2]
    start = tuple(max(-n, 0) for n in low)
    stop = tuple(size - max(-n, 0) for size, n in zip(x.shape, high, strict=True))
    inside = b.slice(x, start=start, stop=stop) if any(start) or stop != x.shape else x
    filling = b.constant(call.get("value", 0), x.dtype)
    return b.pad(inside, filling, low=tuple(max(n, 0) for n in low), high=tuple(max(n, 0) for n in high))


def _flip(call: Call) -> Operand:
    x = call.first
    for axis in call.axes("dims"):
        x = picked(call.b, x, np.arange(x.shape[axis])[::-1], axis)
    return x


def _repeat(call: Call) -> Operand:
    b, x, repeats = call.b, call.first, list(call.get("repeats", ()))
    x = b.reshape(x, shape=(*[1] * (len(repeats) - x.rank), *x.shape))
    return repeated(b, x, repeats)


def _roll(call: Call) -> Operand:
    b, x = call.b, call.first
    for shift, axis in zip(call.get("shifts", ()), call.get("dims", ()), strict=True):
        axis = checked_axis(axis, x.rank)
        x = picked(b, x, np.roll(np.arange(x.shape[axis]), shift), axis)
    return x


def _full(call: Call) -> Operand:
    number = call.get("fill_value", call.get("value", call.get("s", 0)))
    return _made(call, np.broadcast_to(np.array(number, call.dtype), call.shape))


def _filled(number: float) -> Rule:
    return lambda call: _made(call, np.broadcast_to(np.array(number, call.dtype), call.shape))


def _arange(call: Call) -> Operand:
    start, step = call.get("start", 0), call.get("step", 1)
    return _made(call, (start + np.arange(call.shape[0]) * step).astype(call.dtype))


def _made(call: Call, array: np.ndarray) -> Operand:
    if array.size > MOST_MADE:
        raise GraphImportError(f"it makes {array.size} elements; at most {MOST_MADE} are supported")
    return call.b.constant(array)


def _cumsum(call: Call) -> Operand:
    x = call.b.cast_to(call.first, call.dtype)
    return x if not x.rank else Operand(cumsum(call.builder, x.value, call.axis()))


MOVEMENT: dict[str, Rule] = {
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten"), _reshaped),
    **dict.fromkeys(("clone", "alias", "detach", "lift_fresh_copy", "contiguous", "dropout"), _same),
    "expand": lambda c: c.b.broadcast(c.first, shape=c.shape),
    "permute": _permute,
    "transpose": _transpose,
    "t": _transpose,
    "slice": _slice,
    "select": _select,
    **dict.fromkeys(("split", "split_with_sizes", "chunk"), _split),
    "unbind": _unbind,
    "cat": _cat,
    "stack": _stack,
    "constant_pad_nd": _pad,
    "flip": _flip,
    "repeat": _repeat,
    "roll": _roll,
    **dict.fromkeys(("full", "full_like", "scalar_tensor", "new_full"), _full),
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty"), _filled(0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), _filled(1)),
    "arange": _arange,
    "tril": lambda c: triangle(c.b, c.first, c.get("diagonal", 0), upper=False),
    "triu": lambda c: triangle(c.b, c.first, c.get("diagonal", 0), upper=True),
    "cumsum": _cumsum,
}


def _index(call: Call) -> Operand:
    """Tensors of integers for some axes, broadcast together.

    As in NumPy, their axes stand where the indexed ones stood, or first if these are not beside each other.
    """
    b, x, given = call.b, call.first, list(call.get("indices", ()))
    used = [i for i, index in enumerate(given) if index is not None]
    others = [i for i in range(x.rank) if i not in used]
    sizes = [x.shape[i] for i in used]
    indices = [from_the_end(b, given[i], x.shape[i]) for i in used]
    if len(used) == 1:
        return b.gather(x, indices[0], axis=used[0])
    # The used axes become one, whose places are computed.
    places = indices[0]
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        places = b.add(b.mul(places, b.constant(size, "int64")), index)
    first = used[0] if used == list(range(used[0], used[0] + len(used))) else 0
    order = [*others[:first], *used, *others[first:]]
    left, right = [[x.shape[i] for i in part] for part in (others[:first], others[first:])]
    flat = b.reshape(b.transpose(x, permutation=tuple(order)), shape=(*left, math.prod(sizes), *right))
    found = b.gather(flat, places, axis=first)
    return found


def _diagonal(call: Call) -> Operand:
    """Elements with two indices that differ by the offset; their axis is the last one."""
    b, x, offset = call.b, call.first, call.get("offset", 0)
    one, two = (checked_axis(call.get(name, default), x.rank) for name, default in (("dim1", 0), ("dim2", 1)))
    others = [i for i in range(x.rank) if i not in (one, two)]
    flat = b.reshape(
        b.transpose(x, permutation=(*others, one, two)),
        shape=(*(x.shape[i] for i in others), x.shape[one] * x.shape[two]),
    )
    first = max(-offset, 0) * x.shape[two] + max(offset, 0)
    places = first + np.arange(call.shape[-1]) * (x.shape[two] + 1)
    return picked(b, flat, places, len(others))


def _slice_scatter(call: Call) -> Operand:
    """Another tensor in the place of a slice; assignments to slices become this."""
    axis = call.axis(default=0)
    size = call.first.shape[axis]
    chosen = slice(call.get("start"), call.get("end"), call.get("step", 1))
    return _replaced(call, axis, range(*chosen.indices(size)), call.operand("src", call.dtype))


def _select_scatter(call: Call) -> Operand:
    axis, source = call.axis(default=0), call.operand("src", call.dtype)
    place = range(call.first.shape[axis])[call.get("index")]
    source = call.b.reshape(source, shape=(*source.shape[:axis], 1, *source.shape[axis:]))
    return _replaced(call, axis, [place], source)


def _replaced(call: Call, axis: int, places: Sequence[int], source: Operand) -> Operand:
    """A tensor with some slices along an axis from another one."""
    b, x = call.b, call.first
    chosen = np.arange(x.shape[axis])
    chosen[places] = x.shape[axis] + np.arange(len(places))
    return picked(b, b.concatenate(x, source, axis=axis), chosen, axis)


def _copy(call: Call) -> Operand:
    source = call.operand("src", call.dtype)
    return source if source.shape == call.shape else call.b.broadcast(source, shape=call.shape)


INDEXING: dict[str, Callable[[Call], Operand]] = {
    "embedding": lambda c: c.b.gather(c.operand("weight"), c.operand("indices"), axis=0),
    "index_select": lambda c: c.b.gather(c.first, c.operand("index"), axis=c.axis()),
    "index": _index,
    "diagonal": _diagonal,
    "gather": lambda c: elements_along(c.b, c.first, c.operand("index", "int64"), c.axis()),
    "slice_scatter": _slice_scatter,
    "select_scatter": _select_scatter,
    "copy": _copy,
}


_SCALES = {1: ("scales",), 2: ("scales_h", "scales_w")}
"""Arguments with the factors of enlargement, by the number of axes that are resized."""


def _nearest(call: Call) -> Operand:
    value = call.first.value
    for axis, old, new, scale in _axes(call):
        places = np.arange(new, dtype=np.float32) * _step(old, new, scale, np.float32)
        value = resize_nearest(call.builder, value, axis, np.floor(places))
    return Operand(value)


def _bilinear(call: Call) -> Operand:
    value = call.first.value
    if call.first.dtype not in ("float32", "float64"):
        raise GraphImportError(f"elements {call.first.dtype} are not interpolated; cast them to float32")
    number = call.first.value.type.numpy.type
    for axis, old, new, scale in _axes(call):
        places = np.arange(new).astype(number)
        if call.get("align_corners", False):
            places = places * (number(old - 1) / number(max(new - 1, 1)))
        else:
            places = (places + number(0.5)) * _step(old, new, scale, number) - number(0.5)
        value = resize_linear(call.builder, value, axis, places)
    return Operand(value)


def _axes(call: Call) -> Iterator[tuple[int, int, int, float | None]]:
    """The axes that change, the last one first: their sizes before and after, and the factor if one is given."""
    count = call.first.rank - 2
    scales = call.get("scale_factors") or [call.get(name) for name in _SCALES[count]]
    for place in reversed(range(count)):
        old, new = call.first.shape[place + 2], call.shape[place + 2]
        if old != new:
            yield place + 2, old, new, scales[place]


def _step(old: int, new: int, scale: float | None, number: Callable[[float], Any]) -> Any:
    """Elements of the image from one element of the result to the next one."""
    return number(1 / scale) if scale else number(old) / number(new)


RESIZING: dict[str, Callable[[Call], Operand]] = {
    "upsample_nearest1d": _nearest,
    "upsample_nearest2d": _nearest,
    "upsample_bilinear2d": _bilinear,
}
