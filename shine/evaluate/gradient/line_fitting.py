"""Lines ``intercept + slope * prediction`` of least loss, as native code over the predictions of a few rows.

Each line is fitted by Newton's method on the sums of `working`, from the better of two lines: that of least squares,
and a step from the best constant, whose derivatives are the same for all individuals. Each step shows how long it
should have been, and the next one becomes so long: curvatures that are too large, as for errors with a kink, slow a fit
down little. A start that is hardly better than the constant is not improved: most individuals of a population are no
better. Predictions are centred, so that slope and intercept hardly depend on each other. Simpler lines start from the
fitted line: the nearest one of their form.
"""

from __future__ import annotations

import math
from functools import lru_cache

from llvmlite import ir

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    Variables,
    broadcast,
    counted,
    declare,
    horizontal_sum,
    intrinsic,
    load,
    number,
    stack,
    store,
)
from shine.compiler.codegen.moments import LANES, LINE_FIELDS, LINE_FORMS, lanes, prediction_lanes
from shine.compiler.codegen.numbers import Functions, Numbers, splat
from shine.evaluate.gradient.line_sums import DATA, SUMS, WEIGH, evaluate_function, weigh_function
from shine.evaluate.losses.form import RowLoss
from shine.evaluate.losses.row_errors import Table, variant_of
from shine.evaluate.machine.job import job_fields
from shine.lang.forms.tree import Primitive

FIT_LINES = "fit_lines"
LINES_NAMES = (FIT_LINES, WEIGH)
"""Names of the functions that `lines_module` defines."""

FACTS = ("weight", "target", "middle", "bend", "constant", "least_gain", "promising", "tolerance")
"""Numbers that all fits share: the sum of the weights; the target's mean; the best constant, the sum of its curvatures
and its sum of errors above the least; how much lower a start must be to be improved; the multiple of the error of the
fitted line up to which simpler lines are worth fitting; the share of the error that a step must promise to remove."""

_SHORTEST, _LONGEST = 0.5, 8.0
"""Lengths of a step after one that lowered the error, as multiples of Newton's."""

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = number(0)
_EPSILON = 2.0**-52


def lines_module(function: Primitive, least: float | None, numbers: Numbers) -> ir.Module:
    """A module with ``void fit_lines(predictions, data, found)`` and ``void weigh(line, data)``.

    Parameters
    ----------
    function : Primitive
        ``(prediction, target, *columns) -> error``, with a definition.
    least : float, optional
        Lower bound of the errors.
    numbers : Numbers
        Type of the predictions.

    Notes
    -----
    `data` has the words of `DATA`; `found` gets `LINE_FIELDS` of each of `LINE_FORMS`. An error is inf or NaN where it
    is not finite, and inf for lines that are not worth measuring. `weigh` writes the weighted curvature and pull of
    each row for predictions of 0.
    """
    module = ir.Module(name="lines")
    evaluate = evaluate_function(module, function, least, numbers)
    fit = declare(module, FIT_LINES, ir.VoidType(), [POINTER] * 3, ["predictions", "data", "found"])
    build = ir.IRBuilder(fit.append_basic_block("entry"))
    predictions, data, found = fit.args
    _LineFit(build, evaluate, predictions, data, numbers).emit(found)
    build.ret_void()
    weigh_function(module, function, least)
    return module


class _LineFit:
    """The instructions that fit the lines of one individual."""

    def __init__(
        self,
        build: ir.IRBuilder,
        evaluate: ir.Function,
        predictions: ir.Value,
        data: ir.Value,
        numbers: Numbers,
    ) -> None:
        self.build, self.evaluate, self.numbers = build, evaluate, numbers
        self.predictions, self.data, self.words = predictions, data, job_fields(build, data, DATA)
        facts = build.inttoptr(self.words["facts"], POINTER)
        self.facts = {name: _at(build, facts, position) for position, name in enumerate(FACTS)}
        self.line, self.trial = (stack(build, _DOUBLE, 2) for _ in range(2))
        self.sums, self.found = (stack(build, _DOUBLE, len(SUMS)) for _ in range(2))
        self.length, self.state = stack(build, _DOUBLE, 1), stack(build, _DOUBLE, LANES)
        self.wanted = Variables(build, going=0)

    def emit(self, out: ir.Value) -> None:
        """Fit a line of each form, the best one first."""
        build, constant = self.build, self.facts["constant"]
        promise = self._start()
        least = _at(build, self.sums, 0)
        for form in LINE_FORMS:
            self._write(out, form, least if form == "both" else _number(math.inf))
        gain = build.fsub(constant, least)
        gain = build.select(build.fcmp_ordered(">", promise, gain), promise, gain)
        with build.if_then(build.fcmp_ordered(">", gain, self.facts["least_gain"])):
            self._evaluate(self.line, self.sums)
            self._fit("both")
            self._write(out, "both", _at(build, self.sums, 0))
            fitted = [_at(build, self.line, 0), _at(build, self.line, 1), *(_at(build, self.sums, i) for i in range(4))]
            for form in ("slope", "intercept", "none"):
                self._fit_simpler(out, form, fitted)

    def _start(self) -> ir.Value:
        """Find the best line to start from; return the promise of the step from the constant."""
        build, facts = self.build, self.facts
        slope, step, mean, promise = self._slopes()
        self._set(_number(0.0), facts["middle"])
        store(build, facts["constant"], self.sums, _ZERO, _DOUBLE)
        candidates = (
            (slope, build.fsub(facts["target"], build.fmul(slope, self.centre))),
            (step, build.fsub(facts["middle"], build.fmul(step, mean))),
        )
        for line in candidates:
            for position, value in enumerate(line):
                store(build, value, self.trial, number(position), _DOUBLE)
            error = self._error(self.trial)
            better = build.fcmp_ordered("<", error, _at(build, self.sums, 0))
            with build.if_then(better):
                self._set(*line)
                store(build, error, self.sums, _ZERO, _DOUBLE)
        return promise

    def _error(self, line: ir.Value) -> ir.Value:
        """The sum of errors of a line."""
        build, words = self.build, self.words
        target, weights, table, loss_columns = (
            build.inttoptr(words[name], POINTER) for name in ("target", "weights", "errors", "loss_columns")
        )
        store(build, splat(_VECTOR, 0.0), self.state, _ZERO, _DOUBLE)
        add = variant_of(build, table, words["weighted"], number(1))
        build.call(add, [self.predictions, target, weights, words["rows"], line, loss_columns, _ZERO, self.state])
        return horizontal_sum(build, lanes(build, self.state, _ZERO))

    def _slopes(self) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
        """The slope of least squares; the slope of a step from the best constant, the prediction around which the line
        turns, and what the step promises. All are 0 for a prediction that varies by no more than rounding."""
        build, facts = self.build, self.facts
        target, weights, curvatures, pulls = (
            build.inttoptr(self.words[name], POINTER) for name in ("target", "weights", "curvatures", "pulls")
        )
        # Deviations from any prediction of the row serve as well as those from the mean.
        middle = build.extract_element(
            prediction_lanes(build, self.predictions, _ZERO, self.numbers), ir.Constant(ir.IntType(32), 0)
        )
        middles, mean = broadcast(build, middle, _VECTOR), broadcast(build, facts["target"], _VECTOR)
        with counted(build, _ZERO, self.words["rows"], LANES, [splat(_VECTOR, 0.0)] * 6) as loop:
            value = build.fsub(prediction_lanes(build, self.predictions, loop.index, self.numbers), middles)
            other = build.fsub(lanes(build, target, loop.index), mean)
            weighed, bent = (build.fmul(lanes(build, each, loop.index), value) for each in (weights, curvatures))
            pulled = build.fmul(lanes(build, pulls, loop.index), value)
            terms = (
                weighed,
                build.fmul(weighed, value),
                build.fmul(weighed, other),
                bent,
                build.fmul(bent, value),
                pulled,
            )
            loop.results = [build.fadd(total, term) for total, term in zip(loop.values, terms, strict=True)]
        value, square, product, bent, along, pulled = (horizontal_sum(build, total) for total in loop.values)
        shift = build.fdiv(value, facts["weight"])
        self.centre = build.fadd(middle, shift)
        self.square = build.fsub(square, build.fmul(shift, value))
        enough = build.fmul(build.fmul(self.centre, self.centre), _number((64 * _EPSILON) ** 2))
        varies = build.fcmp_ordered(">", self.square, build.fmul(facts["weight"], enough))
        turn = _ratio(build, bent, facts["bend"])
        step = _ratio(build, pulled, build.fsub(along, build.fmul(turn, bent)))
        slope = build.fdiv(product, self.square)
        slope, step = (build.select(varies, each, _number(0.0)) for each in (slope, step))
        return slope, step, build.fadd(middle, turn), build.fmul(step, pulled)

    def _fit_simpler(self, out: ir.Value, form: str, fitted: list[ir.Value]) -> None:
        """Fit a line of a simpler form, if it can come near the fitted one, whose line and sums are known."""
        build, constant = self.build, self.facts["constant"]
        slope, intercept, error, weight, value, square = fitted
        # Errors of unknown sign have no multiples; the constant's error is the yardstick.
        times = build.fmul(error, self.facts["promising"])
        share = build.fadd(error, build.fdiv(build.fsub(constant, error), self.facts["promising"]))
        most = build.select(build.fcmp_ordered(">=", error, _number(0.0)), times, share)
        # Largest difference of equal errors of lines, as a share of the constant's error.
        most = build.fadd(most, build.fmul(build.call(_size(build), [constant]), _number(1e-9)))
        most = build.select(build.fcmp_ordered("<", most, constant), most, constant)
        start = self._nearest(form, slope, intercept)
        turned = build.fsub(start[0], slope)
        moved = build.fadd(build.fsub(start[1], intercept), build.fmul(turned, self.centre))
        # Growth of the error on the way there, to the second order.
        both = build.fmul(build.fmul(moved, turned), build.fadd(value, value))
        growth = build.fadd(
            build.fmul(build.fmul(moved, moved), weight), build.fmul(build.fmul(turned, turned), square)
        )
        # A line no better than the constant is no use.
        with build.if_then(build.fcmp_ordered("<", build.fadd(error, build.fadd(growth, both)), most)):
            self._set(*start)
            self._evaluate(self.line, self.sums)
            if form != "none":
                self._fit(form)
            self._write(out, form, _at(build, self.sums, 0))

    def _nearest(self, form: str, slope: ir.Value, intercept: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Slope and intercept of the line of a simpler form that is nearest to a line."""
        build = self.build
        if form == "none":
            return _number(1.0), _number(0.0)
        if form == "intercept":
            return _number(1.0), build.fadd(intercept, build.fmul(build.fsub(slope, _number(1.0)), self.centre))
        whole = build.fadd(build.fmul(self.centre, self.centre), build.fdiv(self.square, self.facts["weight"]))
        return build.fadd(slope, build.fdiv(build.fmul(intercept, self.centre), whole)), _number(0.0)

    def _set(self, slope: ir.Value, intercept: ir.Value) -> None:
        for position, value in enumerate((slope, intercept)):
            store(self.build, value, self.line, number(position), _DOUBLE)

    def _evaluate(self, line: ir.Value, sums: ir.Value) -> None:
        self.build.call(self.evaluate, [self.predictions, self.centre, line, sums, self.data])

    def _fit(self, form: str) -> None:
        """Improve the line, whose sums are known."""
        build = self.build
        self.wanted["going"] = 1
        store(build, _number(1.0), self.length, _ZERO, _DOUBLE)
        with (
            counted(build, _ZERO, self.words["steps"]),
            build.if_then(build.icmp_unsigned("!=", self.wanted["going"], _ZERO)),
        ):
            slope, intercept, promise = self._step(form)
            error, length = _at(build, self.sums, 0), _at(build, self.length, 0)
            size = build.call(_size(build), [error])
            going = build.fcmp_ordered(">", build.fmul(promise, length), build.fmul(self.facts["tolerance"], size))
            self.wanted["going"] = build.zext(going, I64)
            with build.if_then(going):
                moved = (
                    build.fadd(_at(build, self.line, 0), build.fmul(length, slope)),
                    build.fadd(_at(build, self.line, 1), build.fmul(length, intercept)),
                )
                for position, value in enumerate(moved):
                    store(build, value, self.trial, number(position), _DOUBLE)
                self._evaluate(self.trial, self.found)
                new = _at(build, self.found, 0)
                better = build.and_(
                    build.fcmp_ordered("<", new, error), build.fcmp_ordered(">", new, _number(-math.inf))
                )
                store(build, self._next_length(better, slope, intercept, promise), self.length, _ZERO, _DOUBLE)
                with build.if_then(better):
                    for position in range(2):
                        store(build, _at(build, self.trial, position), self.line, number(position), _DOUBLE)
                    for position in range(len(SUMS)):
                        store(build, _at(build, self.found, position), self.sums, number(position), _DOUBLE)

    def _next_length(self, better: ir.Value, slope: ir.Value, intercept: ir.Value, promise: ir.Value) -> ir.Value:
        """The length of the next step, as a multiple of Newton's: what would have been right for this one, by the slope
        of the error along it before and after."""
        build, length = self.build, _at(self.build, self.length, 0)
        moved = build.fadd(intercept, build.fmul(slope, self.centre))
        pull, product = (_at(build, self.found, SUMS.index(name)) for name in ("pull", "product"))
        after = build.fadd(build.fmul(slope, product), build.fmul(moved, pull))
        right = build.fdiv(build.fmul(length, promise), build.fsub(promise, after))
        # An error that falls ever more steeply has no right length.
        right = build.select(build.fcmp_ordered(">", right, _number(0.0)), right, _number(_LONGEST))
        right = _between(build, right, _number(_SHORTEST), _number(_LONGEST))
        # Largest factor of the next step after one that did not lower the error.
        shorter = _between(build, right, build.fmul(length, _number(0.1)), build.fmul(length, _number(0.5)))
        return build.select(better, right, shorter)

    def _step(self, form: str) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Newton's step of slope and intercept, and the error that it promises to remove."""
        build = self.build
        _, weight, value, square, pull, product = (_at(build, self.sums, i) for i in range(len(SUMS)))
        centre, zero = self.centre, _number(0.0)
        if form == "intercept":
            shift = _ratio(build, pull, weight)
            return zero, shift, build.fmul(shift, pull)
        if form == "slope":
            # Sums of the predictions themselves, from those of the centred ones.
            twice = build.fmul(build.fadd(centre, centre), value)
            whole = build.fadd(build.fadd(square, twice), build.fmul(build.fmul(centre, centre), weight))
            along = build.fadd(product, build.fmul(centre, pull))
            slope = _ratio(build, along, whole)
            return slope, zero, build.fmul(slope, along)
        mean = _ratio(build, value, weight)
        own = build.fsub(square, build.fmul(mean, value))
        slope = _ratio(build, build.fsub(product, build.fmul(mean, pull)), own)
        shift = build.fsub(_ratio(build, pull, weight), build.fmul(slope, mean))
        promise = build.fadd(build.fmul(shift, pull), build.fmul(slope, product))
        return slope, build.fsub(shift, build.fmul(slope, centre)), promise

    def _write(self, out: ir.Value, form: str, error: ir.Value) -> None:
        build, place = self.build, len(LINE_FIELDS) * LINE_FORMS.index(form)
        for position, value in enumerate((_at(build, self.line, 0), _at(build, self.line, 1), error)):
            store(build, value, out, number(place + position), _DOUBLE)


def _between(build: ir.IRBuilder, value: ir.Value, least: ir.Value, most: ir.Value) -> ir.Value:
    value = build.select(build.fcmp_ordered(">", value, least), value, least)
    return build.select(build.fcmp_ordered("<", value, most), value, most)


def _ratio(build: ir.IRBuilder, value: ir.Value, divisor: ir.Value) -> ir.Value:
    """The quotient of two numbers; 0 if the divisor is not positive."""
    return build.select(build.fcmp_ordered(">", divisor, _number(0.0)), build.fdiv(value, divisor), _number(0.0))


def _number(value: float) -> ir.Constant:
    return ir.Constant(_DOUBLE, value)


def _at(build: ir.IRBuilder, pointer: ir.Value, index: int) -> ir.Value:
    return load(build, pointer, number(index), _DOUBLE, _DOUBLE)


def _size(build: ir.IRBuilder) -> ir.Function:
    return intrinsic(build.module, "llvm.fabs", _DOUBLE, 1)


def lines_code(kind: RowLoss, dtype: str) -> Table:
    """The functions that fit lines to predictions of a number type, in the order of `LINES_NAMES`."""
    return _lines_code(Functions.of((kind.function,)), kind.least, dtype)


@lru_cache(maxsize=64)
def _lines_code(function: Functions, least: float | None, dtype: str) -> Table:
    return Table(
        list(LINES_NAMES),
        ("lines", dtype, repr(least), *function.meaning),
        lambda: lines_module(function.functions[0], least, Numbers(dtype)),
    )
