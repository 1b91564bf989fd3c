"""Contracts of the passes of tensor programs, of fusion and of the memory plan, checked independently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations

import pytest

from shine.base.errors import FormError
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.verifier import needed_by, verify
from shine.tensor.loops.arena import ALIGNMENT, Allocation
from shine.tensor.loops.fusion import Group, computed, reads
from shine.tensor.loops.memory import Plan
from shine.tensor.loops.placement import CHEAP, Placement, is_lazy
from shine.tensor.passes import pipeline
from shine.tensor.passes.algebra import simplify
from shine.tensor.passes.canonicalize import MIRRORED, MOST_BYTES, NOT_FOLDED, canonicalize, fold
from shine.tensor.passes.dce import key_of, remove_dead, share
from shine.tensor.passes.pipeline import Pass
from shine.tensor.passes.products import flatten_products, join_products, order_products
from shine.tensor.passes.reshaping import choose_layout
from shine.tensor.passes.specialize import MOST_INSTRUCTIONS, SMALL, inline, specialize

_COMPOSED = frozenset({"reshape", "transpose", "broadcast", "slice"})
"""Operations that never follow one of their kind in canonical form."""

_COPYING = _COMPOSED | {"pad", "cast"}

Makers = dict[Value, Instruction]


def _instructions(module: Module) -> Iterator[tuple[Function, Instruction, Makers]]:
    """Each with the instructions that made the values before it."""
    for function in module.defined:
        makers: Makers = {}
        for instruction in function.body:
            yield function, instruction, makers
            makers.update(dict.fromkeys(instruction.results, instruction))


def _is_constant(value: Value, makers: Makers) -> bool:
    return value in makers and makers[value].operation == "constant"


def _check_canonical(module: Module) -> None:
    for function, instruction, makers in _instructions(module):
        name, operands = instruction.operation, instruction.operands
        if name in _COPYING and operands[0].type == instruction.result.type and name != "transpose":
            _fail(function, instruction, "it only copies")
        if name in _COMPOSED and operands[0] in makers and makers[operands[0]].operation == name:
            _fail(function, instruction, f"there are two in a row: {name}")
        if name in MIRRORED or name in ("add", "mul", "eq", "ne", "and", "or"):
            first, second = (_is_constant(operand, makers) for operand in operands)
            if first and not second:
                _fail(function, instruction, "a constant stands left")


def _check_folded(module: Module) -> None:
    for function, instruction, makers in _instructions(module):
        constant = bool(instruction.operands) and all(_is_constant(operand, makers) for operand in instruction.operands)
        size = sum(result.type.bytes for result in instruction.results)
        moves = instruction.operation in ("reshape", "transpose", "slice", "concatenate")
        if constant and size <= MOST_BYTES and moves and instruction.operation not in NOT_FOLDED:
            _fail(function, instruction, "its operands are constants")


def _check_simplified(module: Module) -> None:
    for function, instruction, makers in _instructions(module):
        name = instruction.operation
        before = makers.get(instruction.operands[0]) if instruction.operands else None
        if name in ("neg", "not") and before is not None and before.operation == name:
            _fail(function, instruction, "it undoes the one before")
        if name in ("cond", "select") and _is_constant(instruction.operands[0], makers):
            value = makers[instruction.operands[0]].attributes["value"]
            if getattr(value, "size", 0) == 1:
                _fail(function, instruction, "its condition is known")
        if name == "select" and instruction.operands[1] == instruction.operands[2]:
            _fail(function, instruction, "its values are the same")


def _check_shared(module: Module) -> None:
    for function in module.defined:
        seen = set()
        for instruction in function.body:
            key = key_of(instruction)
            if key in seen:
                _fail(function, instruction, "it is computed twice")
            seen.add(key)


def _check_alive(module: Module) -> None:
    for function in module.defined:
        used = set(function.results) | {operand for instruction in function.body for operand in instruction.operands}
        for instruction in function.body:
            if used.isdisjoint(instruction.results):
                _fail(function, instruction, "nobody needs it")


def _check_inlined(module: Module) -> None:
    calls = [name for function in module.functions.values() for name in needed_by(function)]
    for function, instruction, _ in _instructions(module):
        if instruction.operation == "call":
            callee = module.function(str(instruction.attributes["function"]))
            small = len(callee.body) <= SMALL and len(function.body) < MOST_INSTRUCTIONS // 2
            if not callee.separate and (small or calls.count(callee.name) == 1):
                _fail(function, instruction, "the call could be inlined")


def _check_specialized(module: Module) -> None:
    for function, instruction, makers in _instructions(module):
        if instruction.operation in ("call", "cond"):
            first = 1 if instruction.operation == "cond" else 0
            if any(_is_constant(operand, makers) for operand in instruction.operands[first:]):
                _fail(function, instruction, "an argument is a constant")


def _check_flat(module: Module) -> None:
    for function, instruction, _ in _instructions(module):
        ranks = [operand.type.rank for operand in instruction.operands]
        if instruction.operation == "dot" and ranks[0] > 2 and ranks[1] == 2:
            _fail(function, instruction, "its left operand is a stack, and its right one is not")


def _check_valid(module: Module) -> None:
    """Choices by cost promise no form; the verifier has seen the module."""


def _fail(function: Function, instruction: Instruction, problem: str) -> None:
    names = ", ".join(map(str, instruction.results)) or instruction.operation
    raise FormError(f"@{function.name}, {names}: {problem}")


CHECKS: dict[Callable[..., Module], Callable[[Module], None]] = {
    canonicalize: _check_canonical,
    fold: _check_folded,
    simplify: _check_simplified,
    share: _check_shared,
    remove_dead: _check_alive,
    inline: _check_inlined,
    specialize: _check_specialized,
    order_products: _check_valid,
    join_products: _check_valid,
    choose_layout: _check_valid,
    flatten_products: _check_flat,
}
"""The check of each pass; all raise FormError."""


def checked(each: Pass, module: Module) -> Module:
    """Run a pass and raise FormError if the module is then not valid, or the pass breaks its promise."""
    found = each(module)
    try:
        verify(found)
        CHECKS[each](found)
    except FormError as error:
        raise FormError(f"after {each.__name__}: {error}") from None
    return found


def checked_optimized(module: Module) -> Module:
    """Run all passes; raise FormError if one of them breaks its promise."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CLEANING", "CHOOSING"):
            patch.setattr(pipeline, name, tuple(partial(checked, each) for each in getattr(pipeline, name)))
        return pipeline.optimized(module)


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
        if memory.places[result] != Allocation("result", index) and (result, index) not in memory.copies:
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
