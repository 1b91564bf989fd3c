"""Systems of linear equations in native code, with the derivatives of right-hand sides that make them."""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, load, number
from shine.compiler.codegen.vecmath.lanes import Lanes
from shine.evaluate.rollouts.memory import WIDTH, Array, integer, real, spread
from shine.evaluate.rollouts.work import FUNCTION, fill_inputs, internal


def solve_function(module: ir.Module) -> ir.Function:
    """Internal function ``solve(matrix, rights, size, width)``: Gaussian elimination with partial pivoting.

    `matrix` is overwritten, `rights` of shape (size, width) becomes the solution; it is not finite if the matrix is
    singular.
    """
    known = module.globals.get("shine.solve")
    if known is not None:
        return known
    kinds, labels = [POINTER, POINTER, I64, I64], ("matrix", "rights", "size", "width")
    function = declare(module, "shine.solve", ir.VoidType(), kinds, labels)
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    matrix, rights = (Array(build, pointer) for pointer in function.args[:2])
    size, width = (integer(build, value) for value in function.args[2:])
    zero = number(0)
    with counted(build, zero, size.value) as pivot:
        own = integer(build, pivot.index)
        start = [pivot.index, real(build, 0.0).value]
        with counted(build, pivot.index, size.value, carried=start) as row:
            best, most = (Lanes(build, value) for value in row.values)
            here = integer(build, row.index)
            found = matrix[here * size + own].magnitude()
            row.results = [(found > most).where(here, best).value, (found > most).where(found, most).value]
        best = Lanes(build, row.values[0])
        with build.if_then((best > own).value):
            _swap(build, matrix, own * size, best * size, size)
            _swap(build, rights, own * width, best * width, width)
        inverse = 1.0 / matrix[own * size + own]
        with counted(build, (own + 1).value, size.value) as below:
            here = integer(build, below.index)
            factor = matrix[here * size + own] * inverse
            with counted(build, (own + 1).value, size.value) as column:
                place = here * size + integer(build, column.index)
                matrix[place] = matrix[place] - factor * matrix[own * size + integer(build, column.index)]
            _subtract(build, rights, (here * width, own * width), factor, width)
    with counted(build, zero, size.value) as back:
        own = size - 1 - integer(build, back.index)
        with counted(build, (own + 1).value, size.value) as column:
            other = integer(build, column.index)
            _subtract(build, rights, (own * width, other * width), matrix[own * size + other], width)
        inverse = spread(1.0 / matrix[own * size + own])
        with counted(build, zero, width.value, WIDTH) as column:
            place = own * width + integer(build, column.index)
            rights.put(place, rights.vector(place) * inverse)
    build.ret_void()
    return function


def _swap(build: ir.IRBuilder, array: Array, a: Lanes, b: Lanes, count: Lanes) -> None:
    """Exchange two rows."""
    with counted(build, number(0), count.value) as loop:
        index = integer(build, loop.index)
        first, second = array[a + index], array[b + index]
        array[a + index], array[b + index] = second, first


def _subtract(build: ir.IRBuilder, array: Array, rows: tuple[Lanes, Lanes], factor: Lanes, count: Lanes) -> None:
    """Subtract a multiple of the second row from the first."""
    factors = spread(factor)
    with counted(build, number(0), count.value, WIDTH) as loop:
        index = integer(build, loop.index)
        left = array.vector(rows[0] + index) - factors * array.vector(rows[1] + index)
        array.put(rows[0] + index, left)


def linearize_function(module: ir.Module) -> ir.Function:
    """Internal function ``linearize(item, memory, time, state, rates, jacobian, by_constants)``.

    It writes the rates of the states, their derivatives by the states, shape (states, states), and by the constants,
    shape (states, width); the latter are left out if no sensitivities are wanted.
    """
    known = module.globals.get("shine.linearize")
    if known is not None:
        return known
    kinds, labels = [ir.DoubleType(), *[POINTER] * 4], ("time", "state", "rates", "jacobian", "by_constants")
    function, build, run = internal(module, "shine.linearize", ir.VoidType(), kinds, labels)
    time = Lanes(build, function.args[2])
    state, rates, jacobian, by_constants = (Array(build, pointer) for pointer in function.args[3:])
    fill_inputs(run, time, state)
    functions, counts, places = (run.system.address(name) for name in ("functions", "counts", "places"))
    with counted(build, number(0), run.states.value, carried=[number(0)]) as loop:
        index, first = integer(build, loop.index), integer(build, loop.values[0])
        address = load(build, functions, (index * 2 + 1).value, I64, POINTER, 8)
        address.type = FUNCTION
        build.call(address, [run.inputs.pointer, run.locals.from_(first).pointer, run.slopes.pointer])
        rates[index] = run.slopes[0]
        with counted(build, number(0), run.states.value) as column:
            other = integer(build, column.index)
            jacobian[index * run.states + other] = run.slopes[other + 1]
        count = load(build, counts, loop.index, I64, I64, 8)
        row, own = by_constants.from_(index * run.width), run.slopes.from_(run.states + 1)
        with counted(build, number(0), run.width.value) as column:
            row[column.index] = 0.0
        wanted = (run.width > 0).where(integer(build, count), 0)
        with counted(build, number(0), wanted.value) as constant:
            place = load(build, places, build.add(first.value, constant.index), I64, I64, 8)
            row[place] = row[place] + own[constant.index]
        loop.results = [build.add(first.value, count)]
    build.ret_void()
    return function
