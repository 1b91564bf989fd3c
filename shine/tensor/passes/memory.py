"""Memory plan: values that are never needed at the same time share bytes of one arena."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Literal

from shine.errors import FormError
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.operations import ELEMENTWISE
from shine.tensor.form.verifier import called_by, needed_by
from shine.tensor.passes.fusion import Group, fuse

ALIGNMENT = 64
"""Each buffer starts at a multiple of these bytes: a line of the cache, and the widest vector."""

Kind = Literal["parameter", "result", "constant", "arena"]


@dataclass(frozen=True)
class Place:
    """Where a value is: the index of a parameter or of a result, or the bytes from the start of the arena."""

    kind: Kind
    at: int = 0


@dataclass(frozen=True)
class Step:
    """What a nest of loops does with memory.

    Parameters
    ----------
    reads, writes : tuple of Value
        Values with memory of their own.
    in_place : tuple of (Value, Value)
        Values that it writes, each with one that it reads and whose memory it may write over.
    scratch : int
        Bytes that it needs for itself.
    """

    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    in_place: tuple[tuple[Value, Value], ...] = ()
    scratch: int = 0


@dataclass(frozen=True)
class Plan:
    """The memory of a function.

    Parameters
    ----------
    places : mapping of Value to Place
        Of all values with memory.
    scratch : tuple of int
        Where in the arena the scratch memory of each step is.
    copies : tuple of (Value, int)
        Values to be copied at the end, each with the index of the result: those that are parameters, constants or
        several results.
    arena_bytes : int
    sum_bytes : int
        What the arena would have if nothing were shared.
    lower_bound : int
        Bytes that are needed at the same time at least.
    """

    places: Mapping[Value, Place]
    scratch: tuple[int, ...]
    copies: tuple[tuple[Value, int], ...]
    arena_bytes: int
    sum_bytes: int
    lower_bound: int


@dataclass
class _Block:
    """Bytes that are needed from a step to another one, both included."""

    size: int
    first: int
    last: int
    offset: int = 0

    def meets(self, other: _Block) -> bool:
        return self.first <= other.last and other.first <= self.last


def plan_memory(
    function: Function, steps: Sequence[Step], base: Callable[[Value], Value] = lambda value: value
) -> Plan:
    """Place what steps write.

    Precondition: a step reads parameters, constants and what steps before it write. Postcondition: two values of which
    each is needed while the other one is have no byte in common, except for pairs of `in_place`; all offsets are
    multiples of `ALIGNMENT`. Results are written to their own buffers at once.

    Parameters
    ----------
    function : Function
    steps : sequence of Step
        The function in order.
    base : callable, optional
        The value with memory of its own that a value is another name of.

    Raises
    ------
    FormError
        If a step reads what was not written.
    """
    places: dict[Value, Place] = {value: Place("parameter", i) for i, value in enumerate(function.parameters)}
    constants = (i.results[0] for i in function.body if i.operation == "constant")
    places.update((value, Place("constant", place)) for place, value in enumerate(constants))
    written = {value for step in steps for value in step.writes}
    copies = []
    for index, result in enumerate(map(base, function.results)):
        if result in written and result not in places:
            places[result] = Place("result", index)
        else:
            copies.append((result, index))
    blocks = _blocks(function, steps, places, [value for value, _ in copies])
    scratch = [_Block(aligned(step.scratch), i, i) for i, step in enumerate(steps)]
    shared = list({id(block): block for block in blocks.values()}.values())
    bound = max((_live_bytes([*shared, *scratch], step) for step in range(len(steps))), default=0)
    arena = _placed([block for block in [*shared, *scratch] if block.size], bound)
    places.update((value, Place("arena", block.offset)) for value, block in blocks.items())
    return Plan(
        places,
        tuple(block.offset for block in scratch),
        tuple(copies),
        arena,
        sum(aligned(value.type.bytes) for value in blocks) + sum(block.size for block in scratch),
        bound,
    )


def aligned(size: int) -> int:
    """The next multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _live_bytes(blocks: Sequence[_Block], step: int) -> int:
    return sum(block.size for block in blocks if block.first <= step <= block.last)


def _blocks(
    function: Function, steps: Sequence[Step], places: Mapping[Value, Place], copied: Sequence[Value]
) -> dict[Value, _Block]:
    """Lifetimes of the values in the arena; values in place of others have the same block."""
    last = {value: i for i, step in enumerate(steps) for value in (*step.writes, *step.reads)}
    last.update(dict.fromkeys(copied, len(steps)))
    blocks: dict[Value, _Block] = {}
    for now, step in enumerate(steps):
        for value in step.reads:
            if value not in places and value not in blocks:
                raise FormError(f"@{function.name}, step {now}: reads {value}, which no step before it writes")
        for value in step.writes:
            if value not in places:
                blocks[value] = _taken_over(blocks, last, step, now, value) or _Block(
                    aligned(value.type.bytes), now, last[value]
                )
                blocks[value].last = last[value]
    return blocks


def _taken_over(
    blocks: Mapping[Value, _Block], last: Mapping[Value, int], step: Step, now: int, value: Value
) -> _Block | None:
    """The block of a value that dies in a step, over which another one may be written."""
    for new, old in step.in_place:
        block = blocks.get(old) if new == value else None
        # Its end is later if another value of this step has taken it.
        if block is not None and block.last == last[old] == now and block.size == aligned(value.type.bytes):
            return block
    return None


_ORDERS: tuple[Callable[[_Block], tuple[int, ...]], ...] = (
    lambda block: (-block.size, block.first),
    lambda block: (-block.size * (block.last - block.first + 1), block.first),
    lambda block: (block.first - block.last, -block.size),
    lambda block: (block.first, -block.size),
)
"""Orders in which blocks are placed. None of them is always the best, and a plan takes milliseconds."""


MOST_TRIES = 24
"""Times that an order is changed, if its plan is larger than the lower bound."""


def _placed(blocks: list[_Block], bound: int) -> int:
    """Set the offsets of blocks by the best of some orders; returns the bytes of the arena."""
    best: tuple[int, list[int]] | None = None
    for key in _ORDERS:
        order = sorted(blocks, key=key)
        for _ in range(MOST_TRIES):
            found = _in_order(order)
            if best is None or found < best[0]:
                best = found, [block.offset for block in blocks]
            if best[0] == bound:
                break
            # What ended at the top is placed first.
            top = max(order, key=lambda block: block.offset + block.size)
            order.sort(key=lambda block: block is not top)
    size, offsets = best or (0, [])
    for block, offset in zip(blocks, offsets, strict=True):
        block.offset = offset
    return size


def _in_order(blocks: Sequence[_Block]) -> int:
    """Place each block in the smallest gap where it fits, between those that live while it does."""
    done: list[_Block] = []
    for block in blocks:
        end, gap = 0, (float("inf"), -1)
        for other in sorted((other for other in done if other.meets(block)), key=lambda other: other.offset):
            if other.offset - end >= block.size:
                gap = min(gap, (other.offset - end, end))
            end = max(end, other.offset + other.size)
        block.offset = gap[1] if gap[1] >= 0 else end
        done.append(block)
    return max((block.offset + block.size for block in done), default=0)


# The steps of fused groups.


def plan_module(module: Module) -> dict[str, Plan]:
    """Plans of all functions with a body. The scratch memory of a call is what `scratch_of_call` says.

    Precondition: the module is valid.
    """
    plans: dict[str, Plan] = {}
    order = TopologicalSorter({f.name: sorted(set(needed_by(f))) for f in module.functions.values()}).static_order()
    for name in order:
        function = module.functions[name]
        if isinstance(function, Function):
            plans[name] = plan_memory(function, steps_of(module, function, plans), base_of(function))
    return plans


def base_of(function: Function) -> Callable[[Value], Value]:
    """Reshaped values are other names of the same memory."""
    names = {i.result: i.operands[0] for i in function.body if i.operation == "reshape"}

    def base(value: Value) -> Value:
        while value in names:
            value = names[value]
        return value

    return base


def steps_of(module: Module, function: Function, plans: Mapping[str, Plan]) -> list[Step]:
    """A step for each fused group; `plans` has those of the functions that it calls."""
    base = base_of(function)
    return [
        Step(
            tuple(dict.fromkeys(map(base, group.reads))),
            group.root.results,
            _in_place(group, base),
            scratch_of_call(module, group.root, plans),
        )
        for group in fuse(function)
    ]


def scratch_of_call(module: Module, instruction: Instruction, plans: Mapping[str, Plan]) -> int:
    """Bytes that a call needs: the largest arena of the functions that it calls.

    The state of a loop is in its results. Before the arena, a loop has the result of its condition, then the next
    state, each aligned.
    """
    arena = max((plans[name].arena_bytes for name in called_by(instruction)), default=0)
    if instruction.operation != "while":
        return arena
    return ALIGNMENT + sum(aligned(result.type.bytes) for result in instruction.results) + arena


def _in_place(group: Group, base: Callable[[Value], Value]) -> tuple[tuple[Value, Value], ...]:
    """Operands over which results may be written: they are read at the element that is written, and nowhere else."""
    root = group.root
    if root.operation == "while":
        bases = [base(operand) for operand in root.operands]
        return tuple((r, b) for r, b in zip(root.results, bases, strict=True) if bases.count(b) == 1)
    if root.operation == "scatter_add":
        first, *others = map(base, root.operands)
        return () if first in others else ((root.result, first),)
    if root.operation not in ELEMENTWISE or group.anchor is not None:
        return ()
    made = root.result
    elsewhere = {
        base(value)
        for member in group.members
        for value in member.operands
        if member.operation not in ELEMENTWISE or value.type.shape != made.type.shape
    }
    same = [base(v) for v in group.reads if v.type.shape == made.type.shape and v.type.bytes == made.type.bytes]
    return tuple((made, value) for value in dict.fromkeys(same) if value not in elsewhere)
