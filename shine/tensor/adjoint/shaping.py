"""The context of an adjoint rule, and pieces of instructions that several rules need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shine.tensor.form.builder import FunctionBuilder
from shine.tensor.form.module import Instruction, Value
from shine.tensor.form.types import TensorType

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
