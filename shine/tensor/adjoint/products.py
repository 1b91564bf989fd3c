"""Adjoints of products and reductions."""

from __future__ import annotations

import math

import numpy as np

from shine.tensor.adjoint.shaping import (
    Adjoints,
    Step,
    reshaped,
    reversed_along,
    sliced,
    stretched_to,
    summed_to,
    transposed,
    zeros,
)
from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value


def dot(s: Step) -> Adjoints:
    """For C = A B, the cotangent G gives A's adjoint G B' and B's adjoint A' G."""
    b, left, right, cotangent, wanted = s.b, s.operand, s.second, s.cotangent, s.wanted
    a = left if left.type.rank > 1 else reshaped(b, left, (1, *left.type.shape))
    c = right if right.type.rank > 1 else reshaped(b, right, (*right.type.shape, 1))
    batch = cotangent.type.shape[: cotangent.type.rank - (left.type.rank > 1) - (right.type.rank > 1)]
    g = reshaped(b, cotangent, (*batch, a.type.shape[-2], c.type.shape[-1]))
    first: Value | None = None
    second: Value | None = None
    if wanted[0]:
        found = summed_to(b, b.dot(g, _turned(b, c)), a.type.shape)
        first = reshaped(b, found, left.type.shape)
    if wanted[1]:
        if c.type.rank == 2 and batch and a.type.shape[:-2] == batch:
            # One product in place of one for each matrix of the stack and their sum.
            rows = math.prod(batch) * a.type.shape[-2]
            a, g = (reshaped(b, value, (rows, value.type.shape[-1])) for value in (a, g))
        found = summed_to(b, b.dot(_turned(b, a), g), c.type.shape)
        second = reshaped(b, found, right.type.shape)
    return [first, second]


def _turned(b: FunctionBuilder, value: Value) -> Value:
    """Each matrix of a stack transposed."""
    rank = value.type.rank
    return transposed(b, value, [*range(rank - 2), rank - 1, rank - 2])


def convolve(s: Step) -> Adjoints:
    """The image's adjoint convolves the cotangent, the kernel's convolves the image with the cotangent."""
    if not s.cotangent.type.elements or not s.operand.type.elements:
        return [
            zeros(s.b, value.type) if is_wanted else None for value, is_wanted in zip(s.operands, s.wanted, strict=True)
        ]
    return [_of_image(s) if s.wanted[0] else None, _of_kernel(s) if s.wanted[1] else None]


def _of_image(s: Step) -> Value:
    """The cotangent, spread by the strides, with the kernel turned round and its channels and filters exchanged."""
    b, image, kernel, cotangent, attributes = s.b, s.operand, s.second, s.cotangent, s.attributes
    space, groups = range(1, image.type.rank - 1), attributes["groups"]
    *window, channels, filters = kernel.type.shape
    turned = reversed_along(b, kernel, range(len(window)))
    turned = b.reshape(turned, shape=(*window, channels, groups, filters // groups))
    axes = [*range(len(window)), len(window) + 2, len(window) + 1, len(window)]
    turned = b.reshape(transposed(b, turned, axes), shape=(*window, filters // groups, groups * channels))
    low, high, cuts = [], [], []
    for axis in space:
        i = axis - 1
        reach = (window[i] - 1) * attributes["dilation"][i]
        seen = (cotangent.type.shape[axis] - 1) * attributes["strides"][i] + 1 + reach
        unseen = image.type.shape[axis] + attributes["low"][i] + attributes["high"][i] - seen
        before, after = reach - attributes["low"][i], reach - attributes["high"][i] + unseen
        low.append(max(before, 0))
        high.append(max(after, 0))
        cuts.append(max(-before, 0))
    between = (0, *(stride - 1 for stride in attributes["strides"]), 0)
    spread = b.pad(cotangent, b.constant(0, cotangent.type.dtype), interior=between) if any(between) else cotangent
    found = b.convolve(spread, turned, low=tuple(low), high=tuple(high), dilation=attributes["dilation"], groups=groups)
    for axis, cut in zip(space, cuts, strict=True):
        found = sliced(b, found, axis, cut, cut + image.type.shape[axis])
    return found


def _of_kernel(s: Step) -> Value:
    """The image's channels as a batch, with the cotangent as kernel; strides and dilation exchange their parts."""
    b, image, kernel, cotangent, attributes = s.b, s.operand, s.second, s.cotangent, s.attributes
    groups, rank = attributes["groups"], image.type.rank
    *window, channels, _ = kernel.type.shape
    space = list(range(1, rank - 1))
    batch, *sizes, _ = image.type.shape
    parts = b.reshape(image, shape=(batch, *sizes, groups, channels))
    parts = transposed(b, parts, [rank, *space, rank - 1, 0])
    parts = b.reshape(parts, shape=(channels, *sizes, groups * batch))
    seen = transposed(b, cotangent, [*space, 0, rank - 1])
    found = b.convolve(
        parts,
        seen,
        strides=attributes["dilation"],
        dilation=attributes["strides"],
        low=attributes["low"],
        high=attributes["high"],
        groups=groups,
    )
    for axis, size in zip(space, window, strict=True):
        found = sliced(b, found, axis, 0, size)
    return transposed(b, found, [*space, 0, rank - 1])


def _with_axes(s: Step, value: Value) -> Value:
    """A result with size 1 in the places of the reduced axes."""
    return reshaped(
        s.b, value, tuple(1 if i in s.attributes["axes"] else n for i, n in enumerate(s.operand.type.shape))
    )


def of_sum(s: Step) -> Value:
    """The same for each element."""
    return stretched_to(s.b, _with_axes(s, s.cotangent), s.operand.type.shape)


def of_extremum(s: Step) -> Value:
    """Equal extrema share the cotangent."""
    b, dtype = s.b, s.operand.type.dtype
    extreme = b.eq(s.operand, _with_axes(s, s.instruction.result))
    count = b.reduce_sum(b.cast(extreme, dtype=dtype), axes=s.attributes["axes"], keep=True)
    found = b.select(extreme, b.div(_with_axes(s, s.cotangent), count), b.constant(0, dtype))
    return found


def of_product(s: Step) -> Value:
    """The product of all others: of those before and those after, so that zeros do no harm to any order."""
    b, operand, axes = s.b, s.operand, s.attributes["axes"]
    others = [i for i in range(operand.type.rank) if i not in axes]
    order = [*others, *axes]
    size = math.prod(operand.type.shape[i] for i in axes)
    lines = math.prod(operand.type.shape[i] for i in others)
    flat = reshaped(b, transposed(b, operand, order), (lines, size))
    rest = b.mul(_products_before(b, flat, 1), _products_before(b, flat, -1))
    rest = reshaped(b, rest, tuple(operand.type.shape[i] for i in order))
    rest = transposed(b, rest, np.argsort(order).tolist())
    return b.mul(rest, _with_axes(s, s.cotangent))


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
    return b.pad(kept, one, low=(0, moved if by > 0 else 0), high=(0, 0 if by > 0 else moved))
