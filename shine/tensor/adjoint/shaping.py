"""Pieces of instructions that several adjoint rules need."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Value
from shine.tensor.form.types import TensorType

Adjoints: TypeAlias = "list[Value | None]"
"""One for each operand; None where it is 0 or not wanted."""

Wanted: TypeAlias = tuple[bool, ...]
"""For each operand, whether its adjoint is needed."""


def zeros(b: FunctionBuilder, type: TensorType) -> Value:
    """Zeros of a type."""
    value: Value = b.broadcast(b.constant(0, type.dtype), shape=type.shape) if type.shape else b.constant(0, type.dtype)
    return value


def summed_to(b: FunctionBuilder, value: Value, shape: tuple[int, ...]) -> Value:
    """The adjoint of broadcasting from a shape: sums over the axes that were stretched."""
    if value.type.shape == shape:
        return value
    extra = value.type.rank - len(shape)
    axes = [*range(extra), *(extra + i for i, n in enumerate(shape) if n != value.type.shape[extra + i])]
    return reshaped(b, b.reduce_sum(value, axes=tuple(axes)), shape)


def stretched_to(b: FunctionBuilder, value: Value, shape: tuple[int, ...]) -> Value:
    """A value broadcast to a shape."""
    found: Value = value if value.type.shape == shape else b.broadcast(value, shape=shape)
    return found


def reshaped(b: FunctionBuilder, value: Value, shape: tuple[int, ...]) -> Value:
    """A value in another shape."""
    found: Value = value if value.type.shape == shape else b.reshape(value, shape=shape)
    return found


def transposed(b: FunctionBuilder, value: Value, permutation: list[int]) -> Value:
    """A value with its axes in another order."""
    same = permutation == list(range(value.type.rank))
    found: Value = value if same else b.transpose(value, permutation=tuple(permutation))
    return found


def sliced(b: FunctionBuilder, value: Value, axis: int, start: int, stop: int) -> Value:
    """Some of the places of one axis."""
    shape = value.type.shape
    if (start, stop) == (0, shape[axis]):
        return value
    starts, stops = [0] * len(shape), list(shape)
    starts[axis], stops[axis] = start, stop
    found: Value = b.slice(value, start=tuple(starts), stop=tuple(stops))
    return found


def reversed_along(b: FunctionBuilder, value: Value, axes: range) -> Value:
    """A value with axes turned round."""
    for axis in axes:
        if value.type.shape[axis] > 1:
            value = b.gather(value, b.constant(np.arange(value.type.shape[axis])[::-1]), axis=axis)
    return value
