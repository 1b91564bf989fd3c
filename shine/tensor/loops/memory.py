"""The plan of a module: for each function its groups of nests, and where its values are while they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import accumulate
from typing import NamedTuple

from shine.compiler.processor import Machine
from shine.tensor.form.module import Function, Instruction, Module, Value
from shine.tensor.form.verifier import called_by, needed_by
from shine.tensor.loops.arena import ALIGNMENT, Memory, Step, aligned, plan_memory
from shine.tensor.loops.fusion import Group, Nest, fuse, reads
from shine.tensor.loops.groups import scratch_bytes
from shine.tensor.loops.placement import Placement, is_uniform


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of a function; its code does nothing else.

    Parameters
    ----------
    placed : Placement
        Values with memory.
    groups : tuple of Group
        The nests of loops, in order.
    data : tuple of Instruction
        Constants that are arrays in the code.
    steps : tuple of Step
        Memory traffic of each group.
    memory : Memory
        Places of the values.
    """

    placed: Placement
    groups: tuple[Group, ...]
    data: tuple[Instruction, ...]
    steps: tuple[Step, ...]
    memory: Memory


def plan_module(module: Module, machine: Machine) -> dict[str, Plan]:
    """Plans of all functions with a body.

    Precondition: the module is valid.

    Parameters
    ----------
    module : Module
    machine : Machine
        The memory of nests for themselves, such as packed panels, depends on it.
    """
    plans: dict[str, Plan] = {}
    for name in TopologicalSorter({f.name: set(needed_by(f)) for f in module.functions.values()}).static_order():
        function = module.functions[name]
        if isinstance(function, Function):
            plans[name] = _plan_of(function, machine, plans)
    return plans


class LoopScratch(NamedTuple):
    """Offsets in the scratch memory of a `while`: two copies of its state, its condition, memory of its functions."""

    states: tuple[list[int], list[int]]
    condition: int
    arena: int


def loop_scratch(maker: Instruction) -> LoopScratch:
    """Bytes that a `while` needs besides its results."""
    *state, size = accumulate((aligned(result.type.bytes) for result in maker.results), initial=0)
    return LoopScratch((state, [size + at for at in state]), 2 * size, 2 * size + ALIGNMENT)


def _plan_of(function: Function, machine: Machine, plans: Mapping[str, Plan]) -> Plan:
    placed, groups = fuse(function)
    data = tuple(made for made in function.body if made.operation == "constant" and not is_uniform(made))

    def scratch(nest: Nest) -> int:
        maker = nest.maker
        called = () if maker is None else tuple(called_by(maker))
        if maker is None or not called:
            return scratch_bytes(machine, placed, nest)
        arena = max(plans[name].memory.arena_bytes for name in called)
        return arena + loop_scratch(maker).arena * (nest.kind == "while")

    steps = tuple(_steps(placed, groups, [sum(aligned(scratch(nest)) for nest in group.nests) for group in groups]))
    memory = plan_memory(function, steps, [made.result for made in data], placed.base)
    return Plan(placed, tuple(groups), data, steps, memory)


def _steps(placed: Placement, groups: Sequence[Group], scratch: Sequence[int]) -> Iterator[Step]:
    """Memory traffic of each group; a value written in pieces is there from the first one on."""
    done: set[Value] = set()
    for group, size in zip(groups, scratch, strict=True):
        written = dict.fromkeys(value for nest in group.nests for value in sorted(nest.written, key=str))
        read = {placed.base(leaf): None for nest in group.nests for leaf, _ in reads(placed, nest)}
        new = tuple(value for value in written if value not in done)
        old = tuple(value for value in {**read, **written} if value not in new)
        done.update(written)
        yield Step(old, new, size)
