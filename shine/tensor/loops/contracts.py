"""Contracts of fusion and the memory plan, checked independently: for tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from shine.base.errors import FormError
from shine.tensor.form.module import Value
from shine.tensor.loops.arena import ALIGNMENT, Place
from shine.tensor.loops.fusion import Group, computed, reads
from shine.tensor.loops.memory import Plan
from shine.tensor.loops.placement import CHEAP, Placement, is_lazy


def check_fusion(placed: Placement, groups: Sequence[Group]) -> None:
    """Raise FormError unless groups compute a function in order.

    What a nest reads from memory was written before, what it computes in registers is elementwise or a movement, and
    nothing costly is computed by two nests.
    """
    name = placed.function.name
    written = set(placed.function.parameters)
    written |= {r for made in placed.makers.values() if made.operation == "constant" for r in made.results}
    times = Counter[Value]()
    for nest in (nest for group in groups for nest in group.nests):
        where = f"@{name}, {', '.join(map(str, sorted(nest.written, key=str)))}"
        missing = [leaf for leaf, _ in reads(placed, nest) if placed.base(leaf) not in written]
        if missing:
            raise FormError(f"{where}: its nest reads {missing[0]}, which no nest before it writes")
        inside = computed(placed, nest) - {nest.maker}
        odd = [made.operation for made in inside if not is_lazy(made)]
        if odd:
            raise FormError(f"{where}: its nest computes {odd[0]}, which has loops of its own")
        times.update(made.result for made in inside)
        written |= nest.written
    for value, count in times.items():
        if count > 1 and (value in placed.stored or placed.costs[value] > CHEAP):
            raise FormError(f"@{name}, {value}: {count} nests compute it, and it is not cheap")
    lost = [value for value in placed.function.results if placed.base(value) not in written]
    if lost:
        raise FormError(f"@{name}, return: no nest writes {lost[0]}")


def check_plan(plan: Plan) -> None:
    """Raise FormError unless values have the memory that they need, while they need it."""
    check_fusion(plan.placed, plan.groups)
    name, memory = plan.placed.function.name, plan.memory
    blocks = [
        (str(value), first, last, memory.places[value].at, value.type.bytes)
        for value, (first, last) in _lives(plan).items()
        if memory.places[value].kind == "arena"
    ]
    for now, (at, step) in enumerate(zip(memory.scratch, plan.steps, strict=True)):
        blocks.append((f"scratch of group {now}", now, now, at, step.scratch))
    for what, _, _, start, size in blocks:
        if start % ALIGNMENT or not 0 <= start <= start + size <= memory.arena_bytes:
            raise FormError(f"@{name}, {what}: {size} bytes at {start} are not aligned, or not in the arena")
    for (what, first, last, start, size), (other, begin, end, at, more) in combinations(blocks, 2):
        if first <= end and begin <= last and start < at + more and at < start + size:
            raise FormError(f"@{name}, {what}: it shares bytes with {other}, and both are needed at once")
    for index, result in enumerate(map(plan.placed.base, plan.placed.function.results)):
        if memory.places[result] != Place("result", index) and (result, index) not in memory.copies:
            raise FormError(f"@{name}, return: result {index} is not written")


def _lives(plan: Plan) -> dict[Value, tuple[int, int]]:
    """The first group and the last one that need the memory of each value that groups write."""
    placed, found = plan.placed, dict[Value, tuple[int, int]]()
    for now, group in enumerate(plan.groups):
        for nest in group.nests:
            for value in nest.written:
                found[value] = found.get(value, (now, now))[0], now
            for leaf, _ in reads(placed, nest):
                base = placed.base(leaf)
                if base in found:
                    found[base] = found[base][0], now
    for value, _ in plan.memory.copies:
        if value in found:
            found[value] = found[value][0], len(plan.groups)
    return found
