"""Runs compiled functions group by group, and spoils the memory that the plan says nobody needs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from helpers.tensor_runs import FILLING, table_of

from shine.compiler.llvm import Engine
from shine.compiler.processor import Machine
from shine.tensor.form.module import Module
from shine.tensor.loops.arena import ALIGNMENT
from shine.tensor.loops.emission import emit
from shine.tensor.loops.memory import Plan, plan_module

GUARD = 4 * ALIGNMENT
"""Bytes on both sides of an arena."""


def run_in_parts(
    module: Module, name: str, arguments: Sequence[np.ndarray], machine: Machine
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Results of a function at once, and group by group in an arena of which only the values that live are kept."""
    text, interface = emit(module, machine, name, "planned", has_parts=True)
    plan = plan_module(module, machine)[name]
    assert plan.memory.arena_bytes == interface.arena_bytes
    engine = Engine(text, "O0")
    given = [np.ascontiguousarray(argument) for argument in arguments]
    found = []
    for parts in (("planned",), tuple(f"planned.part.{part}" for part in range(len(interface.report)))):
        results = [np.empty(type.shape, type.numpy) for type in interface.results]
        room = np.full(interface.arena_bytes + 3 * GUARD, FILLING, np.uint8)
        start = GUARD + -(room.ctypes.data + GUARD) % ALIGNMENT
        arena = room[start : start + interface.arena_bytes]
        for number, part in enumerate(parts):
            if len(parts) > 1:
                arena[~_is_live(plan, number)] = FILLING
            engine.function(part, None, *[ctypes.c_void_p] * 3)(table_of(given), table_of(results), arena.ctypes.data)
            assert (room[:start] == FILLING).all(), "bytes before the arena are written"
            assert (room[start + arena.size :] == FILLING).all(), "bytes behind the arena are written"
        found.append(results)
    return found[0], found[1]


def _is_live(plan: Plan, now: int) -> np.ndarray:
    """Which bytes of the arena are needed by a group or later ones, and written before."""
    memory, live = plan.memory, np.zeros(plan.memory.arena_bytes, bool)
    written = {value for step in plan.steps[:now] for value in step.writes}
    needed = {value for step in plan.steps[now:] for value in step.reads} | {value for value, _ in memory.copies}
    for value in written & needed:
        place = memory.places[value]
        if place.kind == "arena":
            live[place.at : place.at + value.type.bytes] = True
    return live
