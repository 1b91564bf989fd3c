"""Levenberg-Marquardt (Marquardt 1963) on the constants of each individual, as native code around the gradient machine.

The fit of an individual alternates between two calls until it stops::

    evaluate   the error and the normal equations of the trial, which is written on the tape       (`interpreter`)
    advance    keep the trial if its error is lower, else go back; adapt the damping; solve for a step,
               and write the next trial on the tape -- or stop, and write the best one there        (here)

It stops after a given number of steps, when a step promises too little, or when its goal is out of reach. The function
of `emit_fit` runs this loop to its end, while the individual's rows and instructions are in the cache. Where that would
take too long for one call, or the rows come in several blocks, Python runs the loop: it evaluates all individuals block
by block, then calls the function of `emit_advances` for all of them. Both take the same steps, to the last bit.

The slope and intercept of linear scaling are unknowns like the constants. Losses other than squared errors are fitted
through weights (see `working_residuals`), which are new at every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    Variables,
    counted,
    declare,
    element_pointer,
    intrinsic,
    load,
    number,
    store,
)
from shine.evaluate.gradient.damped_equations import LINE, scale_function, solve_function
from shine.evaluate.gradient.job import FIT_JOB
from shine.evaluate.gradient.normal_equations import FIRST, LAST, LATER
from shine.evaluate.machine.job import Job, job_entry, job_fields
from shine.lang.forms.primitives import CONSTANT

FIRST_DAMPING = 1e-2
"""Damping of the first step; every damping is relative to the diagonal of the normal equations."""

LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e12
"""Limits of the damping: below, it changes no bit of a step; above, no step gets anywhere."""

AFTER_BETTER, AFTER_WORSE = 0.1, 10.0
"""Factors of the damping after a step that lowered the error, and after one that did not."""

LONGEST = 8.0
"""Largest factor of a step."""

HOPE = 8.0
"""A fit ends once its next step would miss the goal even if it removed this many times what it promises. With 8, runs
find as many formulas in as many generations as without goals; with 4, fewer."""

_BYTE, _CODE, _DOUBLE = ir.IntType(8), ir.IntType(16), ir.DoubleType()
_INFINITY, _ZERO, _ONE = (ir.Constant(_DOUBLE, value) for value in (math.inf, 0.0, 1.0))

Evaluate = Callable[[ir.Value, ir.Value, ir.Value, ir.Value, ir.Value, ir.Value], None]
"""Emits the normal equations of an individual: ``evaluate(individual, line, limit, state, most, kind)``."""

_Count = TypeVar("_Count")


@dataclass(frozen=True)
class _Record:
    """The numbers that a fit keeps of an individual between two steps.

    `length` is the factor of the next step. `unknowns` are the best ones so far: intercept, slope, constants. `matrix`,
    `gradient` and `scale` are the scaled normal equations there.
    """

    damping: ir.Value
    length: ir.Value
    unknowns: ir.Value
    gradient: ir.Value
    scale: ir.Value
    matrix: ir.Value

    @staticmethod
    def lengths(one: _Count, unknowns: _Count, square: _Count) -> tuple[_Count, ...]:
        """Numbers of each field."""
        return one, one, unknowns, unknowns, unknowns, square

    @classmethod
    def at(cls, build: ir.IRBuilder, base: ir.Value, lengths: Sequence[ir.Value]) -> Self:
        """The record at an address."""
        return cls(*_pointers(build, base, lengths))


def _state_numbers(unknowns: int) -> int:
    """Numbers of a state: the sum of errors, then the matrix of products of the residual and the unknowns."""
    return 1 + (1 + unknowns) ** 2


def record_numbers(most: int) -> int:
    """Numbers in the record of an individual with up to `most` fitted constants."""
    unknowns = most + LINE
    return sum(_Record.lengths(1, unknowns, unknowns**2))


def fitting_numbers(most: int) -> int:
    """Numbers of memory of one thread: work, step and trial; then a state and a record, for fits within one call."""
    unknowns = most + LINE
    return unknowns**2 + 2 * unknowns + _state_numbers(unknowns) + record_numbers(most)


def emit_fit(build: ir.IRBuilder, pointer: ir.Value, evaluate: Evaluate, advance: ir.Function) -> None:
    """Emit the whole fit of each individual of the job at a pointer; its words are `FIT_JOB`."""
    job = job_fields(build, pointer, FIT_JOB)
    sizes = _Sizes.of(build, job)
    state = element_pointer(build, build.inttoptr(job["fitting"], POINTER), sizes.scratch, _DOUBLE)
    record = element_pointer(build, state, sizes.state, _DOUBLE)
    evaluations = build.add(job["steps"], number(1))
    with (
        counted(build, job["first"], job["last"]) as each,
        counted(build, number(0), evaluations) as step,
        _if_going(build, job, each.index),
    ):
        last = build.icmp_unsigned("==", step.index, job["steps"])
        with counted(build, number(0), sizes.state) as loop:
            store(build, _ZERO, state, loop.index, _DOUBLE)
        line = job_entry(build, job, "lines", each.index, 16)
        limit = load(build, job_entry(build, job, "errors", each.index, 8), number(0), _DOUBLE, _DOUBLE)
        # No step follows the last trial: only its error is measured.
        first = build.icmp_unsigned("==", step.index, number(0))
        kind = build.select(first, number(FIRST), build.select(last, number(LAST), number(LATER)))
        evaluate(each.index, line, limit, state, build.select(last, number(0), job["most"]), kind)
        build.call(advance, [pointer, each.index, state, record, build.zext(last, I64)])


def emit_advances(build: ir.IRBuilder, pointer: ir.Value, advance: ir.Function) -> None:
    """Emit one `advance` of each individual of a job; the states are the results at ``out``."""
    job = job_fields(build, pointer, FIT_JOB)
    sizes = _Sizes.of(build, job)
    last = build.zext(build.icmp_unsigned("==", job["steps"], number(0)), I64)
    with counted(build, job["first"], job["last"]) as each, _if_going(build, job, each.index):
        state = job_entry(build, job, "out", each.index, build.mul(sizes.state, number(8)))
        record = job_entry(build, job, "records", each.index, build.mul(sizes.record, number(8)))
        build.call(advance, [pointer, each.index, state, record, last])


def _if_going(build: ir.IRBuilder, job: Job, individual: ir.Value) -> ir.IRBuilder:
    going = load(build, job_entry(build, job, "going", individual, 8), number(0), I64, I64)
    return build.if_then(build.icmp_unsigned("!=", going, number(0)))


@dataclass(frozen=True)
class _Sizes:
    """Numbers of a state, of a record, and of the memory of a thread before its own state."""

    unknowns: ir.Value
    state: ir.Value
    record: ir.Value
    scratch: ir.Value

    @classmethod
    def of(cls, build: ir.IRBuilder, job: Job) -> Self:
        """The sizes for the constants that a job fits."""
        unknowns = build.add(job["most"], number(LINE))
        square = build.mul(unknowns, unknowns)
        row = build.add(unknowns, number(1))
        state = build.add(build.mul(row, row), number(1))
        record = number(0)
        for length in _Record.lengths(number(1), unknowns, square):
            record = build.add(record, length)
        return cls(unknowns, state, record, build.add(square, build.mul(unknowns, number(2))))


def advance_function(module: ir.Module) -> ir.Function:
    """Emit the internal function ``advance(job, individual, state, record, last)``.

    It takes the individual from one trial to the next, or stops its fit. `state` holds the results of evaluating the
    trial; its matrix is not read if this is the `last` trial.
    """
    labels = ("job", "individual", "state", "record", "last")
    function = declare(module, "shine.fit.advance", ir.VoidType(), [POINTER, I64, POINTER, POINTER, I64], labels)
    function.linkage = "internal"
    function.attributes.add("noinline")
    _Advance(function).emit()
    return function


class _Advance:
    """The instructions of `advance_function`."""

    def __init__(self, function: ir.Function) -> None:
        self.scale, self.solve = scale_function(function.module), solve_function(function.module)
        self.build = build = ir.IRBuilder(function.append_basic_block("entry"))
        pointer, individual, self.state, record, last = function.args
        self.individual = individual
        self.job = job = job_fields(build, pointer, FIT_JOB)
        self.size = size = build.add(job["most"], number(LINE))
        square = build.mul(size, size)
        self.record = _Record.at(build, record, _Record.lengths(number(1), size, square))
        self.work, self.step, self.trial = _pointers(
            build, build.inttoptr(job["fitting"], POINTER), (square, size, size)
        )
        self.line = job_entry(build, job, "lines", individual, 16)
        self.errors, self.going, self.goal = (
            job_entry(build, job, name, individual, 8) for name in ("errors", "going", "goals")
        )
        self.not_last = build.icmp_unsigned("==", last, number(0))
        self.counts = Variables(build, constants=0)

    def emit(self) -> None:
        build = self.build
        unknowns = self._read_trial()
        best, found = self._at(self.errors, 0), self._at(self.state, 0)
        first = build.fcmp_ordered("==", best, _INFINITY)
        # A loss without a least error must not run away to minus infinity.
        better = build.and_(
            build.fcmp_ordered("<", found, best), build.fcmp_ordered(">", found, ir.Constant(_DOUBLE, -math.inf))
        )
        store(build, _ONE, self.record.length, number(0), _DOUBLE)
        reweighted = build.icmp_unsigned("!=", self.job["reweighted"], number(0))
        with build.if_then(build.and_(build.and_(reweighted, self.not_last), build.and_(better, build.not_(first)))):
            self._lengthen(unknowns)
        with build.if_then(build.or_(first, better)):
            self._copy(self.trial, self.record.unknowns, unknowns)
        with build.if_then(first):
            store(build, build.fmul(found, self._at(self.goal, 0)), self.goal, number(0), _DOUBLE)
        self._damp(first, better)
        with build.if_then(better):
            store(build, found, self.errors, number(0), _DOUBLE)
            with build.if_then(self.not_last):
                fixed = job_entry(build, self.job, "fixed", self.individual, self.job["most"])
                equations = (self.record.matrix, self.record.gradient, self.record.scale)
                arguments = (self.state, *equations, fixed, self.record.unknowns, unknowns, self.size)
                build.call(self.scale, [*arguments, self.job["scaled"]])
        error = build.call(intrinsic(build.module, "llvm.fabs", _DOUBLE, 1), [self._at(self.errors, 0)])
        store(build, number(0), self.going, number(0), I64)
        fittable = build.and_(build.fcmp_ordered(">", error, _ZERO), build.fcmp_ordered("<", error, _INFINITY))
        with build.if_then(build.and_(fittable, self.not_last)):
            self._try(unknowns, error)
        stopped = build.icmp_unsigned("==", load(build, self.going, number(0), I64, I64), number(0))
        with build.if_then(stopped):
            self._write(self.record.unknowns)
        build.ret_void()

    def _lengthen(self, unknowns: ir.Value) -> None:
        """Set the factor of the next step: the right one for the step to this trial, in hindsight.

        Weights stand for curvatures that may be too large, as for errors with a kink. The slope of the error along the
        step, before and after it, shows by how much.
        """
        build, record = self.build, self.record
        stride = build.add(self.size, number(1))
        slope = self._at(self.trial, 1)
        with counted(build, number(0), unknowns, carried=[_ZERO, _ZERO, _ZERO]) as row:
            move, scale = self._move(row.index), self._at(record.scale, row.index)
            scaled = build.fmul(move, scale)
            before = build.fmul(self._at(record.gradient, row.index), scaled)
            # The state has derivatives of the prediction; those of the model are slope times as large.
            influence = build.select(build.icmp_unsigned(">=", row.index, number(LINE)), slope, _ONE)
            place = build.add(build.mul(build.add(row.index, number(1)), stride), number(1))
            after = build.fmul(build.fmul(self._at(self.state, place), influence), move)
            after = build.select(build.fcmp_ordered("==", move, _ZERO), _ZERO, after)
            with counted(build, build.add(row.index, number(1)), unknowns, carried=[scaled]) as column:
                other = build.fmul(self._move(column.index), self._at(record.scale, column.index))
                entry = self._at(record.matrix, build.add(build.mul(row.index, self.size), column.index))
                twice = build.fmul(build.fmul(entry, other), ir.Constant(_DOUBLE, 2.0))
                column.results = [build.fadd(column.values[0], twice)]
            terms = before, after, build.fmul(scaled, column.values[0])
            row.results = [build.fadd(total, term) for total, term in zip(row.values, terms, strict=True)]
        before, after, bending = row.values
        right = build.fdiv(bending, build.fsub(before, after))
        longest = ir.Constant(_DOUBLE, LONGEST)
        right = build.select(build.fcmp_ordered(">", right, _ONE), right, _ONE)
        right = build.select(build.fcmp_ordered("<", right, longest), right, longest)
        store(build, right, record.length, number(0), _DOUBLE)

    def _move(self, unknown: ir.Value) -> ir.Value:
        """Distance of an unknown of the trial from the best one."""
        return self.build.fsub(self._at(self.trial, unknown), self._at(self.record.unknowns, unknown))

    def _damp(self, first: ir.Value, better: ir.Value) -> None:
        """Set the damping of the next step."""
        build, before = self.build, self._at(self.record.damping, 0)
        lower, higher, start, least, most = (
            ir.Constant(_DOUBLE, value)
            for value in (AFTER_BETTER, AFTER_WORSE, FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING)
        )
        changed = build.fmul(before, build.select(better, lower, higher))
        changed = build.select(build.fcmp_ordered(">", changed, most), most, changed)
        changed = build.select(build.fcmp_ordered("<", changed, least), least, changed)
        store(build, build.select(first, start, changed), self.record.damping, number(0), _DOUBLE)

    def _try(self, unknowns: ir.Value, error: ir.Value) -> None:
        """Write the next trial on the tape if the step to it promises enough."""
        build, record = self.build, self.record
        arguments = (record.matrix, record.gradient, record.scale, self.work, self.step, unknowns, self.size)
        promise = build.call(self.solve, [*arguments, self._at(record.damping, 0)])
        tolerance = self._at(build.inttoptr(self.job["tolerance"], POINTER), 0)
        enough = build.fcmp_ordered(">", promise, build.fmul(tolerance, error))
        hoped_for = build.fsub(error, build.fmul(promise, ir.Constant(_DOUBLE, HOPE)))
        # A goal that is NaN is none.
        in_reach = build.fcmp_unordered("<=", hoped_for, self._at(self.goal, 0))
        with build.if_then(build.and_(enough, in_reach)):
            store(build, number(1), self.going, number(0), I64)
            with counted(build, number(0), unknowns) as loop:
                step = build.fmul(self._at(record.length, 0), self._at(self.step, loop.index))
                moved = build.fadd(self._at(record.unknowns, loop.index), step)
                store(build, moved, self.trial, loop.index, _DOUBLE)
            self._write(self.trial)

    def _at(self, pointer: ir.Value, index: ir.Value | int) -> ir.Value:
        return load(self.build, pointer, number(index), _DOUBLE, _DOUBLE)

    def _copy(self, source: ir.Value, target: ir.Value, count: ir.Value) -> None:
        with counted(self.build, number(0), count) as loop:
            store(self.build, self._at(source, loop.index), target, loop.index, _DOUBLE)

    # The line has the slope first, the unknowns have the intercept first.

    def _read_trial(self) -> ir.Value:
        """Read the trial from the line and the tape; return its number of unknowns."""
        build = self.build
        for position in (0, 1):
            store(build, self._at(self.line, 1 - position), self.trial, number(position), _DOUBLE)
        self._each_constant(lambda value, unknown: store(build, self._at(value, 0), self.trial, unknown, _DOUBLE))
        return build.add(self.counts["constants"], number(LINE))

    def _write(self, unknowns: ir.Value) -> None:
        """Write unknowns to the line and the tape."""
        build = self.build
        for position in (0, 1):
            store(build, self._at(unknowns, position), self.line, number(1 - position), _DOUBLE)
        self._each_constant(lambda value, unknown: store(build, self._at(unknowns, unknown), value, number(0), _DOUBLE))

    def _each_constant(self, emit: Callable[[ir.Value, ir.Value], None]) -> None:
        """Emit something for each fitted constant, given the address of its value and its position in the unknowns."""
        build, job, individual = self.build, self.job, self.individual
        row = build.mul(individual, job["width"])
        codes, values = job_entry(build, job, "codes", row, 2), job_entry(build, job, "values", row, 8)
        size = load(build, job_entry(build, job, "sizes", individual, 8), number(0), I64, I64)
        self.counts["constants"] = 0
        with counted(build, number(0), size) as node:
            count = self.counts["constants"]
            is_constant = build.icmp_unsigned("==", load(build, codes, node.index, _CODE, _CODE), _CODE(CONSTANT))
            fitted = build.and_(is_constant, build.icmp_unsigned("<", count, job["most"]))
            with build.if_then(fitted):
                emit(element_pointer(build, values, node.index, _DOUBLE), build.add(count, number(LINE)))
                self.counts["constants"] = build.add(count, number(1))


def _pointers(build: ir.IRBuilder, base: ir.Value, lengths: Sequence[ir.Value]) -> list[ir.Value]:
    """Addresses of arrays of numbers that follow each other."""
    found, here = [], number(0)
    for length in lengths:
        found.append(element_pointer(build, base, here, _DOUBLE))
        here = build.add(here, length)
    return found
