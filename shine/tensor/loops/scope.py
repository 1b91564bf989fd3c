"""Values at indices: expressions of tensors at one place of a loop nest.

Values that have memory are loaded; elementwise operations and movements of axes are computed where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from shine.compiler.codegen.blocks import I64
from shine.tensor.form.module import Instruction, Value
from shine.tensor.form.operations import ELEMENTWISE
from shine.tensor.loops.index import Index, applied, cast, linear, row_major, variable
from shine.tensor.loops.lanes import STORED, assembled, constant, gathered, load, store, widened

Indices = Sequence[Index]


class Scope:
    """Values at the position of a builder, each computed once.

    Parameters
    ----------
    builder : ir.IRBuilder
    pointers : mapping of Value to ir.Value
        Addresses of the values that have memory.
    makers : mapping of Value to Instruction
        Those of the values that have none.
    width, count : int
        Lanes of a vector, and how many of them are in use.
    """

    def __init__(
        self,
        builder: ir.IRBuilder,
        pointers: Mapping[Value, ir.Value],
        makers: Mapping[Value, Instruction],
        width: int = 1,
        count: int = 1,
    ) -> None:
        self.builder, self.pointers, self.makers = builder, pointers, makers
        self.width, self.count = width, count
        self._known: dict[tuple[object, ...], ir.Value] = {}

    def define(self, value: Value, indices: Indices, found: ir.Value) -> None:
        """Set a value at indices."""
        self._known[(value, *(index.key for index in indices))] = found

    def knows(self, value: Value, indices: Indices) -> bool:
        """Whether a value at indices is in a register."""
        return (value, *(index.key for index in indices)) in self._known

    def at(self, value: Value, indices: Indices) -> ir.Value:
        """A value at indices: a vector if they depend on the lane, else a scalar."""
        key = (value, *(index.key for index in indices))
        if key not in self._known:
            self._known[key] = self.load(value, indices) if value in self.pointers else self.made(value, indices)
        return self._known[key]

    def made(self, value: Value, indices: Indices) -> ir.Value:
        """A value at indices, computed even if it has memory."""
        maker = self.makers[value]
        if maker.operation in ELEMENTWISE:
            return self._elementwise(maker, indices)
        return MOVEMENTS[maker.operation](self, maker, indices)

    def vector(self, value: Value, indices: Indices) -> ir.Value:
        """A value at indices in all lanes."""
        return widened(self.builder, self.at(value, indices), self.width)

    def load(self, value: Value, indices: Indices) -> ir.Value:
        """An element, or a vector of elements, from memory."""
        place = linear(indices, row_major(value.type.shape))
        if place.lane in (0, 1):
            width = self.width if place.lane else 1
            return load(self.builder, self._address(value, place), value.type.dtype, width, self.count)
        addresses = [self._address(value, place.at_lane(lane)) for lane in range(self.count)]
        return gathered(self.builder, addresses, value.type.dtype, self.width)

    def store(self, value: Value, indices: Indices, found: ir.Value) -> None:
        """Write lanes to memory."""
        place = linear(indices, row_major(value.type.shape))
        found = widened(self.builder, found, self.width)
        if place.lane == 1 or self.width == 1:
            store(
                self.builder,
                widened(self.builder, found, self.width),
                self._address(value, place),
                value.type.dtype,
                self.count,
            )
            return
        found = widened(self.builder, found, self.width)
        for lane in range(self.count):
            element = self.builder.extract_element(found, ir.Constant(ir.IntType(32), lane))
            store(self.builder, element, self._address(value, place.at_lane(lane)), value.type.dtype)

    def _address(self, value: Value, place: Index) -> ir.Value:
        element = STORED[value.type.dtype]
        # The constant last: neighbouring addresses then differ by a displacement only.
        moving = Index(0, place.terms).value(self.builder)
        pointer = self.pointers[value]
        if not isinstance(moving, ir.Constant):
            pointer = self.builder.gep(pointer, [moving], inbounds=True, source_etype=element)
        if place.constant:
            pointer = self.builder.gep(pointer, [ir.Constant(I64, place.constant)], inbounds=True, source_etype=element)
        return pointer

    def _elementwise(self, maker: Instruction, indices: Indices) -> ir.Value:
        values = [self.at(operand, aligned(indices, operand.type.shape)) for operand in maker.operands]
        width = self.width if any(isinstance(value.type, ir.VectorType) for value in values) else 1
        values = [widened(self.builder, value, width) for value in values]
        dtype = maker.operands[-1].type.dtype
        return applied(self.builder, maker.operation, dtype, values, width, maker.result.type.dtype)

    def position(self, value: Value, indices: Indices, size: int) -> Index:
        """An index that is in memory, clamped to an axis."""
        builder = self.builder
        found = cast(builder, self.at(value, indices), value.type.dtype, "i64", 1)
        last, zero = ir.Constant(I64, size - 1), ir.Constant(I64, 0)
        found = builder.select(builder.icmp_signed("<", found, zero), zero, found)
        return variable(builder.select(builder.icmp_signed(">", found, last), last, found))


def aligned(indices: Indices, shape: Sequence[int]) -> list[Index]:
    """Indices of an operand that is broadcast."""
    own = list(indices)[len(indices) - len(shape) :]
    return [Index() if size == 1 else index for index, size in zip(own, shape, strict=True)]


def _constant(scope: Scope, maker: Instruction, indices: Indices) -> ir.Value:
    """All elements are equal."""
    value: Any = maker.attributes["value"]
    return constant(maker.result.type.dtype, np.asarray(value).flat[0])


def _transpose(scope: Scope, maker: Instruction, indices: Indices) -> ir.Value:
    return scope.at(maker.operands[0], moved(maker, indices))


def moved(maker: Instruction, indices: Indices) -> list[Index]:
    """Indices of the operand of a movement that is affine."""
    (operand, *_), attributes = maker.operands, maker.attributes
    if maker.operation == "broadcast":
        return aligned(indices, operand.type.shape)
    if maker.operation == "transpose":
        permutation: Any = attributes["permutation"]
        return [indices[permutation.index(axis)] for axis in range(operand.type.rank)]
    if maker.operation == "slice":
        starts: Any = attributes["start"]
        steps: Any = attributes["step"]
        return [index.times(step).plus(start) for index, start, step in zip(indices, starts, steps, strict=True)]
    # A reshape that adds or drops axes of size 1.
    rest = [index for index, size in zip(indices, maker.result.type.shape, strict=True) if size != 1]
    return [Index() if size == 1 else rest.pop(0) for size in operand.type.shape]


def _gather(scope: Scope, maker: Instruction, indices: Indices) -> ir.Value:
    (operand, places), axis = maker.operands, maker.attributes["axis"]
    assert isinstance(axis, int)
    own = list(indices[axis : axis + places.type.rank])
    if any(index.lane for index in own):
        lanes = [_gather(scope, maker, [index.at_lane(lane) for index in indices]) for lane in range(scope.count)]
        return assembled(scope.builder, lanes, maker.result.type.dtype, scope.width)
    found = scope.position(places, own, operand.type.shape[axis])
    return scope.at(operand, [*indices[:axis], found, *indices[axis + places.type.rank :]])


MOVEMENTS: dict[str, Callable[[Scope, Instruction, Indices], ir.Value]] = {
    "constant": _constant,
    "broadcast": _transpose,
    "transpose": _transpose,
    "slice": _transpose,
    "reshape": _transpose,
    "gather": _gather,
}
"""Operations other than elementwise ones that need no memory of their own."""

AFFINE = frozenset({"broadcast", "transpose", "slice", "reshape"})
"""Operations that only move indices."""
