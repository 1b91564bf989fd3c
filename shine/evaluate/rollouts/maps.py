"""Maps: ``state[k + 1] = f(state[k], controls[k], k)``, and the rates of many states at once."""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, FunctionPointer, counted, declare, load, number
from shine.compiler.codegen.vecmath.lanes import Lanes
from shine.evaluate.rollouts.explicit import REACHED, TOO_MANY, TOO_SMALL
from shine.evaluate.rollouts.memory import Array, Variable, Words, endless, integer, real
from shine.evaluate.rollouts.work import SYSTEM, Run, find_piece

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
