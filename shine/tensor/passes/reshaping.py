"""Identities of operations that move or reduce elements, and transposes that are moved until they cancel."""

from __future__ import annotations

import math

import numpy as np

from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import ELEMENTWISE
from shine.tensor.form.types import FLOATS
from shine.tensor.passes.canonicalize import canonicalize, fold
from shine.tensor.passes.dce import share
from shine.tensor.passes.rewriting import Replacement, Rewriting, Rule, by_table, integer, integers, rewritten, trimmed


def _reduced_broadcast(r: Rewriting, instruction: Instruction) -> Replacement:
    """A reduction of equal elements: a product for a sum, the element itself for an extremum."""
    wide = r.maker(instruction.operands[0], "broadcast")
    if wide is None:
        return None
    (source,), axes = wide.operands, integers(instruction, "axes")
    shape = wide.result.type.shape
    full = (1,) * (len(shape) - source.type.rank) + source.type.shape
    equal = [axis for axis in axes if full[axis] == 1 and shape[axis] > 1]
    if not equal or instruction.operation == "reduce_prod":
        return None
    times = math.prod(shape[axis] for axis in equal)
    narrow = tuple(1 if axis in equal else size for axis, size in enumerate(shape))
    found = r.make(instruction.operation, r.fitted(source, narrow), **instruction.attributes)
    if instruction.operation != "reduce_sum":
        return found
    return r.make("mul", found, r.constant(np.array(times).astype(found.type.numpy)))


def _nothing_reduced(r: Rewriting, instruction: Instruction) -> Replacement:
    """A reduction of axes of size 1 is a reshape."""
    (operand,) = instruction.operands
    if math.prod(operand.type.shape[axis] for axis in integers(instruction, "axes")) != 1:
        return None
    return r.shaped(operand, instruction.result.type.shape)


def _reduced_twice(r: Rewriting, instruction: Instruction) -> Replacement:
    """Reductions of the same kind in one."""
    before = r.maker(instruction.operands[0], instruction.operation)
    if before is None or r.uses_now(before.result) > 1:
        return None
    (source,) = before.operands
    first, kept = set(integers(before, "axes")), bool(before.attributes["keep"])
    left = [axis for axis in range(source.type.rank) if kept or axis not in first]
    axes = tuple(sorted(first | {left[axis] for axis in integers(instruction, "axes")}))
    found = r.make(instruction.operation, source, axes=axes, keep=False)
    return r.shaped(found, instruction.result.type.shape)


def _reduced_transpose(r: Rewriting, instruction: Instruction) -> Replacement:
    """A reduction before the transpose, which then moves less."""
    before = r.maker(instruction.operands[0], "transpose")
    if before is None:
        return None
    (source,), order = before.operands, integers(before, "permutation")
    axes, kept = [order[axis] for axis in integers(instruction, "axes")], bool(instruction.attributes["keep"])
    found = r.make(instruction.operation, source, axes=tuple(sorted(axes)), keep=kept)
    left = [axis for axis in order if kept or axis not in axes]
    places = sorted(left)
    return r.turned(found, [places.index(axis) for axis in left])


def _product_of_transposes(r: Rewriting, instruction: Instruction) -> Replacement:
    """The transpose of a product of transposes is the product of the others: (A' B')' is B A.
    Constants are transposed when code is made."""
    product, order = r.maker(instruction.operands[0], "dot"), integers(instruction, "permutation")
    swap = (*range(len(order) - 2), len(order) - 1, len(order) - 2)
    if product is None or order != swap or r.uses_now(product.result) > 1:
        return None
    turned = [_without_transpose(r, operand, swap) for operand in product.operands]
    if turned[0] is None or turned[1] is None or all(r.array(operand) is not None for operand in product.operands):
        return None
    return r.make("dot", turned[1], turned[0])


def _without_transpose(r: Rewriting, value: Value, order: tuple[int, ...]) -> Value | None:
    """The value whose transpose this is; a constant is transposed."""
    maker = r.maker(value, "transpose")
    if maker is not None and integers(maker, "permutation") == order:
        return maker.operands[0]
    return r.turned(value, order) if r.array(value) is not None and value.type.rank == len(order) else None


def _gathered_in_order(r: Rewriting, instruction: Instruction) -> Replacement:
    """A gather of constant indices with equal distances is a slice."""
    source, indices = instruction.operands[0], r.array(instruction.operands[1])
    axis = integer(instruction, "axis")
    size = source.type.shape[axis]
    if indices is None or indices.size == 0 or indices.ndim > 1 or not size:
        return None
    places = np.clip(indices.reshape(-1).astype(np.int64), 0, size - 1)
    step = int(places[1] - places[0]) if places.size > 1 else 1
    if step <= 0 or (np.diff(places) != step).any():
        return None
    start, stop, by = [0] * source.type.rank, list(source.type.shape), [1] * source.type.rank
    start[axis], stop[axis], by[axis] = int(places[0]), int(places[-1]) + 1, step
    found = r.make("slice", source, start=tuple(start), stop=tuple(stop), step=tuple(by))
    return r.shaped(found, instruction.result.type.shape)


def _slice_of_part(r: Rewriting, instruction: Instruction) -> Replacement:
    """A slice of one operand of a concatenation."""
    whole = r.maker(instruction.operands[0], "concatenate")
    if whole is None or not instruction.result.type.elements:
        return None
    axis, first = integer(whole, "axis"), 0
    start, stop = list(integers(instruction, "start")), list(integers(instruction, "stop"))
    for part in whole.operands:
        size = part.type.shape[axis]
        if first <= start[axis] and stop[axis] <= first + size:
            start[axis], stop[axis] = start[axis] - first, stop[axis] - first
            step = integers(instruction, "step")
            return r.make("slice", part, start=tuple(start), stop=tuple(stop), step=step)
        first += size
    return None


def _joined_slices(r: Rewriting, instruction: Instruction) -> Replacement:
    """Neighbouring slices of one value are one slice."""
    axis, parts = integer(instruction, "axis"), list(instruction.operands)
    for place in range(len(parts) - 1):
        joined = _joined(r, parts[place], parts[place + 1], axis)
        if joined is not None:
            parts[place : place + 2] = [joined]
            return parts[0] if len(parts) == 1 else r.make("concatenate", *parts, axis=axis)
    return None


def _joined(r: Rewriting, one: Value, other: Value, axis: int) -> Value | None:
    a, b = r.maker(one, "slice"), r.maker(other, "slice")
    if a is None or b is None or a.operands != b.operands or integers(a, "step") != integers(b, "step"):
        return None
    ends = [(integers(s, "start"), integers(s, "stop")) for s in (a, b)]
    same = all(
        start == start_ and stop == stop_
        for i, (start, stop, start_, stop_) in enumerate(zip(*ends[0], *ends[1], strict=True))
        if i != axis
    )
    if not same or integers(a, "step")[axis] != 1 or ends[0][1][axis] != ends[1][0][axis]:
        return None
    stop = (*ends[0][1][:axis], ends[1][1][axis], *ends[0][1][axis + 1 :])
    return r.make("slice", *a.operands, start=ends[0][0], stop=stop, step=integers(a, "step"))


def _slice_of_padded(r: Rewriting, instruction: Instruction) -> Replacement:
    """A slice that leaves the padding out."""
    padded = r.maker(instruction.operands[0], "pad")
    if padded is None or any(integers(padded, "interior")):
        return None
    source, low = padded.operands[0], integers(padded, "low")
    start, stop = integers(instruction, "start"), integers(instruction, "stop")
    inside = all(
        before <= a and b <= before + size
        for a, b, before, size in zip(start, stop, low, source.type.shape, strict=True)
    )
    if not inside:
        return None
    start, stop = (tuple(end - before for end, before in zip(ends, low, strict=True)) for ends in (start, stop))
    return r.make("slice", source, start=start, stop=stop, step=integers(instruction, "step"))


def _transposed_broadcast(r: Rewriting, instruction: Instruction) -> Replacement:
    """A transpose before the broadcast moves fewer elements."""
    wide = r.maker(instruction.operands[0], "broadcast")
    if wide is None:
        return None
    (source,), order = wide.operands, integers(instruction, "permutation")
    full = r.shaped(source, (1,) * (len(order) - source.type.rank) + source.type.shape)
    return r.fitted(r.make("transpose", full, permutation=order), instruction.result.type.shape)


def _sliced_broadcast(r: Rewriting, instruction: Instruction) -> Replacement:
    """A slice of a broadcast along its repeated axes is a smaller broadcast."""
    wide = r.maker(instruction.operands[0], "broadcast")
    if wide is None:
        return None
    (source,), shape = wide.operands, wide.result.type.shape
    full, sizes = (1,) * (len(shape) - source.type.rank) + source.type.shape, instruction.result.type.shape
    start, stop, step = (integers(instruction, name) for name in ("start", "stop", "step"))
    equal = [own == 1 for own in full]
    found = r.make(
        "slice",
        r.shaped(source, full),
        start=tuple(0 if same else a for a, same in zip(start, equal, strict=True)),
        stop=tuple(1 if same else b for b, same in zip(stop, equal, strict=True)),
        step=tuple(1 if same else by for by, same in zip(step, equal, strict=True)),
    )
    return r.fitted(found, sizes)


def _empty_product(r: Rewriting, instruction: Instruction) -> Replacement:
    """A sum of no products is 0."""
    found = instruction.result.type
    if instruction.operands[0].type.shape[-1] or found.dtype not in FLOATS:
        return None
    return r.fitted(r.constant(0, found.with_shape(())), found.shape)


_SUMS: tuple[Rule, ...] = (_nothing_reduced, _reduced_twice, _reduced_broadcast, _reduced_transpose)

RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"), _SUMS),
    "transpose": (_product_of_transposes, _transposed_broadcast),
    "gather": (_gathered_in_order,),
    "slice": (_slice_of_part, _slice_of_padded, _sliced_broadcast),
    "concatenate": (_joined_slices,),
    "dot": (_empty_product,),
}
"""Rules by operation."""


def choose_layout(module: Module) -> Module:
    """Move transposes behind the operations that follow, where fewer bytes are transposed then.

    Precondition: the module is valid and in canonical form. Postcondition: no function transposes more bytes than
    before; constants are transposed at compile time. A network that was written for channels first (NCHW) becomes one
    transpose at its start and one at its end. No bit changes.
    """
    moved = share(fold(canonicalize(rewritten(module, by_table(_MOVES)))))
    kept = {}
    for function in module.defined:
        other = trimmed(moved.function(function.name))
        kept[function.name] = other if transposed_bytes(other) < transposed_bytes(function) else function
    changed = [f for name, f in kept.items() if f is not module.functions[name]]
    return module.with_functions(*changed) if changed else module


def transposed_bytes(function: Function) -> int:
    """Bytes of all results of transposes."""
    return sum(i.result.type.bytes for i in function.body if i.operation == "transpose")


def _elementwise(r: Rewriting, instruction: Instruction) -> Replacement:
    """op(x', y') is op(x, y)', and so it is if y is small or a constant."""
    rank = instruction.result.type.rank
    orders = [
        integers(maker, "permutation")
        for operand in instruction.operands
        if operand.type.rank == rank and (maker := r.maker(operand, "transpose")) is not None
    ]
    if not orders:
        return None
    order = orders[0]
    operands = [_before(r, operand, order, instruction.result.type.elements) for operand in instruction.operands]
    if any(operand is None for operand in operands):
        return None
    found = r.make(instruction.operation, *(v for v in operands if v is not None), **instruction.attributes)
    return r.turned(found, order)


def _before(r: Rewriting, value: Value, order: tuple[int, ...], elements: int) -> Value | None:
    """The value whose transpose this is; None if making it costs too much, and nobody needs it anyway."""
    if value.type.rank == 0:
        return value
    maker = r.maker(value, "transpose")
    if maker is not None and integers(maker, "permutation") == order:
        return maker.operands[0]
    inverse = _inverse(order)
    # An operand with this many times fewer elements than the result, such as a bias, may be transposed instead.
    is_large = r.array(value) is None and value.type.elements * 8 > elements
    if is_large and not any(
        i.operation == "transpose" and integers(i, "permutation") == inverse for i in r.readers(value)
    ):
        return None
    full = r.shaped(value, (1,) * (len(order) - value.type.rank) + value.type.shape)
    return r.turned(full, inverse)


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


def _each_axis(*names: str) -> Rule:
    """An operation with lists that have a number for each axis; further operands are scalars."""

    def rule(r: Rewriting, instruction: Instruction) -> Replacement:
        first, *others = instruction.operands
        maker = r.maker(first, "transpose")
        if maker is None:
            return None
        order = integers(maker, "permutation")
        inverse = _inverse(order)
        lists = {name: tuple(integers(instruction, name)[axis] for axis in inverse) for name in names}
        return r.turned(r.make(instruction.operation, maker.operands[0], *others, **lists), order)

    return rule


def _concatenate(r: Rewriting, instruction: Instruction) -> Replacement:
    makers = [r.maker(operand, "transpose") for operand in instruction.operands]
    orders = {integers(maker, "permutation") for maker in makers if maker is not None}
    if len(orders) != 1 or None in makers:
        return None
    (order,) = orders
    sources = [maker.operands[0] for maker in makers if maker is not None]
    return r.turned(r.make("concatenate", *sources, axis=order[integer(instruction, "axis")]), order)


_MOVES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(sorted(ELEMENTWISE), (_elementwise,)),
    "pad": (_each_axis("low", "high", "interior"),),
    "slice": (_each_axis("start", "stop", "step"),),
    "concatenate": (_concatenate,),
}
"""Rules by operation."""
