"""The implicit method for stiff systems: Radau IIA with three stages, of order 5.

The method and its error estimate are those of Hairer and Wanner, *Solving Ordinary Differential Equations II* (1996),
section IV.8. Systems have few states, so Newton's method solves the equations of all stages together, with exact
Jacobians; the sensitivities of a step solve the same equations, linearized where it ended. Steps end at the times of
the output: the polynomial between them has a lower order.
"""

from __future__ import annotations

from math import sqrt

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, counted, declare, load, number
from shine.compiler.codegen.vecmath.lanes import Lanes
from shine.evaluate.rollouts.explicit import (
    REACHED,
    TOO_MANY,
    TOO_SMALL,
    first_step,
    is_too_small,
    next_stop,
    power,
)
from shine.evaluate.rollouts.memory import WIDTH, Array, Variable, endless, integer, larger, real, smaller, spread
from shine.evaluate.rollouts.work import FLOOR, FUNCTION, Run, fill_inputs, find_piece, internal

_ROOT = sqrt(6)
TIMES = ((4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0)
STAGES = (
    ((88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225),
    ((296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225),
    ((16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9),
)
"""Times and weights of the stages."""

REAL = 1 / (3 + 3 ** (2 / 3) - 3 ** (1 / 3))
"""The real eigenvalue of the weights."""
ERROR = tuple(REAL * part / 3 for part in (-13 - 7 * _ROOT, -13 + 7 * _ROOT, -1))
"""Weights of the stages in the error estimate."""

CONVERGED = 1e-3
"""Last correction of Newton's method, in units of the allowed error."""

_SAFETY, _LEAST, _MOST = 0.9, 0.2, 8.0


class _Space:
    """Memory of a step: its stages, matrices and right sides."""

    def __init__(self, run: Run) -> None:
        self.run, build = run, run.build
        count, place = run.states, integer(build, 0)
        self.stages = count * 3
        # Newton's method has one right side, which fills a vector.
        self.sides = (run.width > 0).where(run.width, WIDTH)

        def region(size: Lanes) -> Array:
            nonlocal place
            array = run.rest.from_(place)
            place = place + ((size + (WIDTH - 1)) & -WIDTH)
            return array

        self.matrix, self.rights = region(self.stages * self.stages), region(self.stages * self.sides)
        self.shifts, self.rates = region(self.stages), region(self.stages)
        self.jacobians, self.by_constants = region(self.stages * count), region(self.stages * run.width)
        self.first_rates, self.first_jacobian = region(count), region(count * count)
        self.first_by = region(count * run.width)

    def linearize(self, time: Lanes, state: Array, to: tuple[Array, Array, Array]) -> None:
        """Rates, Jacobian and derivatives by constants at a state."""
        pointers = [array.pointer for array in (state, *to)]
        self.run.build.call(linearize_function(self.run.build.module), [*self.run.pointers, time.value, *pointers])

    def linearize_stages(self, now: Lanes, h: Lanes) -> None:
        """The same at all stages, whose states are the state before the step and a shift."""
        run = self.run
        state, argument = run.vectors[0], run.vectors[8]
        for stage, share in enumerate(TIMES):
            shift = self.shifts.from_(run.states * stage)
            with counted(run.build, number(0), run.states.value) as loop:
                argument[loop.index] = state[loop.index] + shift[loop.index]
            to = (
                self.rates.from_(run.states * stage),
                self.jacobians.from_(run.states * run.states * stage),
                self.by_constants.from_(run.states * run.width * stage),
            )
            self.linearize(now + h * share, argument, to)

    def fill_matrix(self, h: Lanes) -> None:
        """The matrix of the equations of all stages: ones less the weighted Jacobians."""
        run, build = self.run, self.run.build
        for row, weights in enumerate(STAGES):
            for column, weight in enumerate(weights):
                jacobian = self.jacobians.from_(run.states * run.states * column)
                with counted(build, number(0), run.states.value) as i, counted(build, number(0), run.states.value) as j:
                    a, b = integer(build, i.index), integer(build, j.index)
                    one = a.equals(b).where(real(build, float(row == column)), 0.0)
                    place = (run.states * row + a) * self.stages + run.states * column + b
                    self.matrix[place] = one - h * weight * jacobian[a * run.states + b]

    def solve(self, size: Lanes, sides: Lanes) -> None:
        """Solve the equations in the matrix and the right sides."""
        arguments = [self.matrix.pointer, self.rights.pointer, size.value, sides.value]
        self.run.build.call(solve_function(self.run.build.module), arguments)


def emit_implicit(module: ir.Module) -> ir.Function:
    """Emit ``i64 implicit(item, memory)``, which takes up a rollout where the memory has it; the result is the
    status."""
    function = declare(module, "shine.implicit", I64, [POINTER, POINTER], ("item", "memory"))
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    run = Run(build, *function.args)
    space = _Space(run)
    state, error, after = run.vectors[0], run.vectors[7], run.vectors[9]
    times, count = run.item.array("times"), run.item.whole("count")
    end, span = times[count - 1], times[count - 1] - times[0]
    time, step = Variable(run.head.real("time")), Variable(run.head.real("step"))
    status, most = Variable(integer(build, REACHED)), Variable(real(build, _MOST))
    with counted(build, number(0), run.extended.value) as loop:
        error[loop.index] = 0.0
    with build.if_then((~(step.get() > 0.0)).value):
        run.rates(time.get(), state, run.vectors[1])
        step.set(first_step(run, span))
    with endless(build) as steps:
        following = run.head.whole("next")
        steps.leave_if(following >= count)
        done = run.head.whole("steps")
        status.set(integer(build, TOO_MANY))
        steps.leave_if(done >= run.item.whole("most_steps"))
        run.head.put("steps", done + 1)
        now = time.get()
        goal = smaller(next_stop(run, now, end), times[following])
        reaches = goal - now <= step.get() * 1.01
        h = reaches.where(goal - now, step.get())
        status.set(integer(build, TOO_SMALL))
        steps.leave_if(is_too_small(h, now, span) & ~reaches)
        steps.leave_if(~(h > 0.0))
        status.set(integer(build, REACHED))
        space.linearize(now, state, (space.first_rates, space.first_jacobian, space.first_by))
        found = _newton(space, now, h)
        with counted(build, number(0), run.states.value) as loop:
            after[loop.index] = state[loop.index] + space.shifts[run.states * 2 + integer(build, loop.index)]
        norm = _estimate(space, now, h)
        good = (norm <= 1.0) & found
        with build.if_else(good.value) as (accepted, rejected):
            with accepted:
                then = reaches.where(goal, now + h)
                with build.if_then((run.width > 0).value):
                    _advance_sensitivities(space, now, h)
                run.note_sizes(after)
                run.combine(state, None, [(real(build, 1.0), after)])
                time.set(then)
                with build.if_then((run.controls > 0).value):
                    find_piece(run, then)
                run.write_reached(then, state)
                grown = h * smaller(larger(power(norm, -0.25) * _SAFETY, _LEAST), most.get())
                step.set((reaches & (h < step.get())).where(larger(grown, step.get()), grown))
                most.set(real(build, _MOST))
            with rejected:
                factor = larger(power(norm, -0.25) * _SAFETY, _LEAST)
                step.set(h * (found & (factor <= 1.0)).where(factor, _LEAST))
                most.set(real(build, 1.0))
    run.head.put("time", time.get())
    run.head.put("step", step.get())
    build.ret(status.get().value)
    return function


def _newton(space: _Space, now: Lanes, h: Lanes) -> Lanes:
    """Find the shifts of the stages; whether the method converged."""
    run, build = space.run, space.run.build
    state, sides = run.vectors[0], integer(build, WIDTH)
    zero = real(build, 0.0).value
    with counted(build, number(0), space.stages.value) as loop:
        space.shifts[loop.index] = 0.0
    # Variables on the stack are made once, not at every step; at most twelve iterations.
    with counted(build, number(0), number(12), carried=[real(build, 1.0).value]) as iteration:
        correction = Lanes(build, iteration.values[0])
        again = correction > CONVERGED
        # When it has converged, and when a number is missing, the remaining iterations do nothing.
        active = again.where(run.states, 0)
        with build.if_then(again.value):
            space.linearize_stages(now, h)
            space.fill_matrix(h)
        for stage, weights in enumerate(STAGES):
            with counted(build, number(0), active.value) as loop:
                index = integer(build, loop.index)
                total = real(build, 0.0)
                for other, weight in enumerate(weights):
                    total = total + space.rates[run.states * other + index] * weight
                place = run.states * stage + index
                row = space.rights.from_(place * WIDTH)
                row[0] = h * total - space.shifts[place]
                for lane in range(1, WIDTH):
                    row[lane] = 0.0
        with build.if_then(again.value):
            space.solve(space.stages, sides)
        with counted(build, number(0), (active * 3).value, carried=[zero]) as loop:
            index = integer(build, loop.index)
            change = space.rights[index * WIDTH]
            space.shifts[index] = space.shifts[index] + change
            owner = Lanes(build, build.urem(loop.index, run.states.value))
            size = larger(state[owner].magnitude(), larger(run.sizes[owner], state[owner].magnitude()) * FLOOR)
            size = larger(size, space.shifts[index].magnitude())
            ratio = change / (size * run.tolerance + 1e-300)
            loop.results = [(Lanes(build, loop.values[0]) + ratio * ratio).value]
        norm = (Lanes(build, loop.values[0]) / space.stages.number()).sqrt()
        iteration.results = [again.where(norm, correction).value]
    return Lanes(build, iteration.values[0]) <= CONVERGED


def _estimate(space: _Space, now: Lanes, h: Lanes) -> Lanes:
    """The norm of the error estimate; one that is too large is filtered once more, as for stiff systems it must."""
    run, build = space.run, space.run.build
    error, after, argument = run.vectors[7], run.vectors[9], run.vectors[8]
    state, scaled = run.vectors[0], h * REAL

    def estimate(rates: Array) -> None:
        with counted(build, number(0), run.states.value) as loop:
            index = integer(build, loop.index)
            with counted(build, number(0), run.states.value) as column:
                other = integer(build, column.index)
                one = index.equals(other).where(real(build, 1.0), 0.0)
                place = index * run.states + other
                space.matrix[place] = one - scaled * space.first_jacobian[place]
            total = scaled * rates[index]
            for stage, weight in enumerate(ERROR):
                total = total + space.shifts[run.states * stage + index] * weight
            row = space.rights.from_(index * WIDTH)
            row[0] = total
            for lane in range(1, WIDTH):
                row[lane] = 0.0
        space.solve(run.states, integer(build, WIDTH))
        with counted(build, number(0), run.states.value) as loop:
            error[loop.index] = space.rights[integer(build, loop.index) * WIDTH]

    estimate(space.first_rates)
    norm = run.error_norm(state, after, error)
    before = build.block
    with build.if_then((norm > 1.0).value):
        with counted(build, number(0), run.states.value) as loop:
            argument[loop.index] = state[loop.index] + error[loop.index]
        space.linearize(now, argument, (space.rates, space.jacobians, space.by_constants))
        estimate(space.rates)
        filtered = run.error_norm(state, after, error)
        last = build.block
    chosen = build.phi(norm.type)
    chosen.add_incoming(norm.value, before)
    chosen.add_incoming(filtered.value, last)
    return Lanes(build, chosen)


def _advance_sensitivities(space: _Space, now: Lanes, h: Lanes) -> None:
    """Write the sensitivities after a step: the derivatives of the equations that its stages solve."""
    run, build = space.run, space.run.build
    state, after = run.vectors[0], run.vectors[9]
    space.linearize_stages(now, h)
    space.fill_matrix(h)
    for stage in range(3):
        jacobian = space.jacobians.from_(run.states * run.states * stage)
        rows = space.by_constants.from_(run.states * run.width * stage)
        with (
            counted(build, number(0), run.states.value) as i,
            counted(build, number(0), run.width.value, WIDTH) as column,
        ):
            index, place = integer(build, i.index), integer(build, column.index)
            own = rows.vector(index * run.width + place)
            with counted(build, number(0), run.states.value, carried=[own.value]) as j:
                other = integer(build, j.index)
                entry = spread(jacobian[index * run.states + other])
                there = state.vector(run.rows + other * run.width + place)
                j.results = [(Lanes(build, j.values[0]) + entry * there).value]
            rows.put(index * run.width + place, Lanes(build, j.values[0]))
    block = run.states * run.width
    for stage, weights in enumerate(STAGES):
        factors = [spread(h * weight) for weight in weights]
        with counted(build, number(0), block.value, WIDTH) as loop:
            place = integer(build, loop.index)
            parts = [factor * space.by_constants.vector(block * other + place) for other, factor in enumerate(factors)]
            space.rights.put(block * stage + place, parts[0] + parts[1] + parts[2])
    space.solve(space.stages, run.width)
    with counted(build, number(0), block.value, WIDTH) as loop:
        place = integer(build, loop.index)
        moved = state.vector(run.rows + place) + space.rights.vector(block * 2 + place)
        after.put(run.rows + place, moved)


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
