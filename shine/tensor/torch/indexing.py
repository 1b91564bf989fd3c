"""Elements at places that tensors of integers tell, and elements put in the place of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from shine.tensor.imported.building import Operand
from shine.tensor.imported.selection import elements_along, from_the_end
from shine.tensor.torch.call import Call, checked_axis


def _embedding(call: Call) -> Operand:
    found: Operand = call.b.gather(call.operand("weight"), call.operand("indices"), axis=0)
    return found


def _index_select(call: Call) -> Operand:
    found: Operand = call.b.gather(call.first, call.operand("index"), axis=call.axis())
    return found


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
        found: Operand = b.gather(x, indices[0], axis=used[0])
        return found
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
    found: Operand = b.gather(flat, b.constant(places), axis=len(others))
    return found


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
    found: Operand = b.gather(b.concatenate(x, source, axis=axis), b.constant(chosen), axis=axis)
    return found


def _copy(call: Call) -> Operand:
    source = call.operand("src", call.dtype)
    found: Operand = source if source.shape == call.shape else call.b.broadcast(source, shape=call.shape)
    return found


def _gather(call: Call) -> Operand:
    return elements_along(call.b, call.first, call.operand("index", "int64"), call.axis())


INDEXING: dict[str, Callable[[Call], Operand]] = {
    "embedding": _embedding,
    "index_select": _index_select,
    "index": _index,
    "diagonal": _diagonal,
    "gather": _gather,
    "slice_scatter": _slice_scatter,
    "select_scatter": _select_scatter,
    "copy": _copy,
}
