"""Adjoints of products and reductions, and the context in which the rules of adjoints work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Instruction, Value
from shine.tensor.form.types import TensorType


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


Adjoints: TypeAlias = "list[Value | None]"
"""One for each operand; None where it is 0 or not wanted."""


@dataclass(frozen=True, eq=False)
class Step:
    """The context of a rule.

    Parameters
    ----------
    b : FunctionBuilder
        The adjoint in the making.
    instruction : Instruction
        The one to differentiate, as it stands in that function.
    cotangents : tuple of (Value or None)
        Derivatives by its results; None if 0.
    wanted : tuple of bool
        The operands whose adjoints are needed.
    """

    b: FunctionBuilder
    instruction: Instruction
    cotangents: tuple[Value | None, ...]
    wanted: tuple[bool, ...]

    @property
    def operands(self) -> tuple[Value, ...]:
        """The instruction's."""
        return self.instruction.operands

    @property
    def operand(self) -> Value:
        """The first operand."""
        return self.instruction.operands[0]

    @property
    def second(self) -> Value:
        """The second operand."""
        return self.instruction.operands[1]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The instruction's."""
        return self.instruction.attributes

    @property
    def axis(self) -> int:
        """The axis along which the instruction works."""
        axis = self.attributes["axis"]
        assert isinstance(axis, int)
        return axis

    @property
    def cotangent(self) -> Value:
        """The derivative by the first result, which is not 0."""
        assert self.cotangents[0] is not None
        return self.cotangents[0]


def zeros(b: FunctionBuilder, type: TensorType) -> Value:
    """Zeros of a type."""
    return b.broadcast(b.constant(0, type.dtype), shape=type.shape) if type.shape else b.constant(0, type.dtype)


def summed_to(b: FunctionBuilder, value: Value, shape: tuple[int, ...]) -> Value:
    """The adjoint of broadcasting from a shape: sums over the axes that were stretched."""
    if value.type.shape == shape:
        return value
    extra = value.type.rank - len(shape)
    axes = [*range(extra), *(extra + i for i, n in enumerate(shape) if n != value.type.shape[extra + i])]
    return reshaped(b, b.reduce_sum(value, axes=tuple(axes)), shape)


def stretched_to(b: FunctionBuilder, value: Value, shape: tuple[int, ...]) -> Value:
    """A value broadcast to a shape."""
    return value if value.type.shape == shape else b.broadcast(value, shape=shape)


def reshaped(b: FunctionBuilder, value: Value, shape: tuple[int, ...]) -> Value:
    """A value in another shape."""
    return value if value.type.shape == shape else b.reshape(value, shape=shape)


def transposed(b: FunctionBuilder, value: Value, permutation: list[int]) -> Value:
    """A value with its axes in another order."""
    same = permutation == list(range(value.type.rank))
    return value if same else b.transpose(value, permutation=tuple(permutation))


def sliced(b: FunctionBuilder, value: Value, axis: int, start: int, stop: int) -> Value:
    """Some of the places of one axis."""
    shape = value.type.shape
    if (start, stop) == (0, shape[axis]):
        return value
    starts, stops = [0] * len(shape), list(shape)
    starts[axis], stops[axis] = start, stop
    return b.slice(value, start=tuple(starts), stop=tuple(stops))


def reversed_along(b: FunctionBuilder, value: Value, axes: range) -> Value:
    """A value with axes turned round."""
    for axis in axes:
        if value.type.shape[axis] > 1:
            value = b.gather(value, b.constant(np.arange(value.type.shape[axis])[::-1]), axis=axis)
    return value
