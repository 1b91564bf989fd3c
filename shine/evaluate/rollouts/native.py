"""The compiled integrators and maps: one module for all systems, whose right-hand sides are functions that it calls.

The normal equations of a fit follow one another in memory: the matrix of the unknowns, which are the constants and the
initial states; the negative gradient; for each state the sum of its squared residuals at its own times, in units of the
sizes of the errors and without weights; and the same at all times.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from shine.base.typing import Floats, Indices, Words
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.kernels import emit_kernel
from shine.compiler.llvm import Engine
from shine.evaluate.machine.job import WORKER_LOOP, emit_worker_loop
from shine.evaluate.rollouts.explicit import explicit
from shine.evaluate.rollouts.implicit import implicit, linearize, solve
from shine.evaluate.rollouts.work import (
    DONE,
    FLOOR,
    IMPLICIT,
    IS_STIFF,
    ITEM_SIZE,
    MAP,
    REACHED,
    STATUS,
    STEP,
    STEPS,
    STIFF,
    TIME,
    TOO_MANY,
    TOO_SMALL,
    VECTORS,
    WORDS,
    Rate,
    copy,
    error_norm,
    find_piece,
    note_sizes,
    rates,
    write,
    write_reached,
)

JOB = ("items", "memory", "first", "last")
"""Words of the job of a thread: the items, its memory, and the range of items to roll out."""


def emit_rollouts() -> ir.Module:
    """The module: `roll` of a job, `rows` and the worker loop."""
    module = ir.Module(name="rollouts")
    for kernel in (rates, error_norm, explicit, solve, linearize, implicit, roll_out):
        emit_kernel(module, kernel, WORDS)
    emit_kernel(module, roll, JOB, "external")
    emit_kernel(module, rows, (), "external")
    emit_worker_loop(module)
    return module


@cache
def engine() -> Engine:
    """The code, compiled or from the cache."""
    names = (roll.__name__, rows.__name__, WORKER_LOOP)
    return Engine.kept(names, ("rollouts", source_digest("evaluate")), emit_rollouts)


@cache
def functions() -> tuple[int, Any]:
    """Address of the function of a job, and the worker loop."""
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3
    return engine().address(roll.__name__), engine().function(WORKER_LOOP, None, *kinds)


@cache
def rows_function() -> Any:
    """The native function of `rows`."""
    return engine().function(rows.__name__, None, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 3)


def rows(
    functions: Indices,
    counts: Indices,
    constants: Floats,
    inputs: Floats,
    found: Floats,
    states: int,
    width: int,
    count: int,
) -> None:
    """Write the rates of many states: `inputs` has a row of states, controls and time for each, in all `width`."""
    for row in range(count):
        first = 0
        for state in range(states):
            function: Rate = functions[2 * state]
            place = row * states + state
            found[place] = function(inputs[row * width :], constants[first:], found)
            first += counts[state]


def roll(job: Words) -> None:
    """Roll out a range of items."""
    memory: Floats = job["memory"]
    for place in range(job["first"], job["last"]):
        item: Words = job["items"] + place * 8 * ITEM_SIZE
        roll_out(item, memory)


def roll_out(item: Words, memory: Floats) -> None:
    """Roll out an item, and write its normal equations if they are wanted."""
    clock, progress = np.empty(2), np.empty(5, np.int64)
    prepare(item, memory, clock, progress)
    if item["method"] == MAP:
        progress[STATUS] = iterate(item, memory, clock, progress)
    else:
        progress[STATUS] = IS_STIFF
        if item["method"] != IMPLICIT:
            progress[STATUS] = explicit(item, memory, clock, progress)
        if progress[STATUS] == IS_STIFF:
            progress[STATUS] = implicit(item, memory, clock, progress)
            progress[STIFF] = 1
    if item["readings"]:
        write_equations(item)
    out: Indices = item["progress"]
    for place in range(4):
        out[place] = progress[place]


def prepare(item: Words, memory: Floats, clock: Floats, progress: Indices) -> None:
    """Put the start of an item into the memory.

    A sensitivity that is small in units of state and constant needs no small relative error: it may begin as a high
    power of the time, of which the error estimate is a part at any step.
    """
    states, constants, width = item["states"], item["constants"], item["width"]
    times: Floats = item["times"]
    start: Floats = item["start"]
    scales: Floats = item["scales"]
    given: Floats = item["given"]
    state, sizes, floors = memory[item["vectors"] :], memory[item["sizes"] :], memory[item["floors"] :]
    clock[TIME], clock[STEP] = times[0], 0.0
    for place in range(5):
        progress[place] = 0
    # Padding must hold numbers: vectors are computed whole.
    for place in range(VECTORS * item["extended"]):
        state[place] = 0.0
    for place in range(states):
        state[place], sizes[place] = start[place], scales[place]
    note_sizes(item, memory, state)
    for place in range(width):
        floors[place] = 0.0
    for place in range(constants if width else 0):
        floors[place] = FLOOR / (abs(given[place]) + 1e-300)
    for place in range(states if width else 0):
        state[item["rows"] + place * width + constants + place] = 1.0
    if item["controls"]:
        find_piece(item, progress, times[0])
    write_reached(item, progress, times[0], state)


def iterate(item: Words, memory: Floats, clock: Floats, progress: Indices) -> int:
    """Apply a map once for each unit of the time; the status."""
    times: Floats = item["times"]
    state = memory[item["vectors"] :]
    after = state[item["extended"] :]
    status = DONE
    while progress[REACHED] < item["count"]:
        if progress[STEPS] >= item["most_steps"]:
            status = TOO_MANY
            break
        progress[STEPS] += 1
        now = clock[TIME]
        if item["controls"]:
            find_piece(item, progress, now)
        rates(item, memory, progress, now, state, after)
        missing = 0.0
        for place in range(item["states"]):
            missing += after[place] - after[place]
        if missing != 0.0:
            status = TOO_SMALL
            break
        copy(after, state, item["extended"])
        clock[TIME] = now + 1.0
        if now + 1.5 > times[progress[REACHED]]:
            write(item, progress[REACHED], state)
            progress[REACHED] += 1
    return status


def equations_size(unknowns: int, states: int) -> int:
    """Doubles of the equations."""
    return unknowns * (unknowns + 1) + 2 * states


def write_equations(item: Words) -> None:
    """Write the equations of an item after its rollout.

    A reading that is NaN does not count, nor does a derivative that is not finite.
    """
    states, unknowns = item["states"], item["constants"] + item["states"]
    matrix: Floats = item["equations"]
    gradient = matrix[unknowns * unknowns :]
    own, every = gradient[unknowns:], gradient[unknowns + states :]
    readings: Floats = item["readings"]
    sharpness: Floats = item["sharpness"]
    weights: Floats = item["weights"]
    found: Floats = item["states_out"]
    slopes: Floats = item["slopes_out"]
    for place in range(equations_size(unknowns, states)):
        matrix[place] = 0.0
    for time in range(item["count"]):
        for state in range(states):
            place = time * states + state
            sharp = sharpness[place]
            rest = (readings[place] - found[place]) * sharp
            if rest == rest:
                every[state] += rest * rest
                if time < item["own"]:
                    own[state] += rest * rest
                row, weight = slopes[place * unknowns :], weights[state] * sharp
                for a in range(unknowns):
                    row[a] = row[a] if row[a] - row[a] == 0.0 else 0.0
                    left = row[a] * weight
                    gradient[a] += left * rest
                    # The triangle up to the diagonal: the numbers before this one are finite already.
                    to = matrix[a * unknowns :]
                    for b in range(a + 1):
                        to[b] += left * sharp * row[b]
    for a in range(unknowns):
        for b in range(a):
            matrix[b * unknowns + a] = matrix[a * unknowns + b]
