"""Levenberg-Marquardt on the constants of one individual after another, as native code around the gradient machine.

The same steps as those of `shine.gp.constants`, which explains them; here an individual goes through all of its steps
while its program and its rows are in the cache, and nothing is handed back in between. The systems of equations have a
handful of unknowns: they are solved in scalar code, by the factors L D L^T.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from shine.codegen.blocks import I64, POINTER, counted, declare, element_pointer, intrinsic, load, store
from shine.codegen.gradient.assembler import FIXED_COLUMNS
from shine.codegen.machine.assembler import Variables, number
from shine.codegen.machine.machine import Job

FIT_FIELDS = ("steps", "scaled", "fixed", "settings", "fitting")
"""What a job of fitting has besides: how many steps; whether slope and intercept are fitted; the address of a byte for
each individual and constant, not 0 where it stays; the address of the numbers `SETTINGS`; memory of the thread."""

SETTINGS = ("tolerance", "first", "least", "most", "lower", "higher")
"""Numbers that rule the steps: the tolerance, then those of `shine.fitness.protocols.Damping`."""

LINE = FIXED_COLUMNS - 1
"""Unknowns before the constants: intercept and slope."""

_DOUBLE = ir.DoubleType()
_INFINITY = ir.Constant(_DOUBLE, float("inf"))
_ZERO, _ONE = ir.Constant(_DOUBLE, 0.0), ir.Constant(_DOUBLE, 1.0)

Evaluate = Callable[[ir.Value, ir.Value, ir.Value, ir.Value, ir.Value], None]
"""Emits the normal equations of an individual: ``evaluate(individual, line, limit, state, most)``."""


def fitting_numbers(most: int) -> int:
    """Numbers of memory that fitting up to `most` constants takes."""
    unknowns = most + LINE
    return 2 + 1 + (unknowns + 1) ** 2 + 2 * unknowns**2 + 5 * unknowns


@dataclass(frozen=True)
class _Memory:
    """Where the numbers of a fit are; `size` is the length of a matrix's rows, in memory of the thread.

    `line` is slope and intercept as the epilogue reads them; `state` what it writes; `matrix`, `gradient` and `scale`
    are the scaled equations, `work` and `step` what solving them uses up.
    """

    size: ir.Value
    line: ir.Value
    state: ir.Value
    matrix: ir.Value
    work: ir.Value
    gradient: ir.Value
    scale: ir.Value
    step: ir.Value
    unknowns: ir.Value
    trial: ir.Value

    @classmethod
    def at(cls, build: ir.IRBuilder, base: ir.Value, most: ir.Value) -> _Memory:
        size = build.add(most, number(LINE))
        square, stride = build.mul(size, size), build.add(size, number(1))
        lengths = [number(2), build.add(build.mul(stride, stride), number(1)), square, square, *[size] * 5]
        parts, here = [], number(0)
        for length in lengths:
            parts.append(element_pointer(build, base, here, _DOUBLE))
            here = build.add(here, length)
        return cls(size, *parts)


def emit_fit(build: ir.IRBuilder, job: Job, evaluate: Evaluate) -> None:
    """Emit the fit of the individuals of a job (the fields of `shine.codegen.gradient.machine.FIT_JOB`).

    It changes their `values` and `lines`, and writes the sum of errors of each to `out`; inf where it is not finite.
    """
    _Fit(build, job, evaluate).emit()


class _Fit:
    """The instructions of `emit_fit`."""

    def __init__(self, build: ir.IRBuilder, job: Job, evaluate: Evaluate) -> None:
        self.build, self.job, self.evaluate = build, job, evaluate
        self.memory = _Memory.at(build, build.inttoptr(job["fitting"], POINTER), job["most"])
        settings = build.inttoptr(job["settings"], POINTER)
        self.settings = {name: self._at(settings, number(i)) for i, name in enumerate(SETTINGS)}
        self.state = Variables(build, count=0, going=0)
        self.error, self.damping = (build.alloca(_DOUBLE) for _ in range(2))
        self.error.type = self.damping.type = POINTER

    def emit(self) -> None:
        build, memory = self.build, self.memory
        scale = _scale_function(build.module)
        solve = _solve_function(build.module)
        with counted(build, self.job["first"], self.job["last"]) as loop:
            individual = loop.index
            self._read(individual)
            self._evaluate(individual, _INFINITY, self.job["most"])
            error = self._at(memory.state, number(0))
            finite = build.fcmp_ordered("<", error, _INFINITY)
            build.store(build.select(finite, error, _INFINITY), self.error)
            build.store(self.settings["first"], self.damping)
            going = build.and_(finite, build.fcmp_ordered(">", error, _ZERO))
            self.state["going"] = build.zext(going, I64)
            unknowns = build.add(self.state["count"], number(LINE))
            self._scale(scale, individual, unknowns)
            with counted(build, number(0), self.job["steps"]) as step, self._if_going():
                error, damping = build.load(self.error, typ=_DOUBLE), build.load(self.damping, typ=_DOUBLE)
                arguments = (memory.matrix, memory.gradient, memory.scale, memory.work, memory.step)
                gain = build.call(solve, [*arguments, unknowns, memory.size, damping])
                enough = build.fcmp_ordered(">", gain, build.fmul(self.settings["tolerance"], error))
                self.state["going"] = build.zext(enough, I64)
                with self._if_going():
                    following = build.add(step.index, number(1))
                    last = build.icmp_unsigned("==", following, self.job["steps"])
                    self._try(scale, individual, unknowns, error, damping, last)
            self._write(individual, memory.unknowns)
            store(build, self._at(memory.unknowns, number(1)), self._line(individual), number(0), _DOUBLE)
            store(build, self._at(memory.unknowns, number(0)), self._line(individual), number(1), _DOUBLE)
            out = build.inttoptr(self.job["out"], POINTER)
            store(build, build.load(self.error, typ=_DOUBLE), out, individual, _DOUBLE)

    def _try(
        self,
        scale: ir.Function,
        individual: ir.Value,
        unknowns: ir.Value,
        error: ir.Value,
        damping: ir.Value,
        last: ir.Value,
    ) -> None:
        """Take a step, and stay there if it is better; the damping follows. Nothing follows from the equations of the
        last one, so that only its error is measured."""
        build, memory = self.build, self.memory
        with counted(build, number(0), unknowns) as loop:
            moved = build.fadd(self._at(memory.unknowns, loop.index), self._at(memory.step, loop.index))
            store(build, moved, memory.trial, loop.index, _DOUBLE)
        self._write(individual, memory.trial)
        self._set_line(memory.trial)
        self._evaluate(individual, error, build.select(last, number(0), self.job["most"]))
        found = self._at(memory.state, number(0))
        better = build.fcmp_ordered("<", found, error)
        changed = build.fmul(damping, build.select(better, self.settings["lower"], self.settings["higher"]))
        below = build.fcmp_ordered("<", changed, self.settings["least"])
        above = build.fcmp_ordered(">", changed, self.settings["most"])
        changed = build.select(above, self.settings["most"], changed)
        build.store(build.select(below, self.settings["least"], changed), self.damping)
        with build.if_then(better):
            build.store(found, self.error)
            with counted(build, number(0), unknowns) as loop:
                store(build, self._at(memory.trial, loop.index), memory.unknowns, loop.index, _DOUBLE)
            with build.if_then(build.not_(last)):
                self._scale(scale, individual, unknowns)

    def _if_going(self) -> ir.IRBuilder:
        return self.build.if_then(self.build.icmp_unsigned("!=", self.state["going"], number(0)))

    def _at(self, pointer: ir.Value, index: ir.Value) -> ir.Value:
        return load(self.build, pointer, index, _DOUBLE, _DOUBLE)

    def _row(self, field: str, individual: ir.Value, length: ir.Value, element: ir.Type) -> ir.Value:
        base = self.build.inttoptr(self.job[field], POINTER)
        return element_pointer(self.build, base, self.build.mul(individual, length), element)

    def _line(self, individual: ir.Value) -> ir.Value:
        return self._row("lines", individual, number(2), _DOUBLE)

    def _set_line(self, unknowns: ir.Value) -> None:
        """Slope and intercept for the epilogue, which has the slope first."""
        for position in (0, 1):
            value = self._at(unknowns, number(1 - position))
            store(self.build, value, self.memory.line, number(position), _DOUBLE)

    def _read(self, individual: ir.Value) -> None:
        """The unknowns of an individual, and how many constants it has of those that are fitted."""
        build, memory = self.build, self.memory
        for position in (0, 1):
            value = self._at(self._line(individual), number(1 - position))
            store(build, value, memory.unknowns, number(position), _DOUBLE)
        self._set_line(memory.unknowns)
        self._constants(
            individual,
            lambda value, unknown: store(
                build, load(build, value, number(0), _DOUBLE, _DOUBLE), memory.unknowns, unknown, _DOUBLE
            ),
        )

    def _write(self, individual: ir.Value, unknowns: ir.Value) -> None:
        """Put unknowns in the place of the constants on the tape."""
        self._constants(
            individual,
            lambda value, unknown: store(self.build, self._at(unknowns, unknown), value, number(0), _DOUBLE),
        )

    def _constants(self, individual: ir.Value, each: Callable[[ir.Value, ir.Value], None]) -> None:
        """Emit something for each constant that is fitted, given the address of its value and its unknown."""
        build, job = self.build, self.job
        code_type = ir.IntType(16)
        codes = self._row("codes", individual, job["width"], code_type)
        values = self._row("values", individual, job["width"], _DOUBLE)
        size = load(build, build.inttoptr(job["sizes"], POINTER), individual, I64, I64)
        self.state["count"] = 0
        with counted(build, number(0), size) as node:
            count = self.state["count"]
            is_constant = build.icmp_unsigned("==", load(build, codes, node.index, code_type, code_type), code_type(0))
            fitted = build.and_(is_constant, build.icmp_unsigned("<", count, job["most"]))
            with build.if_then(fitted):
                value = element_pointer(build, values, node.index, _DOUBLE)
                each(value, build.add(count, number(LINE)))
                self.state["count"] = build.add(count, number(1))

    def _evaluate(self, individual: ir.Value, limit: ir.Value, most: ir.Value) -> None:
        build, memory = self.build, self.memory
        stride = self.job["stride"]
        with counted(build, number(0), build.add(build.mul(stride, stride), number(1))) as loop:
            store(build, _ZERO, memory.state, loop.index, _DOUBLE)
        self.evaluate(individual, memory.line, limit, memory.state, most)

    def _scale(self, scale: ir.Function, individual: ir.Value, unknowns: ir.Value) -> None:
        memory = self.memory
        fixed = self._row("fixed", individual, self.job["most"], ir.IntType(8))
        arguments = (memory.state, memory.matrix, memory.gradient, memory.scale, fixed, memory.unknowns)
        self.build.call(scale, [*arguments, unknowns, memory.size, self.job["scaled"]])


def _internal(module: ir.Module, name: str, result: ir.Type, labels: tuple[str, ...], words: int) -> ir.Function:
    """A function of pointers, then of some i64, and of a float64 damping if its last label says so."""
    kinds: list[ir.Type] = [POINTER] * (len(labels) - words) + [I64] * words
    if labels[-1] == "damping":
        kinds[-1] = _DOUBLE
    function = declare(module, name, result, kinds, labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function


def _scale_function(module: ir.Module) -> ir.Function:
    """Internal function: the normal equations, scaled to a diagonal of ones.

    Unknowns that are not to move, have no influence, or one that is not finite, get a row of the unit matrix and
    gradient 0.
    """
    name = "shine.fit.scale"
    if name in module.globals:
        return module.globals[name]
    labels = ("state", "matrix", "gradient", "scale", "fixed", "unknowns", "count", "size", "scaled")
    function = _internal(module, name, ir.VoidType(), labels, words=3)
    state, matrix, gradient, scale, fixed, unknowns, count, size, scaled = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))
    stride = build.add(size, number(1))
    slope = load(build, unknowns, number(1), _DOUBLE, _DOUBLE)

    def influence(unknown: ir.Value) -> ir.Value:
        # The prediction's derivatives count as often as the slope says.
        return build.select(build.icmp_unsigned(">=", unknown, number(LINE)), slope, _ONE)

    def product(row: ir.Value, column: ir.Value) -> ir.Value:
        place = build.add(build.mul(row, stride), column)
        return load(build, state, build.add(place, number(1)), _DOUBLE, _DOUBLE)

    def finite(value: ir.Value) -> ir.Value:
        return build.fcmp_ordered("<", build.call(intrinsic(module, "llvm.fabs", _DOUBLE, 1), [value]), _INFINITY)

    with counted(build, number(0), count) as loop:
        unknown = loop.index
        factor, row = influence(unknown), build.add(unknown, number(1))
        square = build.fmul(build.fmul(product(row, row), factor), factor)
        size_of = build.call(intrinsic(module, "llvm.sqrt", _DOUBLE, 1), [square])
        slant = build.fmul(product(row, number(0)), factor)
        of_line = build.icmp_unsigned("<", unknown, number(LINE))
        place = build.select(of_line, number(0), build.sub(unknown, number(LINE)))
        byte = load(build, fixed, place, ir.IntType(8), ir.IntType(8))
        moves = build.select(
            of_line, build.icmp_unsigned("!=", scaled, number(0)), build.icmp_unsigned("==", byte, byte.type(0))
        )
        usable = build.and_(build.and_(build.fcmp_ordered(">", size_of, _ZERO), finite(size_of)), finite(slant))
        usable = build.and_(usable, moves)
        # A scale of 0 marks what is not usable, until the matrix is written.
        store(build, build.select(usable, size_of, _ZERO), scale, unknown, _DOUBLE)
        store(build, build.select(usable, build.fdiv(slant, size_of), _ZERO), gradient, unknown, _DOUBLE)
    with counted(build, number(0), count) as row, counted(build, number(0), row.index) as column:
        scales = [load(build, scale, each.index, _DOUBLE, _DOUBLE) for each in (row, column)]
        value = product(build.add(row.index, number(1)), build.add(column.index, number(1)))
        value = build.fmul(build.fmul(value, influence(row.index)), influence(column.index))
        value = build.fdiv(value, build.fmul(*scales))
        usable = build.and_(*(build.fcmp_ordered(">", each, _ZERO) for each in scales))
        value = build.select(build.and_(usable, finite(value)), value, _ZERO)
        # Solving reads what is above the diagonal.
        store(build, value, matrix, build.add(build.mul(column.index, size), row.index), _DOUBLE)
    with counted(build, number(0), count) as loop:
        value = load(build, scale, loop.index, _DOUBLE, _DOUBLE)
        value = build.select(build.fcmp_ordered(">", value, _ZERO), value, _ONE)
        store(build, value, scale, loop.index, _DOUBLE)
    build.ret_void()
    return function


def _solve_function(module: ir.Module) -> ir.Function:
    """Internal function: the step that solves the damped equations; returns the fall of the squared error that it
    promises."""
    name = "shine.fit.solve"
    if name in module.globals:
        return module.globals[name]
    labels = ("matrix", "gradient", "scale", "work", "step", "count", "size", "damping")
    function = _internal(module, name, _DOUBLE, labels, words=3)
    matrix, gradient, scale, work, step, count, size, damping = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))

    def at(pointer: ir.Value, index: ir.Value) -> ir.Value:
        return load(build, pointer, index, _DOUBLE, _DOUBLE)

    def cell(row: ir.Value, column: ir.Value) -> ir.Value:
        return build.add(build.mul(row, size), column)

    one_more = build.fadd(_ONE, damping)
    with counted(build, number(0), count) as row:
        store(build, at(gradient, row.index), step, row.index, _DOUBLE)
        store(build, one_more, work, cell(row.index, row.index), _DOUBLE)
        with counted(build, build.add(row.index, number(1)), count) as column:
            place = cell(row.index, column.index)
            store(build, at(matrix, place), work, place, _DOUBLE)
    with counted(build, number(0), count) as pivot:
        own = cell(pivot.index, pivot.index)
        value = at(work, own)
        # Rounding may leave an unknown that depends on those before it without a positive pivot; it stays where it is.
        value = build.select(build.fcmp_ordered(">", value, _ZERO), value, _INFINITY)
        store(build, value, work, own, _DOUBLE)
        known = at(step, pivot.index)
        with counted(build, build.add(pivot.index, number(1)), count) as row:
            factor = build.fdiv(at(work, cell(pivot.index, row.index)), value)
            left = build.fsub(at(step, row.index), build.fmul(factor, known))
            store(build, left, step, row.index, _DOUBLE)
            with counted(build, row.index, count) as column:
                place = cell(row.index, column.index)
                taken = build.fmul(factor, at(work, cell(pivot.index, column.index)))
                store(build, build.fsub(at(work, place), taken), work, place, _DOUBLE)
    with counted(build, number(0), count, carried=[_ZERO]) as back:
        unknown = build.sub(build.sub(count, number(1)), back.index)
        with counted(build, build.add(unknown, number(1)), count, carried=[at(step, unknown)]) as column:
            taken = build.fmul(at(work, cell(unknown, column.index)), at(step, column.index))
            column.results = [build.fsub(column.values[0], taken)]
        value = build.fdiv(column.values[0], at(work, cell(unknown, unknown)))
        store(build, value, step, unknown, _DOUBLE)
        promised = build.fmul(value, build.fadd(at(gradient, unknown), build.fmul(damping, value)))
        back.results = [build.fadd(back.values[0], promised)]
    with counted(build, number(0), count) as loop:
        store(build, build.fdiv(at(step, loop.index), at(scale, loop.index)), step, loop.index, _DOUBLE)
    build.ret(back.values[0])
    return function
