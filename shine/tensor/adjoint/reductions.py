"""Adjoints of reductions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from shine.tensor.adjoint.shaping import reshaped, stretched_to, transposed
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value


def _with_axes(b: FunctionBuilder, value: Value, operand: Value, axes: tuple[int, ...]) -> Value:
    """A result with size 1 in the places of the reduced axes."""
    return reshaped(b, value, tuple(1 if i in axes else size for i, size in enumerate(operand.type.shape)))


def of_sum(b: FunctionBuilder, operand: Value, cotangent: Value, attributes: Mapping[str, Any]) -> Value:
    """The same for each element."""
    return stretched_to(b, _with_axes(b, cotangent, operand, attributes["axes"]), operand.type.shape)


def of_extremum(
    b: FunctionBuilder, operand: Value, result: Value, cotangent: Value, attributes: Mapping[str, Any]
) -> Value:
    """Equal extrema share the cotangent."""
    axes = attributes["axes"]
    extreme = b.eq(operand, _with_axes(b, result, operand, axes))
    count = b.reduce_sum(b.cast(extreme, dtype=operand.type.dtype), axes=axes, keep=True)
    share = b.div(_with_axes(b, cotangent, operand, axes), count)
    found: Value = b.select(extreme, share, b.constant(0, operand.type.dtype))
    return found


def of_product(b: FunctionBuilder, operand: Value, cotangent: Value, attributes: Mapping[str, Any]) -> Value:
    """The product of all others: of those before and those after, so that zeros do no harm to any order."""
    axes = attributes["axes"]
    others = [i for i in range(operand.type.rank) if i not in axes]
    order = [*others, *axes]
    size = math.prod(operand.type.shape[i] for i in axes)
    lines = math.prod(operand.type.shape[i] for i in others)
    flat = reshaped(b, transposed(b, operand, order), (lines, size))
    rest = b.mul(_products_before(b, flat, 1), _products_before(b, flat, -1))
    rest = reshaped(b, rest, tuple(operand.type.shape[i] for i in order))
    rest = transposed(b, rest, np.argsort(order).tolist())
    found: Value = b.mul(rest, _with_axes(b, cotangent, operand, axes))
    return found


def _products_before(b: FunctionBuilder, lines: Value, direction: int) -> Value:
    """For each element the product of those before it on its line, or after it: by doubling."""
    found, reach = _shifted(b, lines, direction), 1
    while reach < lines.type.shape[1]:
        found = b.mul(found, _shifted(b, found, direction * reach))
        reach *= 2
    return found


def _shifted(b: FunctionBuilder, lines: Value, by: int) -> Value:
    """Lines moved on by some places, or back, with ones in front, or behind."""
    count, size = lines.type.shape
    moved = min(abs(by), size)
    start = (0, 0) if by > 0 else (0, moved)
    kept = b.slice(lines, start=start, stop=(count, start[1] + size - moved))
    one = b.constant(1, lines.type.dtype)
    found: Value = b.pad(kept, one, low=(0, moved if by > 0 else 0), high=(0, 0 if by > 0 else moved))
    return found
