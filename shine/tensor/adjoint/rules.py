"""One adjoint rule for each operation.

A rule adds instructions and returns the adjoint of each operand, or None where that is 0. Where an operation has a
kink, the derivative is that of one side, or 0; equal extrema share it. The partial derivatives of elementwise
operations are those of formulas; elements that were moved move back, and those that were copied are summed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from shine.lang.derivative import is_constant
from shine.lang.partials import table_partials
from shine.tensor.adjoint import products
from shine.tensor.adjoint.shaping import Adjoints, Step, reshaped, sliced, stretched_to, summed_to, transposed, zeros
from shine.tensor.form.formulas import write_formula
from shine.tensor.form.module import Value
from shine.tensor.form.operations import FROM_THE_LANGUAGE
from shine.tensor.form.types import FLOATS

Rule: TypeAlias = Callable[[Step], Adjoints]


def _none(step: Step) -> Adjoints:
    """Results that do not change when the operands change a little."""
    return [None] * len(step.operands)


def _first(rule: Callable[[Step], Value]) -> Rule:
    """The rule of an operation of which only the first operand has an adjoint."""
    return lambda step: [rule(step), *[None] * (len(step.operands) - 1)]


def _primitive(s: Step) -> Adjoints:
    """By `shine.lang.partials`."""
    found: Adjoints = []
    for operand, partial, is_wanted in zip(s.operands, table_partials(s.instruction.operation), s.wanted, strict=True):
        if not is_wanted or partial is None:
            found.append(None)
            continue
        if is_constant(partial, 1):
            product = s.cotangent
        elif is_constant(partial, -1) or str(partial.result) == "-1":
            product = s.b.neg(s.cotangent)
        else:
            product = s.b.mul(s.cotangent, write_formula(s.b, partial, [*s.operands, s.instruction.result]))
        found.append(summed_to(s.b, product, operand.type.shape))
    return found


def _select(s: Step) -> Adjoints:
    """The cotangent where the condition chooses the operand, 0 elsewhere."""
    b, (condition, first, second) = s.b, s.operands
    zero = b.constant(0, s.cotangent.type.dtype)
    return [
        None,
        summed_to(b, b.select(condition, s.cotangent, zero), first.type.shape) if s.wanted[1] else None,
        summed_to(b, b.select(condition, zero, s.cotangent), second.type.shape) if s.wanted[2] else None,
    ]


def _cast(s: Step) -> Adjoints:
    both = {s.operand.type.dtype, s.cotangent.type.dtype}
    return [s.b.cast(s.cotangent, dtype=s.operand.type.dtype) if both <= FLOATS else None]


def _slice(s: Step) -> Value:
    """Zeros around and between the elements."""
    b, cotangent = s.b, s.cotangent
    if not cotangent.type.elements:
        return zeros(b, s.operand.type)
    start, step = s.attributes["start"], s.attributes["step"]
    sizes = zip(s.operand.type.shape, start, step, cotangent.type.shape, strict=True)
    high = tuple(size - first - (count - 1) * by - 1 for size, first, by, count in sizes)
    between = tuple(by - 1 for by in step)
    return b.pad(cotangent, b.constant(0, cotangent.type.dtype), low=start, high=high, interior=between)


def _pad(s: Step) -> Adjoints:
    """The operand's elements, and the sum of all others for the padding."""
    b, cotangent = s.b, s.cotangent
    low, high, interior = (s.attributes[name] for name in ("low", "high", "interior"))
    first: Value | None = None
    second: Value | None = None
    if s.wanted[0]:
        stop = tuple(
            max(size - after, start) for size, after, start in zip(cotangent.type.shape, high, low, strict=True)
        )
        first = b.slice(cotangent, start=low, stop=stop, step=tuple(between + 1 for between in interior))
    if s.wanted[1]:
        inside = stretched_to(b, b.constant(False), s.operand.type.shape)
        padding = b.pad(inside, b.constant(True), low=low, high=high, interior=interior)
        second = b.reduce_sum(b.select(padding, cotangent, b.constant(0, cotangent.type.dtype)))
    return [first, second]


def _concatenate(s: Step) -> Adjoints:
    """The part of each operand."""
    ends = np.cumsum([0, *(operand.type.shape[s.axis] for operand in s.operands)]).tolist()
    places = zip(s.wanted, ends[:-1], ends[1:], strict=True)
    return [sliced(s.b, s.cotangent, s.axis, start, stop) if is_wanted else None for is_wanted, start, stop in places]


def _gather(s: Step) -> Value:
    """Each slice is added where it was taken from."""
    b = s.b
    last = b.constant(max(s.operand.type.shape[s.axis] - 1, 0), "i64")
    inside = b.max(b.min(b.cast(s.second, dtype="i64"), last), b.constant(0, "i64"))
    return b.scatter_add(zeros(b, s.operand.type), inside, s.cotangent, axis=s.axis)


def _scatter_add(s: Step) -> Adjoints:
    """The slices were added as they are, but for those beyond the axis."""
    b, (operand, indices, slices) = s.b, s.operands
    found: Value | None = None
    if s.wanted[2] and operand.type.elements:
        places = b.cast(indices, dtype="i64")
        size = b.constant(operand.type.shape[s.axis], "i64")
        counted = getattr(b, "and")(b.ge(places, b.constant(0, "i64")), b.lt(places, size))
        shape = (*indices.type.shape, *(1 for _ in operand.type.shape[s.axis + 1 :]))
        taken = b.gather(s.cotangent, indices, axis=s.axis)
        found = b.select(reshaped(b, counted, shape), taken, b.constant(0, s.cotangent.type.dtype))
    elif s.wanted[2]:
        found = zeros(b, slices.type)
    return [s.cotangent if s.wanted[0] else None, None, found]


def _chosen_along(axis_of: Callable[[Step], int]) -> Rule:
    """The adjoint of a choice of elements along an axis, by the index of each: they go back to their places."""

    def rule(s: Step) -> Adjoints:
        if s.cotangents[0] is None:
            return [None]
        b, operand, cotangent, axis = s.b, s.operand, s.cotangent, axis_of(s)
        rank, size = operand.type.rank, operand.type.shape[axis]
        if not cotangent.type.elements:
            return [zeros(b, operand.type)]
        last = [*(i for i in range(rank) if i != axis), axis]
        turned = transposed(b, cotangent, last)
        lines = int(np.prod(turned.type.shape[:-1], dtype=np.int64))
        starts = b.constant((np.arange(lines, dtype=np.int64) * size).reshape(*turned.type.shape[:-1], 1))
        order = transposed(b, s.instruction.results[1], last)
        places = reshaped(b, b.add(order, starts), (turned.type.elements,))
        flat = zeros(b, operand.type.with_shape((operand.type.elements,)))
        found = b.scatter_add(flat, places, reshaped(b, turned, (turned.type.elements,)), axis=0)
        found = reshaped(b, found, tuple(operand.type.shape[i] for i in last))
        return [transposed(b, found, np.argsort(last).tolist())]

    return rule


RULES: dict[str, Rule] = {
    **dict.fromkeys(FROM_THE_LANGUAGE, _primitive),
    **dict.fromkeys(("round", "and", "or", "not", "constant", "argmax", "argmin"), _none),
    "select": _select,
    "cast": _cast,
    "broadcast": _first(lambda s: summed_to(s.b, s.cotangent, s.operand.type.shape)),
    "reshape": _first(lambda s: reshaped(s.b, s.cotangent, s.operand.type.shape)),
    "transpose": _first(lambda s: transposed(s.b, s.cotangent, np.argsort(s.attributes["permutation"]).tolist())),
    "slice": _first(_slice),
    "pad": _pad,
    "concatenate": _concatenate,
    "gather": _first(_gather),
    "scatter_add": _scatter_add,
    "reduce_sum": _first(products.of_sum),
    "reduce_prod": _first(products.of_product),
    **dict.fromkeys(("reduce_max", "reduce_min"), _first(products.of_extremum)),
    "sort": _chosen_along(lambda s: s.axis),
    "top_k": _chosen_along(lambda s: s.operand.type.rank - 1),
    "dot": products.dot,
    "convolve": products.convolve,
}
"""Rules by operation. Those that call functions are in `adjoints`, because they need derivatives of functions."""
