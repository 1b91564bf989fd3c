"""Values with memory of their own.

Elementwise chains and movements of axes get none: they are computed where they are needed, in the nest that stores or
reduces them, or in the epilogue of the product that makes their input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shine.compiler.codegen.numbers import ELEMENTARY
from shine.tensor.form.module import Function, Instruction, Value
from shine.tensor.form.operations import CALLS, ELEMENTWISE
from shine.tensor.loops.index import Index
from shine.tensor.loops.scope import AFFINE, MOVEMENTS, aligned, moved

CHEAP = 4
"""Largest cost of a value that is computed again instead of stored and loaded."""

_ELEMENTARY_COST = 20

Access = tuple[Value, tuple[Index, ...]]
"""A value in memory, and the indices of its read."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Values of a function with memory of their own.

    Parameters
    ----------
    function : Function
    makers : mapping of Value to Instruction
    stored : set of Value
        Values with memory of their own.
    aliases : mapping of Value to Value
        Reshaped values, and those whose memory they share.
    costs : mapping of Value to int
        Of computing a value that has no memory once more, about in additions.
    users : mapping of Value to list of Instruction
        Instructions that have a value as an operand; values without any are missing.
    """

    function: Function
    makers: dict[Value, Instruction]
    stored: set[Value] = field(default_factory=set)
    aliases: dict[Value, Value] = field(default_factory=dict)
    costs: dict[Value, int] = field(default_factory=dict)
    users: dict[Value, list[Instruction]] = field(default_factory=dict)

    def has_memory(self, value: Value) -> bool:
        """Whether a value is read from memory."""
        return value in self.stored or value in self.aliases or value not in self.makers

    def base(self, value: Value) -> Value:
        """The value whose memory holds a value."""
        while value in self.aliases:
            value = self.aliases[value]
        return value

    def accesses(self, value: Value, is_computed: bool) -> list[Access]:
        """Reads for element ``[axis0, axis1, ...]`` of a value.

        Parameters
        ----------
        value : Value
        is_computed : bool
            Whether it is computed even if it has memory.
        """
        found: list[Access] = []
        todo: list[tuple[Value, tuple[Index, ...], bool]] = [(value, symbols(value.type.shape), is_computed)]
        seen: set[tuple[object, ...]] = set()
        while todo:
            one, indices, computed = todo.pop()
            key = (one, *(index.key for index in indices))
            if key in seen:
                continue
            seen.add(key)
            maker = self.makers.get(one)
            if one in self.aliases and maker is not None and is_unit(maker):
                todo.append((maker.operands[0], tuple(moved(maker, indices)), False))
            elif self.has_memory(one) and not computed:
                found.append((one, indices))
            elif maker is not None and maker.operation in ELEMENTWISE:
                todo += [(v, tuple(aligned(indices, v.type.shape)), False) for v in maker.operands]
            elif maker is not None and maker.operation in AFFINE:
                todo.append((maker.operands[0], tuple(moved(maker, indices)), False))
            elif maker is not None and maker.operation == "gather":
                (operand, places), axis = maker.operands, maker.attributes["axis"]
                assert isinstance(axis, int)
                until = axis + places.type.rank
                todo.append((places, indices[axis:until], False))
                todo.append((operand, (*indices[:axis], Index(0, {f"found{len(seen)}": 1}), *indices[until:]), False))
        return found


def symbols(shape: Sequence[int]) -> tuple[Index, ...]:
    """Indices that stand for the loops over each axis; an axis of size 1 needs none."""
    return tuple(Index() if size == 1 else Index(0, {f"axis{axis}": 1}) for axis, size in enumerate(shape))


def is_same(indices: Iterable[Index], others: Iterable[Index]) -> bool:
    """Whether indices are equal."""
    return [index.key for index in indices] == [index.key for index in others]


def is_uniform(instruction: Instruction) -> bool:
    """Whether all elements of a constant have the same bits."""
    value: Any = instruction.attributes.get("value")
    if instruction.operation != "constant" or value.size == 0:
        return False
    data = np.ascontiguousarray(value).reshape(-1)
    return value.size == 1 or bool((data.view(f"V{data.itemsize}") == data[:1].view(f"V{data.itemsize}")).all())


def is_unit(instruction: Instruction) -> bool:
    """Whether a reshape adds or drops axes of size 1 only."""
    shapes = [
        [size for size in value.type.shape if size != 1] for value in (instruction.operands[0], instruction.result)
    ]
    return shapes[0] == shapes[1]


def is_lazy(instruction: Instruction) -> bool:
    """Whether an instruction can be computed element by element where it is needed."""
    if instruction.operation == "constant":
        return is_uniform(instruction)
    if instruction.operation == "reshape":
        return is_unit(instruction)
    return instruction.operation in ELEMENTWISE or instruction.operation in MOVEMENTS


def placement_of(function: Function, kept: Collection[Value] = ()) -> Placement:
    """Decide for each value of a function; those in `kept` get memory."""
    users = users_of(function.body)
    placed = Placement(function, {result: made for made in function.body for result in made.results}, users=users)
    lazy = {instruction.result: instruction for instruction in function.body if is_lazy(instruction)}
    forced = _forced(function, lazy).union(kept)
    ends = _ends(function.body, users)
    depths: dict[Value, int] = {}
    for instruction in function.body:
        if instruction.operation == "reshape" and placed.has_memory(instruction.operands[0]):
            placed.aliases[instruction.result] = instruction.operands[0]
            continue
        for result in instruction.results:
            if result not in lazy or result in forced:
                placed.stored.add(result)
                continue
            inner = [operand for operand in instruction.operands if not placed.has_memory(operand)]
            own = _ELEMENTARY_COST if instruction.operation in ELEMENTARY else int(instruction.operation in ELEMENTWISE)
            placed.costs[result] = own + sum(placed.costs[operand] for operand in inner)
            depths[result] = 1 + max((depths[operand] for operand in inner), default=0)
            # Operations in a chain without memory: Python recurses over it, and LLVM takes more than linear time.
            if depths[result] > 100 or _is_repeated(
                result, placed.costs[result], users.get(result, ()), len(ends[result]), lazy
            ):
                placed.stored.add(result)
    return placed


def _forced(function: Function, lazy: Mapping[Value, Instruction]) -> set[Value]:
    """Values that must have memory."""
    forced = set(function.results)
    for instruction in function.body:
        if instruction.operation in CALLS or (instruction.operation == "reshape" and not is_unit(instruction)):
            forced.update(instruction.operands)
        if instruction.operation in ("dot", "convolve"):
            for operand in instruction.operands:
                while operand in lazy and lazy[operand].operation == "transpose" and instruction.operation == "dot":
                    operand = lazy[operand].operands[0]
                forced.add(operand)
    return forced


def users_of(body: Iterable[Instruction]) -> dict[Value, list[Instruction]]:
    """Instructions that have a value as an operand."""
    users: dict[Value, list[Instruction]] = {}
    for instruction in body:
        for operand in dict.fromkeys(instruction.operands):
            users.setdefault(operand, []).append(instruction)
    return users


def _is_repeated(
    value: Value, cost: int, users: Sequence[Instruction], ends: int, lazy: Mapping[Value, Instruction]
) -> bool:
    """Whether a value without memory would be computed again and again, at some cost."""
    if cost == 0:
        return False
    for user in users:
        if user.operation == "gather" and user.operands[0] == value:
            return True
        if cost > 1 and user.results[0] in lazy and user.results[0].type.elements > value.type.elements:
            return True
    return cost > CHEAP and ends > 1


def _ends(body: Sequence[Instruction], users: Mapping[Value, list[Instruction]]) -> dict[Value, set[object]]:
    """Uses of values, behind elementwise chains of their shape; two stand for all more."""
    found: dict[Value, set[object]] = {}
    for instruction in reversed(body):
        for result in instruction.results:
            ends: set[object] = set()
            for user in users.get(result, ()):
                if user.operation in ELEMENTWISE and user.result.type.shape == result.type.shape:
                    ends |= found[user.result]
                else:
                    ends.add(user)
            found[result] = set(list(ends)[:2]) or {result}
    return found
