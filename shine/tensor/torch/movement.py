"""Operations that move, repeat, choose or make elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from shine.base.errors import GraphImportError
from shine.tensor.compositions.networks import cumsum
from shine.tensor.imported.building import Operand, repeated
from shine.tensor.torch.call import Call, checked_axis

Rule = Callable[[Call], "Operand | Sequence[Operand]"]

MOST_MADE = 1 << 24
"""Most elements of a constant that an operation makes."""


def _reshaped(call: Call) -> Operand:
    """The result's shape is known."""
    found: Operand = call.b.reshape(call.first, shape=call.shape)
    return found


def _same(call: Call) -> Operand:
    return call.first


def _expand(call: Call) -> Operand:
    found: Operand = call.b.broadcast(call.first, shape=call.shape)
    return found


def _permute(call: Call) -> Operand:
    rank = call.first.rank
    found: Operand = call.b.transpose(
        call.first, permutation=tuple(checked_axis(d, rank) for d in call.get("dims", ()))
    )
    return found


def _transpose(call: Call) -> Operand:
    order = list(range(call.first.rank))
    if order:
        a, b = (checked_axis(call.get(name, default), len(order)) for name, default in (("dim0", 0), ("dim1", -1)))
        order[a], order[b] = order[b], order[a]
    found: Operand = call.b.transpose(call.first, permutation=tuple(order))
    return found


def _cut(call: Call, axis: int, start: int, stop: int, step: int = 1) -> Operand:
    x = call.first
    starts, stops, steps = [0] * x.rank, list(x.shape), [1] * x.rank
    starts[axis], stops[axis], steps[axis] = start, stop, step
    found: Operand = call.b.slice(x, start=tuple(starts), stop=tuple(stops), step=tuple(steps))
    return found


def _slice(call: Call) -> Operand:
    axis = call.axis(default=0)
    start, stop, step = slice(call.get("start"), call.get("end"), call.get("step", 1)).indices(call.first.shape[axis])
    return _cut(call, axis, start, max(stop, start), step)


def _select(call: Call) -> Operand:
    axis = call.axis()
    index = checked_axis(call.get("index"), call.first.shape[axis])
    found: Operand = call.b.reshape(_cut(call, axis, index, index + 1), shape=call.shape)
    return found


def _split(call: Call) -> list[Operand]:
    axis = call.axis(default=0)
    ends = np.cumsum([0, *(shape[axis] for shape in call.shapes)]).tolist()
    return [_cut(call, axis, a, b) for a, b in pairwise(ends)]


def _unbind(call: Call) -> list[Operand]:
    axis = call.axis(default=0)
    return [call.b.reshape(_cut(call, axis, i, i + 1), shape=shape) for i, shape in enumerate(call.shapes)]


def _cat(call: Call) -> Operand:
    given = [call.b.cast_to(x, call.dtype) for x in call.get("tensors", ())]
    # torch leaves out empty vectors beside tensors of other ranks.
    parts = [x for x in given if x.shape != (0,) or len(call.shape) == 1]
    found: Operand = call.b.concatenate(*parts, axis=checked_axis(call.get("dim", 0), parts[0].rank))
    return found


def _stack(call: Call) -> Operand:
    axis = checked_axis(call.get("dim", 0), len(call.shape))
    shape = (*call.shape[:axis], 1, *call.shape[axis + 1 :])
    parts = [call.b.reshape(x, shape=shape) for x in call.get("tensors", ())]
    found: Operand = call.b.concatenate(*parts, axis=axis)
    return found


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
    found: Operand = b.pad(inside, filling, low=tuple(max(n, 0) for n in low), high=tuple(max(n, 0) for n in high))
    return found


def _flip(call: Call) -> Operand:
    x = call.first
    for axis in call.axes("dims"):
        x = call.b.gather(x, call.b.constant(np.arange(x.shape[axis])[::-1]), axis=axis)
    return x


def _repeat(call: Call) -> Operand:
    b, x, repeats = call.b, call.first, list(call.get("repeats", ()))
    x = b.reshape(x, shape=(*[1] * (len(repeats) - x.rank), *x.shape))
    return repeated(b, x, repeats)


def _roll(call: Call) -> Operand:
    b, x = call.b, call.first
    for shift, axis in zip(call.get("shifts", ()), call.get("dims", ()), strict=True):
        axis = checked_axis(axis, x.rank)
        x = b.gather(x, b.constant(np.roll(np.arange(x.shape[axis]), shift)), axis=axis)
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


def _triangle(keep: Callable[[np.ndarray, int], np.ndarray]) -> Rule:
    def rule(call: Call) -> Operand:
        b, x = call.b, call.first
        mask = b.constant(keep(np.ones(x.shape[-2:], bool), call.get("diagonal", 0)))
        found: Operand = b.select(mask, x, b.like(x, 0))
        return found

    return rule


def _cumsum(call: Call) -> Operand:
    x = call.b.cast_to(call.first, call.dtype)
    return x if not x.rank else Operand(cumsum(call.builder, x.value, call.axis()))


MOVEMENT: dict[str, Rule] = {
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "flatten", "unflatten"), _reshaped),
    **dict.fromkeys(("clone", "alias", "detach", "lift_fresh_copy", "contiguous", "dropout"), _same),
    "expand": _expand,
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
    "tril": _triangle(np.tril),
    "triu": _triangle(np.triu),
    "cumsum": _cumsum,
}
