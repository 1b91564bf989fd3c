"""Input and working memory of a rollout.

An extended state is a vector of doubles: the states, padded to whole vectors, and then a row for each state with its
sensitivities: its derivatives by the constants and by the initial states, padded too.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from shine.compiler.codegen.blocks import I64, POINTER, FunctionPointer, counted, declare, load, number
from shine.compiler.codegen.vecmath.lanes import Lanes
from shine.evaluate.rollouts.memory import WIDTH, Array, Index, Words, endless, integer, larger, real, smaller, spread

SYSTEM = ("states", "controls", "constants", "functions", "counts", "places", "locals", "most")
"""Words of a system: numbers of states, controls and constants; addresses of the functions of the states, two each (see
`shine.evaluate.rollouts.rates`); number of constants in each state's function, and their places among those of the
system; the number of all of them, and the largest."""

ITEM = (
    "system", "given", "start", "times", "count", "breaks", "pieces", "last_break", "kinked", "scales", "states_out",
    "slopes_out", "progress", "tolerance", "most_steps", "method", "readings",
    "sharpness", "weights", "own", "equations",
)  # fmt: skip
"""Words of a rollout.

============================== ========================================================================
``system``                     address of the words of its system
``given`` ``start``            constants; states at the first time
``times`` ``count``            times of the output, and their number
``breaks`` ``last_break``      times between which controls are polynomials; place of the last one
``pieces`` ``kinked``          coefficients of the polynomials, 4 a control, from the constant on; whether
                               steps must end at breaks
``scales``                     typical sizes of the states
``states_out`` ``slopes_out``  where states and sensitivities go; 0 if no sensitivities are wanted
``progress``                   where the number of times reached, the status, the number of steps and whether an
                               implicit method was taken go
``tolerance`` ``most_steps``   relative error of a step; largest number of steps
``method``                     a method of `shine.evaluate.rollouts.native`
``readings`` ``sharpness``     readings of the states at the times, and one over the sizes of their errors; 0 if
                               no equations are wanted
``weights``                    of the squared residuals of the states
``own``                        number of times whose residuals count in the plain sums
``equations``                  where the normal equations go (see `shine.evaluate.rollouts.native`)
============================== ========================================================================
"""

HEAD = ("time", "step", "next", "steps", "piece", "width")
"""First words of the memory of a thread: the time reached, the step to try, the output that comes next, the number of
steps so far, the piece of the controls, and the padded number of sensitivities."""

FLOOR = 1e-3
"""Share of the largest size of a state so far below which its error is not relative to its own size any more."""

LOOSER = 1e3
"""Tolerance of sensitivities in units of that of states: they direct a fit, and states tell how well it does."""

VECTORS = 10
"""Extended states in the memory of a thread."""

FUNCTION = FunctionPointer(ir.FunctionType(ir.VoidType(), [POINTER] * 3))
"""Type of the functions of the states."""


def padded(count: int) -> int:
    """A number of doubles that fills vectors."""
    return -(-count // WIDTH) * WIDTH


def memory_size(states: int, controls: int, constants: int, local: int, most: int) -> int:
    """Doubles of the memory of a thread for rollouts of a system."""
    width = padded(states + constants)
    extended = padded(states) + states * width
    stages = 3 * states
    # Matrix, right sides, shifts, rates and derivatives of an implicit step.
    implicit = stages * (stages + max(width, WIDTH) + 2 + states + width) + states * (1 + states + width)
    small = 2 * padded(states) + padded(states + controls + 1) + padded(1 + states + most) + padded(local)
    return padded(len(HEAD)) + small + width + VECTORS * extended + implicit + 16 * WIDTH


class Run:
    """A rollout at the beginning of a native function of an item and the memory of its thread.

    Parameters
    ----------
    build : ir.IRBuilder
        In the first block of the function.
    item, memory : ir.Value
        Pointers.
    """

    def __init__(self, build: ir.IRBuilder, item: ir.Value, memory: ir.Value) -> None:
        self.build, self.pointers = build, (item, memory)
        self.item, self.head = Words(build, item, ITEM), Words(build, memory, HEAD)
        self.system = Words(build, self.item.address("system"), SYSTEM)
        self.states, self.controls = self.system.whole("states"), self.system.whole("controls")
        self.constants, self.width = self.system.whole("constants"), self.head.whole("width")
        self.tolerance = self.item.real("tolerance")
        self.rows = self._padded(self.states)
        self.extended = self.rows + self.states * self.width
        place = integer(build, padded(len(HEAD)))
        base = Array(build, memory)

        def region(size: Lanes) -> Array:
            nonlocal place
            array = base.from_(place)
            place = place + size
            return array

        self.sizes, self.errors = region(self.rows), region(self.rows)
        self.inputs = region(self._padded(self.states + self.controls + 1))
        self.slopes = region(self._padded(self.states + self.system.whole("most") + 1))
        self.locals = region(self._padded(self.system.whole("locals")))
        self.floors = region(self.width)
        self.vectors = [region(self.extended) for _ in range(VECTORS)]
        self.rest = base.from_(place)

    def _padded(self, count: Lanes) -> Lanes:
        return (count + (WIDTH - 1)) & -WIDTH

    def combine(self, target: Array, base: Array | None, terms: Sequence[tuple[Lanes, Array]]) -> None:
        """``target = base + sum(weight * source)`` for all numbers of extended states."""
        weights = [spread(weight) for weight, _ in terms]
        with counted(self.build, number(0), self.extended.value, WIDTH) as loop:
            total = None
            for weight, (_, source) in zip(weights, terms, strict=True):
                part = weight * source.vector(loop.index)
                total = part if total is None else total + part
            assert total is not None
            target.put(loop.index, total if base is None else base.vector(loop.index) + total)

    def rates(self, time: Lanes, source: Array, target: Array) -> None:
        """Write the time derivative of an extended state."""
        function = rates_function(self.build.module)
        self.build.call(function, [*self.pointers, time.value, source.pointer, target.pointer])

    def error_norm(self, before: Array, after: Array, error: Array) -> Lanes:
        """The error of a step in units of what is allowed; NaN if a state is not finite."""
        function = norm_function(self.build.module)
        arrays = [array.pointer for array in (before, after, error)]
        return Lanes(self.build, self.build.call(function, [*self.pointers, *arrays]))

    def note_sizes(self, state: Array) -> None:
        """Keep the largest size of each state so far."""
        with counted(self.build, number(0), self.states.value) as loop:
            self.sizes[loop.index] = larger(self.sizes[loop.index], state[loop.index].magnitude())

    def write(self, row: Index, source: Array) -> None:
        """Write an extended state to a row of the output."""
        build = self.build
        row = integer(build, row.value if isinstance(row, Lanes) else row)
        states = self.item.array("states_out").from_(row * self.states)
        with counted(build, number(0), self.states.value) as loop:
            states[loop.index] = source[loop.index]
        columns = self.constants + self.states
        slopes = self.item.array("slopes_out").from_(row * self.states * columns)
        stop = (self.width > 0).where(self.states, 0)
        with counted(build, number(0), stop.value) as state:
            index = integer(build, state.index)
            own, to = source.from_(self.rows + index * self.width), slopes.from_(index * columns)
            with counted(build, number(0), columns.value) as column:
                to[column.index] = own[column.index]

    def write_reached(self, time: Lanes, source: Array) -> None:
        """Write an extended state to all rows of the output that come next and whose times are reached: times may
        repeat."""
        times, count = self.item.array("times"), self.item.whole("count")
        with endless(self.build) as loop:
            following = self.head.whole("next")
            loop.leave_if(following >= count)
            loop.leave_if(~(times[following] <= time))
            self.write(following, source)
            self.head.put("next", following + 1)


def internal(
    module: ir.Module, name: str, result: ir.Type, kinds: Sequence[ir.Type], labels: Sequence[str]
) -> tuple[ir.Function, ir.IRBuilder, Run]:
    """An internal function of an item, the memory of a thread and further arguments."""
    function = declare(module, name, result, [POINTER, POINTER, *kinds], ("item", "memory", *labels))
    function.linkage = "internal"
    build = ir.IRBuilder(function.append_basic_block("entry"))
    return function, build, Run(build, *function.args[:2])


def rates_function(module: ir.Module) -> ir.Function:
    """Internal function ``rates(item, memory, time, source, target)`` (see `Run.rates`)."""
    known = module.globals.get("shine.rates")
    if known is not None:
        return known
    kinds, labels = [ir.DoubleType(), POINTER, POINTER], ("time", "source", "target")
    function, build, run = internal(module, "shine.rates", ir.VoidType(), kinds, labels)
    time = Lanes(build, function.args[2])
    source, target = (Array(build, pointer) for pointer in function.args[3:])
    fill_inputs(run, time, source)
    zero = integer(build, 0)
    functions, counts, places = (run.system.address(name) for name in ("functions", "counts", "places"))
    with counted(build, number(0), run.states.value, carried=[number(0)]) as state:
        index, first = integer(build, state.index), integer(build, state.values[0])
        own = run.locals.from_(first)
        wanted = run.width > zero
        which = wanted.where(index * 2 + 1, index * 2)
        address = load(build, functions, which.value, I64, POINTER, 8)
        address.type = FUNCTION
        build.call(address, [run.inputs.pointer, own.pointer, run.slopes.pointer])
        target[index] = run.slopes[0]
        with build.if_then(wanted.value):
            row = target.from_(run.rows + index * run.width)
            _propagate(run, source, row)
            count = load(build, counts, state.index, I64, I64, 8)
            by_constants = run.slopes.from_(run.states + 1)
            with counted(build, number(0), count) as constant:
                place = load(build, places, build.add(first.value, constant.index), I64, I64, 8)
                row[place] = row[place] + by_constants[constant.index]
        state.results = [build.add(first.value, load(build, counts, state.index, I64, I64, 8))]
    build.ret_void()
    return function


def _propagate(run: Run, source: Array, row: Array) -> None:
    """Write the row of the Jacobian in `run.slopes` times the sensitivities."""
    build = run.build
    with counted(build, number(0), run.width.value, WIDTH) as column:
        zero = spread(real(build, 0.0))
        with counted(build, number(0), run.states.value, carried=[zero.value]) as other:
            there = integer(build, other.index)
            entry = spread(run.slopes[there + 1])
            sensitivity = source.from_(run.rows + there * run.width).vector(column.index)
            other.results = [(Lanes(build, other.values[0]) + entry * sensitivity).value]
        row.put(column.index, Lanes(build, other.values[0]))


def fill_inputs(run: Run, time: Lanes, source: Array) -> None:
    """Write states, controls and time to where the functions of the states read them."""
    build = run.build
    with counted(build, number(0), run.states.value) as state:
        run.inputs[state.index] = source[state.index]
    with build.if_then((run.controls > 0).value):
        with build.if_then(run.item.whole("kinked").equals(0).value):
            find_piece(run, time)
        piece = run.head.whole("piece")
        breaks = run.item.array("breaks")
        since = smaller(larger(time, breaks[0]), breaks[run.item.whole("last_break")]) - breaks[piece]
        own = run.item.array("pieces").from_(piece * run.controls * 4)
        with counted(build, number(0), run.controls.value) as control:
            at = own.from_(integer(build, control.index) * 4)
            value = ((at[3] * since + at[2]) * since + at[1]) * since + at[0]
            run.inputs[run.states + integer(build, control.index)] = value
    run.inputs[run.states + run.controls] = time


def norm_function(module: ir.Module) -> ir.Function:
    """Internal function ``double norm(item, memory, before, after, error)`` (see `Run.error_norm`)."""
    known = module.globals.get("shine.norm")
    if known is not None:
        return known
    double, labels = ir.DoubleType(), ("before", "after", "error")
    function, build, run = internal(module, "shine.norm", double, [POINTER] * 3, labels)
    before, after, error = (Array(build, pointer) for pointer in function.args[2:])
    with counted(build, number(0), run.states.value, carried=[real(build, 0.0).value]) as loop:
        index = loop.index
        size = larger(before[index].magnitude(), after[index].magnitude())
        size = larger(size, larger(run.sizes[index], size) * FLOOR)
        # The state itself must be finite: NaN would be no larger than anything.
        ratio = error[index] / (size * run.tolerance + 1e-300) + (after[index] - after[index])
        loop.results = [(Lanes(build, loop.values[0]) + ratio * ratio).value]
    states = (Lanes(build, loop.values[0]) / run.states.number()).sqrt()
    allowed = run.tolerance * LOOSER
    with counted(build, number(0), run.width.value, WIDTH, carried=[spread(real(build, 0.0)).value]) as column:
        zero = spread(real(build, 0.0))
        with counted(build, number(0), run.states.value, carried=[zero.value, zero.value]) as row:
            index = integer(build, row.index)
            place = run.rows + index * run.width + integer(build, column.index)
            unit = spread(1.0 / (larger(run.sizes[index], after[index].magnitude()) + 1e-300))
            sizes = after.vector(place).magnitude() * unit, error.vector(place).magnitude() * unit
            row.results = [
                larger(Lanes(build, known), size).value for known, size in zip(row.values, sizes, strict=True)
            ]
        size, wrong = (Lanes(build, value) for value in row.values)
        ratio = wrong / (larger(size, run.floors.vector(column.index)) * spread(allowed) + 1e-300)
        column.results = [larger(Lanes(build, column.values[0]), ratio).value]
    worst = real(build, 0.0)
    for lane in range(WIDTH):
        place = ir.Constant(ir.IntType(32), lane)
        worst = larger(worst, Lanes(build, build.extract_element(column.values[0], place)))
    build.ret((states < worst).where(worst, states).value)
    return function


def gather_constants(run: Run) -> None:
    """Copy the constants of the system to the order in which the functions of the states read them.

    A sensitivity that is small in units of state and constant needs no small relative error: it may begin as a high
    power of the time, of which the error estimate is a part at any step.
    """
    build, given, places = run.build, run.item.array("given"), run.system.address("places")
    with counted(build, number(0), run.system.whole("locals").value) as loop:
        run.locals[loop.index] = given[load(build, places, loop.index, I64, I64, 8)]
    with counted(build, number(0), run.width.value) as loop:
        run.floors[loop.index] = 0.0
    wanted = (run.width > 0).where(run.constants, 0)
    with counted(build, number(0), wanted.value) as loop:
        run.floors[loop.index] = FLOOR / (given[loop.index].magnitude() + 1e-300)


def find_piece(run: Run, time: Lanes) -> None:
    """Let the piece of the controls be the one that begins at a time or contains it; the search starts at the last."""
    build = run.build
    breaks, last = run.item.array("breaks"), run.item.whole("last_break") - 1
    with endless(build) as loop:
        piece = run.head.whole("piece")
        loop.leave_if((piece >= last) | ~(breaks[(piece < last).where(piece + 1, piece)] <= time))
        run.head.put("piece", piece + 1)
    with endless(build) as loop:
        piece = run.head.whole("piece")
        loop.leave_if((piece <= 0) | ~(time < breaks[piece]))
        run.head.put("piece", piece - 1)
