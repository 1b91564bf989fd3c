"""Normal equations of a fit to the readings of a rollout, as native code.

They follow one another in memory: the matrix of the unknowns, which are the constants and the initial states; the
negative gradient; for each state the sum of its squared residuals at its own times, in units of the sizes of the errors
and without weights; and the same at all times.
"""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import POINTER, counted, declare, number
from shine.compiler.codegen.vecmath.lanes import Lanes
from shine.evaluate.rollouts.memory import Array, Words, integer
from shine.evaluate.rollouts.work import ITEM, SYSTEM


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
