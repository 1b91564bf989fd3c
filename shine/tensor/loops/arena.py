"""One arena for the values of a function: those that are never needed at the same time share bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from shine.base.errors import FormError
from shine.tensor.form.module import Function, Value

ALIGNMENT = 64
"""The arena and each buffer in it start at a multiple of these bytes: a line of the cache, and the widest vector."""

Kind = Literal["parameter", "result", "data", "arena"]


@dataclass(frozen=True)
class Allocation:
    """The place of a value: the index of a parameter, a result or data of the code, or its first byte in the arena."""

    kind: Kind
    at: int = 0


@dataclass(frozen=True)
class Step:
    """Memory that a group of nests reads, writes and needs.

    Parameters
    ----------
    reads, writes : tuple of Value
        Values with memory of their own.
    scratch : int
        Bytes that it needs for itself.
    """

    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    scratch: int = 0


@dataclass(frozen=True)
class Memory:
    """The places of a function's values.

    Parameters
    ----------
    places : mapping of Value to Allocation
        Of all values with memory.
    scratch : tuple of int
        Offset in the arena of the scratch memory of each step.
    copies : tuple of (Value, int)
        Values to be copied at the end, each with the index of the result: those that are parameters, data or several
        results.
    arena_bytes : int
    sum_bytes : int
        Size of the arena without sharing.
    lower_bound : int
        Bytes that are needed at the same time at least.
    """

    places: Mapping[Value, Allocation]
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
    function: Function,
    steps: Sequence[Step],
    data: Sequence[Value] = (),
    base: Callable[[Value], Value] = lambda value: value,
) -> Memory:
    """Place the values that steps write; a `FormError` if a step reads a value before it is written.

    Precondition: a step reads parameters, data and values of steps before it. Postcondition: two values of which each
    is needed while the other one is have no byte in common; all offsets are multiples of `ALIGNMENT`. Results are
    written to their own buffers at once.

    Parameters
    ----------
    function : Function
    steps : sequence of Step
        The function in order.
    data : sequence of Value
        Constants that are arrays in the code.
    base : callable, optional
        The value with memory of its own that a value is another name of.
    """
    places: dict[Value, Allocation] = {value: Allocation("parameter", i) for i, value in enumerate(function.parameters)}
    places.update((value, Allocation("data", i)) for i, value in enumerate(data))
    written = {value for step in steps for value in step.writes}
    copies = []
    for index, result in enumerate(map(base, function.results)):
        if result in written and result not in places:
            places[result] = Allocation("result", index)
        else:
            copies.append((result, index))
    blocks = _blocks(function, steps, places, [value for value, _ in copies])
    scratch = [_Block(aligned(step.scratch), i, i) for i, step in enumerate(steps)]
    both = [block for block in [*blocks.values(), *scratch] if block.size]
    bound = max((_live_bytes(both, step) for step in range(len(steps))), default=0)
    arena = _placed(both, bound)
    places.update((value, Allocation("arena", block.offset)) for value, block in blocks.items())
    return Memory(
        places,
        tuple(block.offset for block in scratch),
        tuple(copies),
        arena,
        sum(block.size for block in both),
        bound,
    )


def aligned(size: int) -> int:
    """The next multiple of `ALIGNMENT`."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def _live_bytes(blocks: Sequence[_Block], step: int) -> int:
    return sum(block.size for block in blocks if block.first <= step <= block.last)


def _blocks(
    function: Function, steps: Sequence[Step], places: Mapping[Value, Allocation], copied: Sequence[Value]
) -> dict[Value, _Block]:
    """Lifetimes of the values in the arena."""
    last = {value: i for i, step in enumerate(steps) for value in (*step.writes, *step.reads)}
    last.update(dict.fromkeys(copied, len(steps)))
    blocks: dict[Value, _Block] = {}
    for now, step in enumerate(steps):
        for value in step.reads:
            if value not in places and value not in blocks:
                raise FormError(f"@{function.name}, step {now}: reads {value}, which no step before it writes")
        for value in step.writes:
            if value not in places:
                blocks[value] = _Block(aligned(value.type.bytes), now, last[value])
    return blocks


_ORDERS: tuple[Callable[[_Block], tuple[int, ...]], ...] = (
    lambda block: (-block.size, block.first),
    lambda block: (-block.size * (block.last - block.first + 1), block.first),
    lambda block: (block.first - block.last, -block.size),
    lambda block: (block.first, -block.size),
)
"""Orders of placement of blocks. None of them is always the best, and a plan takes milliseconds."""


def _placed(blocks: list[_Block], bound: int) -> int:
    """Set the offsets of blocks by the best of some orders; returns the bytes of the arena."""
    best: tuple[int, list[int]] | None = None
    for key in _ORDERS:
        order = sorted(blocks, key=key)
        for _ in range(24):  # times that an order is changed, if its plan is larger than the lower bound
            found = _in_order(order)
            if best is None or found < best[0]:
                best = found, [block.offset for block in blocks]
            if best[0] == bound:
                break
            # Values that ended at the top are placed first.
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
