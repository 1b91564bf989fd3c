"""Canonical form: one way to write each computation, no copies, and functions of constants computed now."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np

from shine.compiler.arrays import COMPILED
from shine.lang.forms.facts import FACTS
from shine.tensor.form.interpreter import evaluate
from shine.tensor.form.module import Instruction, Module, Value
from shine.tensor.form.operations import CALLS, ELEMENTWISE, result_types
from shine.tensor.form.types import FLOATS, INTEGERS, TRUTH, broadcast, without_ones
from shine.tensor.passes.rewriting import Replacement, Rewriting, Rule, by_table, integer, integers, rewritten

MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
"""Each comparison with its operands swapped."""

_EXACT = INTEGERS | TRUTH
"""Elements without zeros of two signs."""


def canonicalize(module: Module) -> Module:
    """Order operands and compose movements of elements.

    Precondition: the module is valid. Postcondition: operands of commutative operations stand in the order in which
    they are made, constants last; no reshape, transpose, broadcast, slice, pad or cast changes nothing, or follows
    one of its own kind that it could be composed with; elementwise operations and products broadcast themselves where
    they can; a transpose that moves no element is a reshape. No bit of a value changes.
    """
    return rewritten(module, by_table(RULES))


def _ordered(r: Rewriting, instruction: Instruction) -> Replacement:
    """Constants to the right, other operands in the order in which they are made."""
    name, (a, b) = instruction.operation, instruction.operands
    facts = FACTS.get(name)
    mirrored = MIRRORED.get(name, name)
    if name not in MIRRORED and not (facts is None or facts.commutative):
        return None
    if facts is not None and facts.sign_by_order and a.type.dtype not in _EXACT:
        return None
    keys = [(r.array(value) is not None, r.place(value)) for value in (a, b)]
    return r.make(mirrored, b, a) if keys[0] > keys[1] else None


def _unbroadcast(r: Rewriting, instruction: Instruction) -> Replacement:
    """Elementwise operations broadcast themselves."""
    operands = list(instruction.operands)
    for place, operand in enumerate(operands):
        wide = r.maker(operand, "broadcast")
        if wide is None or len(operands) == 1:
            continue
        shapes = [value.type.shape for i, value in enumerate(operands) if i != place]
        if broadcast([*shapes, wide.operands[0].type.shape]) == instruction.result.type.shape:
            operands[place] = wide.operands[0]
    if tuple(operands) == instruction.operands:
        return None
    return r.make(instruction.operation, *operands, **instruction.attributes)


def _unbroadcast_stack(r: Rewriting, instruction: Instruction) -> Replacement:
    """Products repeat a matrix for each of the other operand's stack themselves."""
    for place, operand in enumerate(instruction.operands):
        wide = r.maker(operand, "broadcast")
        if wide is None or wide.operands[0].type.shape[-2:] != operand.type.shape[-2:]:
            continue
        operands = list(instruction.operands)
        operands[place] = wide.operands[0]
        if result_types("dot", tuple(v.type for v in operands), {}) == (instruction.result.type,):
            return r.make("dot", *operands)
    return None


def _late_broadcast(r: Rewriting, instruction: Instruction) -> Replacement:
    """An elementwise operation of one operand comes before the broadcast: it computes fewer elements."""
    wide = r.maker(instruction.operands[0], "broadcast")
    if wide is None or wide.result.type.elements <= wide.operands[0].type.elements:
        return None
    found = r.make(instruction.operation, wide.operands[0], **instruction.attributes)
    return r.make("broadcast", found, shape=wide.result.type.shape)


def _cast(r: Rewriting, instruction: Instruction) -> Replacement:
    (operand,) = instruction.operands
    return operand if operand.type == instruction.result.type else None


def _reshape(r: Rewriting, instruction: Instruction) -> Replacement:
    (operand,), shape = instruction.operands, instruction.result.type.shape
    if operand.type.shape == shape:
        return operand
    before = r.maker(operand, "reshape")
    return None if before is None else r.shaped(before.operands[0], shape)


def _transpose(r: Rewriting, instruction: Instruction) -> Replacement:
    (operand,), order = instruction.operands, integers(instruction, "permutation")
    before = r.maker(operand, "transpose")
    if before is not None:
        inner = integers(before, "permutation")
        return r.turned(before.operands[0], [inner[axis] for axis in order])
    # Only axes of size 1 move.
    moving = [axis for axis in order if operand.type.shape[axis] != 1]
    return r.shaped(operand, instruction.result.type.shape) if moving == sorted(moving) else None


def _broadcast(r: Rewriting, instruction: Instruction) -> Replacement:
    (operand,), found = instruction.operands, instruction.result.type
    if operand.type == found or operand.type.elements == found.elements > 0:
        return r.shaped(operand, found.shape)
    before = r.maker(operand, "broadcast")
    if before is not None:
        return r.fitted(before.operands[0], found.shape)
    before = r.maker(operand, "reshape")
    # A reshape that adds leading axes of size 1 is part of every broadcast.
    if before is not None and without_ones(operand.type.shape) == before.operands[0].type.shape:
        return r.fitted(before.operands[0], found.shape)
    return None


def _slice(r: Rewriting, instruction: Instruction) -> Replacement:
    (operand,), sizes = instruction.operands, instruction.result.type.shape
    start, step = integers(instruction, "start"), integers(instruction, "step")
    if operand.type.shape == sizes:
        return operand
    before = r.maker(operand, "slice")
    if before is not None:
        first, by = integers(before, "start"), integers(before, "step")
        (operand,) = before.operands
        start = tuple(a + i * b for a, i, b in zip(first, start, by, strict=True))
        step = tuple(a * b for a, b in zip(by, step, strict=True))
    # Of one element or none, the step does not matter; of none, the start.
    step = tuple(by if size > 1 else 1 for by, size in zip(step, sizes, strict=True))
    start = tuple(first if size else 0 for first, size in zip(start, sizes, strict=True))
    stop = tuple(a + (size - 1) * by + 1 if size else a for a, size, by in zip(start, sizes, step, strict=True))
    if before is None and all(
        integers(instruction, name) == now for name, now in (("start", start), ("stop", stop), ("step", step))
    ):
        return None
    return r.make("slice", operand, start=start, stop=stop, step=step)


def _pad(r: Rewriting, instruction: Instruction) -> Replacement:
    operand, filling = instruction.operands
    low, high, interior = (integers(instruction, name) for name in ("low", "high", "interior"))
    if operand.type == instruction.result.type:
        return operand
    before = r.maker(operand, "pad")
    if before is None or before.operands[1] != filling or any(interior) or any(integers(before, "interior")):
        return None
    sums = {
        name: tuple(a + b for a, b in zip(now, integers(before, name), strict=True))
        for name, now in (("low", low), ("high", high))
    }
    return r.make("pad", before.operands[0], filling, interior=interior, **sums)


def _concatenate(r: Rewriting, instruction: Instruction) -> Replacement:
    """Without empty operands, and with the operands of concatenations along the same axis."""
    axis = integer(instruction, "axis")
    parts: list[Value] = []
    for operand in instruction.operands:
        before = r.maker(operand, "concatenate")
        is_same = before is not None and integer(before, "axis") == axis
        parts += before.operands if before is not None and is_same else [operand]
    kept = [part for part in parts if part.type.shape[axis]] or parts[:1]
    if len(kept) == 1:
        return kept[0]
    return None if tuple(kept) == instruction.operands else r.make("concatenate", *kept, axis=axis)


_SWAPPED = {name for name in ELEMENTWISE if name in FACTS and FACTS[name].commutative} | {"and", "or", *MIRRORED}

RULES: dict[str, tuple[Rule, ...]] = {
    **{name: (_late_broadcast,) for name in ELEMENTWISE if name not in FACTS or FACTS[name].arity == 1},
    **{name: (_unbroadcast,) for name in ELEMENTWISE if name in FACTS and FACTS[name].arity > 1},
    **dict.fromkeys(_SWAPPED, (_ordered, _unbroadcast)),
    "select": (_unbroadcast,),
    "dot": (_unbroadcast_stack,),
    "cast": (_cast, _late_broadcast),
    "reshape": (_reshape,),
    "transpose": (_transpose,),
    "broadcast": (_broadcast,),
    "slice": (_slice,),
    "pad": (_pad,),
    "concatenate": (_concatenate,),
}
"""Rules by operation."""


MOST_BYTES = 1 << 16
"""Bytes that a folded constant may add to the code. One that is no larger than the constants it replaces always may."""

MOST_REPEATED = 256
"""Bytes of a broadcast constant that is folded: code broadcasts without memory."""

MOST_WORK = 1 << 24
"""Multiplications of a product that is folded: beyond, compiling would take seconds."""

NOT_FOLDED = CALLS | {"constant", "convolve"}
"""Calls are inlined or stay; a convolution of constants does not occur in networks."""


def fold(module: Module) -> Module:
    """Replace instructions whose operands are constants, and those without elements, by constants.

    Precondition: the module is valid. Postcondition: an instruction of constants is left only if its result is larger
    than `MOST_BYTES` (`MOST_REPEATED` for a broadcast) and than its operands, if its bits are not known (elementary
    functions in f32), or if it is in `NOT_FOLDED`. The bits are those of compiled code; sums and products of matrices
    have those of sums in order.
    """
    return rewritten(module, _folded)


def _folded(r: Rewriting, instruction: Instruction) -> Replacement:
    empty = not any(result.type.elements for result in instruction.results)
    if empty and instruction.operation not in CALLS and instruction.operation != "constant":
        return tuple(r.constant(np.empty(v.type.shape, v.type.numpy)) for v in instruction.results)
    if instruction.operation in NOT_FOLDED:
        return None
    arrays = [array for operand in instruction.operands if (array := r.array(operand)) is not None]
    if len(arrays) < len(instruction.operands):
        return None
    freed = sum(a.nbytes for a, v in zip(arrays, instruction.operands, strict=True) if r.uses_now(v) == 1)
    made = sum(result.type.bytes for result in instruction.results)
    if made > (MOST_REPEATED if instruction.operation == "broadcast" else max(MOST_BYTES, freed)):
        return None
    values = _values(instruction, arrays)
    if values is None:
        return None
    types = (result.type for result in instruction.results)
    return tuple(
        r.constant(np.asarray(value, t.numpy).reshape(t.shape)) for value, t in zip(values, types, strict=True)
    )


def _values(instruction: Instruction, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...] | None:
    """Results; None if their bits are not known."""
    name, facts = instruction.operation, FACTS.get(instruction.operation)
    is_float = instruction.results[0].type.dtype in FLOATS
    with np.errstate(all="ignore"):
        if name == "dot" and is_float:
            return _product(*arrays)
        if facts is not None and facts.inexact and is_float:
            return _inexact(name, arrays)
        return evaluate(instruction, arrays)


def _inexact(name: str, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...] | None:
    """An elementary function with the bits of compiled code, which are known for f64."""
    if arrays[0].dtype != np.float64:
        return None
    return (COMPILED[name](*arrays),)


def _product(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """A matrix product with sums in order: the same bits on every processor, which NumPy's are not."""
    a = left if left.ndim > 1 else left[None]
    b = right if right.ndim > 1 else right[:, None]
    if math.prod(a.shape) * b.shape[-1] > MOST_WORK or a.shape[-1] == 0:
        return None
    products = (a[..., k, None] * b[..., k, None, :] for k in range(a.shape[-1]))
    return (reduce(add, products),)
