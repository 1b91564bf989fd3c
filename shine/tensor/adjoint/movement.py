"""Adjoints of operations that move elements: the elements move back, and those that were copied are summed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shine.tensor.adjoint.shaping import Adjoints, Wanted, reshaped, sliced, stretched_to, transposed, zeros
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value


def transpose(b: FunctionBuilder, cotangent: Value, permutation: tuple[int, ...]) -> Value:
    """The axes in their former order."""
    return transposed(b, cotangent, np.argsort(permutation).tolist())


def slice_(b: FunctionBuilder, operand: Value, cotangent: Value, attributes: Mapping[str, Any]) -> Value:
    """Zeros around and between the elements."""
    if not cotangent.type.elements:
        return zeros(b, operand.type)
    start, step = attributes["start"], attributes["step"]
    sizes = zip(operand.type.shape, start, step, cotangent.type.shape, strict=True)
    high = tuple(size - first - (count - 1) * by - 1 for size, first, by, count in sizes)
    between = tuple(by - 1 for by in step)
    found: Value = b.pad(cotangent, b.constant(0, cotangent.type.dtype), low=start, high=high, interior=between)
    return found


def pad(
    b: FunctionBuilder, operand: Value, cotangent: Value, wanted: Wanted, attributes: Mapping[str, Any]
) -> Adjoints:
    """The operand's elements, and the sum of all others for the padding."""
    low, high, interior = attributes["low"], attributes["high"], attributes["interior"]
    first: Value | None = None
    second: Value | None = None
    if wanted[0]:
        stop = tuple(
            max(size - after, start) for size, after, start in zip(cotangent.type.shape, high, low, strict=True)
        )
        first = b.slice(cotangent, start=low, stop=stop, step=tuple(between + 1 for between in interior))
    if wanted[1]:
        inside = stretched_to(b, b.constant(False), operand.type.shape)
        padding = b.pad(inside, b.constant(True), low=low, high=high, interior=interior)
        second = b.reduce_sum(b.select(padding, cotangent, b.constant(0, cotangent.type.dtype)))
    return [first, second]


def concatenate(
    b: FunctionBuilder, operands: tuple[Value, ...], cotangent: Value, wanted: Wanted, axis: int
) -> Adjoints:
    """The part of each operand."""
    ends = np.cumsum([0, *(operand.type.shape[axis] for operand in operands)]).tolist()
    places = zip(wanted, ends[:-1], ends[1:], strict=True)
    return [sliced(b, cotangent, axis, start, stop) if is_wanted else None for is_wanted, start, stop in places]


def gather(b: FunctionBuilder, operand: Value, indices: Value, cotangent: Value, axis: int) -> Value:
    """Each slice is added where it was taken from."""
    last = b.constant(max(operand.type.shape[axis] - 1, 0), "i64")
    inside = b.max(b.min(b.cast(indices, dtype="i64"), last), b.constant(0, "i64"))
    found: Value = b.scatter_add(zeros(b, operand.type), inside, cotangent, axis=axis)
    return found


def scatter_add(
    b: FunctionBuilder, operands: tuple[Value, ...], cotangent: Value, wanted: Wanted, axis: int
) -> Adjoints:
    """The slices were added as they are, but for those beyond the axis."""
    operand, indices, slices = operands
    found: Value | None = None
    if wanted[2] and operand.type.elements:
        places = b.cast(indices, dtype="i64")
        size = b.constant(operand.type.shape[axis], "i64")
        counted = getattr(b, "and")(b.ge(places, b.constant(0, "i64")), b.lt(places, size))
        shape = (*indices.type.shape, *(1 for _ in operand.type.shape[axis + 1 :]))
        taken = b.gather(cotangent, indices, axis=axis)
        found = b.select(reshaped(b, counted, shape), taken, b.constant(0, cotangent.type.dtype))
    elif wanted[2]:
        found = zeros(b, slices.type)
    return [cotangent if wanted[0] else None, None, found]


def along(b: FunctionBuilder, operand: Value, order: Value, cotangent: Value, axis: int) -> Value:
    """The adjoint of a choice of elements along an axis, by the index of each: they go back to their places."""
    rank, size = operand.type.rank, operand.type.shape[axis]
    if not cotangent.type.elements:
        return zeros(b, operand.type)
    last = [*(i for i in range(rank) if i != axis), axis]
    turned = transposed(b, cotangent, last)
    lines = int(np.prod(turned.type.shape[:-1], dtype=np.int64))
    starts = b.constant((np.arange(lines, dtype=np.int64) * size).reshape(*turned.type.shape[:-1], 1))
    places = reshaped(b, b.add(transposed(b, order, last), starts), (turned.type.elements,))
    flat = zeros(b, operand.type.with_shape((operand.type.elements,)))
    found = b.scatter_add(flat, places, reshaped(b, turned, (turned.type.elements,)), axis=0)
    found = reshaped(b, found, tuple(operand.type.shape[i] for i in last))
    return transposed(b, found, np.argsort(last).tolist())
