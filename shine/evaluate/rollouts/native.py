"""The compiled integrators and maps: one module for all systems, whose right-hand sides are functions that it calls.

The normal equations of a fit follow one another in memory: the matrix of the unknowns, which are the constants and the
initial states; the negative gradient; for each state the sum of its squared residuals at its own times, in units of the
sizes of the errors and without weights; and the same at all times.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, FunctionPointer, counted, declare, element_pointer, load, number
from shine.compiler.codegen.numbers import source_digest
from shine.compiler.codegen.vecmath.lanes import Lanes
from shine.compiler.llvm import Engine
from shine.evaluate.machine.job import WORKER_LOOP, emit_worker_loop
from shine.evaluate.rollouts.explicit import REACHED, STIFF, TOO_MANY, TOO_SMALL, emit_explicit
from shine.evaluate.rollouts.implicit import emit_implicit
from shine.evaluate.rollouts.memory import Array, Variable, Words, endless, integer, real
from shine.evaluate.rollouts.work import ITEM, SYSTEM, Run, find_piece, gather_constants, padded


def equations_size(unknowns: int, states: int) -> int:
    """Doubles of the equations."""
    return unknowns * (unknowns + 1) + 2 * states


def emit_equations(module: ir.Module) -> ir.Function:
    """Internal function ``equations(item)`` that writes the equations of an item after its rollout.

    A reading that is NaN does not count, nor does a derivative that is not finite.
    """
    function = declare(module, "shine.equations", ir.VoidType(), [POINTER], ("item",))
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    item = Words(build, function.args[0], ITEM)
    system = Words(build, item.address("system"), SYSTEM)
    states, unknowns = system.whole("states"), system.whole("constants") + system.whole("states")
    matrix = item.array("equations")
    slope = matrix.from_(unknowns * unknowns)
    own, every = slope.from_(unknowns), slope.from_(unknowns + states)
    with counted(build, number(0), (unknowns * (unknowns + 1) + states * 2).value) as loop:
        matrix[loop.index] = 0.0
    readings, weights = item.array("readings"), item.array("weights")
    found, slopes = item.array("states_out"), item.array("slopes_out")
    with (
        counted(build, number(0), item.whole("count").value) as time,
        counted(build, number(0), states.value) as state,
    ):
        moment, which = integer(build, time.index), integer(build, state.index)
        place = moment * states + which
        sharpness = item.array("sharpness")[place]
        rest = (readings[place] - found[place]) * sharpness
        with build.if_then(build.not_(rest.is_nan().value)):
            every[which] = every[which] + rest * rest
            with build.if_then((moment < item.whole("own")).value):
                own[which] = own[which] + rest * rest
            row, weight = slopes.from_(place * unknowns), weights[which] * sharpness
            with counted(build, number(0), unknowns.value) as a:
                left = _finite(row, a.index)
                row[a.index] = left
                left = left * weight
                slope[a.index] = slope[a.index] + left * rest
                left = left * sharpness
                to = matrix.from_(integer(build, a.index) * unknowns)
                # The triangle up to the diagonal: the numbers before this one are finite already.
                with counted(build, number(0), build.add(a.index, number(1))) as b:
                    to[b.index] = to[b.index] + left * row[b.index]
    with counted(build, number(0), unknowns.value) as a, counted(build, number(0), a.index) as b:
        first, second = integer(build, a.index), integer(build, b.index)
        matrix[second * unknowns + first] = matrix[first * unknowns + second]
    build.ret_void()
    return function


def _finite(row: Array, index: ir.Value) -> Lanes:
    """A number, or 0 if it is not finite."""
    value = row[index]
    return (value - value).equals(0.0).where(value, 0.0)


ROLL = "roll"
"""Name of the function that rolls out a range of items."""

AUTOMATIC, EXPLICIT, IMPLICIT, MAP = range(4)
"""Methods of an item: explicit steps, and implicit ones once the system turns out to be stiff; one of both; a map."""

JOB = ("items", "memory", "first", "last")
"""Words of the job of a thread: the items, its memory, and the range of items to roll out."""


def emit_rollouts() -> ir.Module:
    """The module: ``void roll(job)`` and the worker loop."""
    module = ir.Module(name="rollouts")
    one = _emit_one(module)
    function = declare(module, ROLL, ir.VoidType(), [POINTER], ("job",))
    build = ir.IRBuilder(function.append_basic_block("entry"))
    job = Words(build, function.args[0], JOB)
    with counted(build, job.whole("first").value, job.whole("last").value) as loop:
        item = element_pointer(build, job.address("items"), build.mul(loop.index, number(len(ITEM))), I64)
        build.call(one, [item, job.address("memory")])
    build.ret_void()
    emit_rows(module)
    emit_worker_loop(module)
    return module


def _emit_one(module: ir.Module) -> ir.Function:
    """Internal function ``one(item, memory)`` that rolls out one item."""
    explicit, implicit, iterate = emit_explicit(module), emit_implicit(module), emit_map(module)
    prepare, equations = _emit_prepare(module), emit_equations(module)
    function = declare(module, "shine.one", ir.VoidType(), [POINTER, POINTER], ("item", "memory"))
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    build.call(prepare, function.args)
    run = Run(build, *function.args)
    status, stiff = Variable(integer(build, 0)), Variable(integer(build, 0))
    with build.if_else(run.item.whole("method").equals(MAP).value) as (is_map, is_flow):
        with is_map:
            status.set(integer(build, build.call(iterate, function.args)))
        with is_flow:
            status.set(integer(build, STIFF))
            with build.if_then((~run.item.whole("method").equals(IMPLICIT)).value):
                status.set(integer(build, build.call(explicit, function.args)))
            with build.if_then(status.get().equals(STIFF).value):
                status.set(integer(build, build.call(implicit, function.args)))
                stiff.set(integer(build, 1))
    with build.if_then(run.item.array("readings").is_there()):
        build.call(equations, [function.args[0]])
    progress = Words(build, run.item.address("progress"), ("reached", "status", "steps", "stiff"))
    progress.put("reached", run.head.whole("next"))
    progress.put("status", status.get())
    progress.put("steps", run.head.whole("steps"))
    progress.put("stiff", stiff.get())
    build.ret_void()
    return function


def _emit_prepare(module: ir.Module) -> ir.Function:
    """Internal function ``prepare(item, memory)`` that puts the start of an item into the memory."""
    function = declare(module, "shine.prepare", ir.VoidType(), [POINTER, POINTER], ("item", "memory"))
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    item, memory = function.args
    before = Run(build, item, memory)
    wanted = before.item.array("slopes_out").is_there()
    columns = (before.constants + before.states + (padded(1) - 1)) & -padded(1)
    before.head.put("width", integer(build, build.select(wanted, columns.value, number(0))))
    # The layout of the memory depends on the width.
    run = Run(build, item, memory)
    start = run.item.array("times")[0]
    for name, value in (("next", 1), ("steps", 0), ("piece", 0)):
        run.head.put(name, value)
    run.head.put("time", start)
    run.head.put("step", start.constant(0.0))
    gather_constants(run)
    state, given, scales = run.vectors[0], run.item.array("start"), run.item.array("scales")
    # Padding must hold numbers: vectors are computed whole.
    for vector in run.vectors:
        with counted(build, number(0), run.extended.value) as loop:
            vector[loop.index] = 0.0
    with counted(build, number(0), run.states.value) as loop:
        state[loop.index] = given[loop.index]
        run.sizes[loop.index] = scales[loop.index]
    run.note_sizes(state)
    stop = (run.width > 0).where(run.states, 0)
    with counted(build, number(0), stop.value) as loop:
        index = integer(build, loop.index)
        state[run.rows + index * run.width + run.constants + index] = 1.0
    with build.if_then((run.controls > 0).value):
        find_piece(run, start)
    run.write(0, state)
    run.write_reached(start, state)
    build.ret_void()
    return function


@cache
def engine() -> Engine:
    """The code, compiled or from the cache."""
    return Engine.kept((ROLL, ROWS, WORKER_LOOP), ("rollouts", source_digest("evaluate")), emit_rollouts)


@cache
def functions() -> tuple[int, Any]:
    """Address of the function of a job, and the worker loop."""
    kinds = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3
    return engine().address(ROLL), engine().function(WORKER_LOOP, None, *kinds)


@cache
def rows_function() -> Any:
    """The function of `shine.evaluate.rollouts.native.emit_rows`."""
    return engine().function(ROWS, None, *[ctypes.c_void_p] * 4, ctypes.c_int64)


ROWS = "rows"
"""Name of the function that computes the rates of many states."""


def emit_map(module: ir.Module) -> ir.Function:
    """Emit ``i64 map(item, memory)``, which applies a map once for each unit of the time; the result is the status."""
    function = declare(module, "shine.map", I64, [POINTER, POINTER], ("item", "memory"))
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    run = Run(build, *function.args)
    state, after = run.vectors[0], run.vectors[1]
    times, count = run.item.array("times"), run.item.whole("count")
    status = Variable(integer(build, REACHED))
    with endless(build) as loop:
        following = run.head.whole("next")
        loop.leave_if(following >= count)
        steps, time = run.head.whole("steps"), run.head.real("time")
        status.set(integer(build, TOO_MANY))
        loop.leave_if(steps >= run.item.whole("most_steps"))
        run.head.put("steps", steps + 1)
        with build.if_then((run.controls > 0).value):
            find_piece(run, time)
        run.rates(time, state, after)
        with counted(build, number(0), run.states.value, carried=[real(build, 0.0).value]) as each:
            value = after[each.index]
            each.results = [(Lanes(build, each.values[0]) + (value - value)).value]
        status.set(integer(build, TOO_SMALL))
        loop.leave_if(~Lanes(build, each.values[0]).equals(0.0))
        status.set(integer(build, REACHED))
        run.combine(state, None, [(real(build, 1.0), after)])
        run.head.put("time", time + 1.0)
        with build.if_then((time + 1.5 > times[following]).value):
            run.write(following, state)
            run.head.put("next", following + 1)
    build.ret(status.get().value)
    return function


def emit_rows(module: ir.Module) -> None:
    """Emit ``void rows(system, constants, inputs, out, count)``.

    `constants` are those of the states' functions one after the other; `inputs` has a row of states, controls and time
    for each of `count` rows, `out` one of rates.
    """
    kinds = [POINTER] * 4 + [I64]
    function = declare(module, ROWS, ir.VoidType(), kinds, ("system", "constants", "inputs", "out", "count"))
    build = ir.IRBuilder(function.append_basic_block("entry"))
    system = Words(build, function.args[0], SYSTEM)
    constants, inputs, out = (Array(build, pointer) for pointer in function.args[1:4])
    states = system.whole("states")
    width = states + system.whole("controls") + 1
    functions, counts = system.address("functions"), system.address("counts")
    with counted(build, number(0), function.args[4]) as row:
        index = integer(build, row.index)
        given, own = inputs.from_(index * width), out.from_(index * states)
        with counted(build, number(0), states.value, carried=[number(0)]) as state:
            place = integer(build, state.index)
            address = load(build, functions, (place * 2).value, I64, POINTER, 8)
            address.type = FunctionPointer(ir.FunctionType(ir.VoidType(), [POINTER] * 3))
            build.call(address, [given.pointer, constants.from_(state.values[0]).pointer, own.from_(place).pointer])
            state.results = [build.add(state.values[0], load(build, counts, state.index, I64, I64, 8))]
    build.ret_void()
