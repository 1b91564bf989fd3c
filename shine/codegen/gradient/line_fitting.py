"""Lines ``intercept + slope * prediction`` of least loss, as native code over the predictions of a few rows.

Each line is fitted by Newton's method on the sums of `working_residuals`, from the line of least squares. Each step
shows how long it should have been, and the next one becomes so long: curvatures that are too large, as for errors with
a kink, slow a fit down little. Predictions are centred, so that slope and intercept hardly depend on each other.
Simpler lines start from the fitted line: the nearest one of their form.
"""

from __future__ import annotations

import math

from llvmlite import ir

from shine.codegen.blocks import (
    I64,
    POINTER,
    Variables,
    broadcast,
    counted,
    declare,
    element_pointer,
    horizontal_sum,
    intrinsic,
    load,
    number,
    stack,
    store,
)
from shine.codegen.gradient.working_residuals import SCALES, Derivatives, working
from shine.codegen.losses.row_errors import RowRule, line_lanes
from shine.codegen.moments import LANES, lanes, prediction_lanes
from shine.codegen.numbers import Numbers, splat
from shine.lang.tree import Primitive

LINES = "lines"
"""Name of the function that `lines_module` defines."""

FORMS = ("none", "intercept", "slope", "both")
"""Forms of lines, the simplest first: what is fitted of slope and intercept, which else are 1 and 0."""

FOUND = ("slope", "intercept", "error")
"""Numbers of a fitted line; the error is the weighted sum over the rows, above the least one."""

FACTS = ("weight", "target", "constant", "promising", "tolerance")
"""Numbers that all fits share: the sum of the weights; the target's mean, and its sum of errors above the least; the
multiple of the error of the fitted line up to which simpler lines are worth fitting; the share of the error that a step
must promise to remove."""

_SUMS = ("error", "weight", "value", "square", "residual", "product")
"""Weighted sums at a line: errors; then 1, c, c*c, r and c*r with the centred predictions c and the working residuals
r, by their weights."""

_SHORTER = 0.5
"""Largest factor of the next step after one that did not lower the error."""

_SHORTEST, _LONGEST = 0.5, 8.0
"""Lengths of a step after one that lowered the error, as multiples of Newton's."""

_ROUNDING = 1e-9
"""Share of the constant's error up to which errors of lines count as equal."""

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = number(0)
_EPSILON = 2.0**-52


def lines_module(function: Primitive, least: float | None, numbers: Numbers) -> ir.Module:
    """A module with ``void lines(predictions, count, rows, target, weights, beside, scales, facts, steps, out)``.

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
    `predictions` has `rows` numbers for each of `count` individuals, a multiple of `LANES`; padding rows have weight 0.
    `out` gets `FOUND` of each of `FORMS` for each individual. An error is inf or NaN where it is not finite, and inf
    for lines that are not worth fitting. `steps` is the most evaluations of a form.
    """
    module = ir.Module(name="lines")
    evaluate = _evaluate_function(module, function, least, numbers)
    labels = ("predictions", "count", "rows", "target", "weights", "beside", "scales", "facts", "steps", "out")
    kinds = [I64 if label in ("count", "rows", "steps") else POINTER for label in labels]
    emitted = declare(module, LINES, ir.VoidType(), kinds, labels)
    predictions, count, rows, target, weights, beside, scales, facts, steps, out = emitted.args
    build = ir.IRBuilder(emitted.append_basic_block("entry"))
    fit = _LineFit(build, evaluate, [rows, target, weights, beside, scales], facts, steps)
    with counted(build, _ZERO, count) as each:
        own = element_pointer(build, predictions, build.mul(each.index, rows), numbers.element)
        found = element_pointer(build, out, build.mul(each.index, number(len(FORMS) * len(FOUND))), _DOUBLE)
        fit.emit(own, found, numbers)
    build.ret_void()
    return module


def _evaluate_function(module: ir.Module, function: Primitive, least: float | None, numbers: Numbers) -> ir.Function:
    """Internal function ``evaluate(predictions, centre, line, sums, rows, target, weights, beside, scales)``, which
    writes `_SUMS` at a line; predictions are centred at the number `centre`."""
    labels = ("predictions", "centre", "line", "sums", "rows", "target", "weights", "beside", "scales")
    kinds = [I64 if label == "rows" else _DOUBLE if label == "centre" else POINTER for label in labels]
    emitted = declare(module, "shine.lines.evaluate", ir.VoidType(), kinds, labels)
    emitted.linkage = "internal"
    emitted.attributes.add("noinline")
    predictions, centre, line, sums, rows, target, weights, beside, scales = emitted.args
    build = ir.IRBuilder(emitted.append_basic_block("entry"))
    rule, derivatives = RowRule(build, function, beside, _ZERO), Derivatives.of(function)
    slope, intercept = line_lanes(build, line)
    lengths = [broadcast(build, _at(build, scales, i), _VECTOR) for i in range(len(SCALES))]
    middle = broadcast(build, centre, _VECTOR)
    with counted(build, _ZERO, rows, LANES, [splat(_VECTOR, 0.0)] * len(_SUMS)) as loop:
        value = prediction_lanes(build, predictions, loop.index, numbers)
        model = build.fadd(intercept, build.fmul(slope, value))
        arguments = rule.arguments(model, target, loop.index)
        error = rule.error(model, arguments, least)
        residual, weight = working(build, rule, derivatives, error, arguments, lengths, least is not None)
        own = lanes(build, weights, loop.index)
        weight, centred = build.fmul(own, weight), build.fsub(value, middle)
        along, left = build.fmul(weight, centred), build.fmul(weight, residual)
        terms = (
            build.fmul(own, error), weight, along, build.fmul(along, centred), left, build.fmul(left, centred),
        )  # fmt: skip
        loop.results = [build.fadd(total, term) for total, term in zip(loop.values, terms, strict=True)]
    for position, total in enumerate(loop.values):
        store(build, horizontal_sum(build, total), sums, number(position), _DOUBLE)
    build.ret_void()
    return emitted


class _LineFit:
    """The instructions that fit the lines of one individual.

    Parameters
    ----------
    build : ir.IRBuilder
    evaluate : ir.Function
    data : list of ir.Value
        Its last arguments: rows, target, weights, beside, scales.
    facts, steps : ir.Value
    """

    def __init__(
        self, build: ir.IRBuilder, evaluate: ir.Function, data: list[ir.Value], facts: ir.Value, steps: ir.Value
    ) -> None:
        self.build, self.evaluate, self.data, self.steps = build, evaluate, data, steps
        self.weight, self.mean, self.constant, self.promising, self.tolerance = (
            _at(build, facts, position) for position in range(len(FACTS))
        )
        self.line, self.trial = (stack(build, _DOUBLE, 2) for _ in range(2))
        self.sums, self.found = (stack(build, _DOUBLE, len(_SUMS)) for _ in range(2))
        self.length = stack(build, _DOUBLE, 1)
        self.wanted = Variables(build, going=0)

    def emit(self, predictions: ir.Value, out: ir.Value, numbers: Numbers) -> None:
        """Fit a line of each form, the best one first."""
        build = self.build
        self.predictions = predictions
        self.centre, self.square, product = self._moments(numbers)
        enough = build.fmul(build.fmul(self.centre, self.centre), _number((64 * _EPSILON) ** 2))
        varies = build.fcmp_ordered(">", self.square, build.fmul(self.weight, enough))
        slope = build.select(varies, build.fdiv(product, self.square), _number(0.0))
        self._start(slope, build.fsub(self.mean, build.fmul(slope, self.centre)))
        usable = build.fcmp_ordered("<", build.call(_size(build), [_at(build, self.sums, 0)]), _number(math.inf))
        with build.if_then(build.not_(usable)):
            # The line of least squares may leave the numbers that the loss is defined for; the mean does not.
            self._start(_number(0.0), self.mean)
        self._fit("both")
        self._write(out, "both")
        fitted = [_at(build, self.line, 0), _at(build, self.line, 1), *(_at(build, self.sums, i) for i in range(4))]
        for form in ("slope", "intercept", "none"):
            self._fit_simpler(form, fitted, varies)
            self._write(out, form)

    def _fit_simpler(self, form: str, fitted: list[ir.Value], varies: ir.Value) -> None:
        """Fit a line of a simpler form, if it can come near the fitted one, whose line and sums are known."""
        build = self.build
        slope, intercept, error, weight, value, square = fitted
        most = build.fadd(build.fmul(error, self.promising), build.fmul(self.constant, _number(_ROUNDING)))
        most = build.select(build.fcmp_ordered("<", most, self.constant), most, self.constant)
        # Errors of unknown sign have no multiples; the constant's error is the yardstick.
        share = build.fdiv(build.fsub(self.constant, error), self.promising)
        most = build.select(build.fcmp_ordered(">=", error, _number(0.0)), most, build.fadd(error, share))
        start = self._nearest(form, slope, intercept)
        turned = build.fsub(start[0], slope)
        moved = build.fadd(build.fsub(start[1], intercept), build.fmul(turned, self.centre))
        # How far the error grows on the way there, to the second order.
        both = build.fmul(build.fmul(moved, turned), build.fadd(value, value))
        growth = build.fadd(
            build.fmul(build.fmul(moved, moved), weight), build.fmul(build.fmul(turned, turned), square)
        )
        near = build.fcmp_ordered("<=", build.fadd(error, build.fadd(growth, both)), most)
        worth = build.and_(near, varies)
        store(build, _number(math.inf), self.sums, _ZERO, _DOUBLE)
        with build.if_then(worth):
            self._start(*start)
            if form != "none":
                self._fit(form)

    def _nearest(self, form: str, slope: ir.Value, intercept: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Slope and intercept of the line of a simpler form that is nearest to a line."""
        build = self.build
        if form == "none":
            return _number(1.0), _number(0.0)
        if form == "intercept":
            return _number(1.0), build.fadd(intercept, build.fmul(build.fsub(slope, _number(1.0)), self.centre))
        whole = build.fadd(build.fmul(self.centre, self.centre), build.fdiv(self.square, self.weight))
        return build.fadd(slope, build.fdiv(build.fmul(intercept, self.centre), whole)), _number(0.0)

    def _moments(self, numbers: Numbers) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Weighted mean of the predictions, and sums of their squared deviations and products with the target's."""
        build, (rows, target, weights, _, _) = self.build, self.data
        zero = splat(_VECTOR, 0.0)
        with counted(build, _ZERO, rows, LANES, [zero]) as loop:
            value = prediction_lanes(build, self.predictions, loop.index, numbers)
            weighed = build.fmul(lanes(build, weights, loop.index), value)
            loop.results = [build.fadd(loop.values[0], weighed)]
        centre = build.fdiv(horizontal_sum(build, loop.values[0]), self.weight)
        middles = broadcast(build, centre, _VECTOR), broadcast(build, self.mean, _VECTOR)
        with counted(build, _ZERO, rows, LANES, [zero, zero]) as loop:
            deviation = build.fsub(prediction_lanes(build, self.predictions, loop.index, numbers), middles[0])
            weighed = build.fmul(lanes(build, weights, loop.index), deviation)
            other = build.fsub(lanes(build, target, loop.index), middles[1])
            terms = build.fmul(weighed, deviation), build.fmul(weighed, other)
            loop.results = [build.fadd(total, term) for total, term in zip(loop.values, terms, strict=True)]
        square, product = (horizontal_sum(build, total) for total in loop.values)
        return centre, square, product

    def _start(self, slope: ir.Value, intercept: ir.Value) -> None:
        store(self.build, slope, self.line, number(0), _DOUBLE)
        store(self.build, intercept, self.line, number(1), _DOUBLE)
        self._call(self.line, self.sums)

    def _evaluate(self, line: tuple[ir.Value, ir.Value], sums: ir.Value) -> None:
        for position, value in enumerate(line):
            store(self.build, value, self.trial, number(position), _DOUBLE)
        self._call(self.trial, sums)

    def _call(self, line: ir.Value, sums: ir.Value) -> None:
        self.build.call(self.evaluate, [self.predictions, self.centre, line, sums, *self.data])

    def _fit(self, form: str) -> None:
        """Improve the line, whose sums are known."""
        build = self.build
        self.wanted["going"] = 1
        store(build, _number(1.0), self.length, _ZERO, _DOUBLE)
        with (
            counted(build, _ZERO, self.steps),
            build.if_then(build.icmp_unsigned("!=", self.wanted["going"], _ZERO)),
        ):
            slope, intercept, promise = self._step(form)
            error, length = _at(build, self.sums, 0), _at(build, self.length, 0)
            size = build.call(_size(build), [error])
            going = build.fcmp_ordered(">", build.fmul(promise, length), build.fmul(self.tolerance, size))
            self.wanted["going"] = build.zext(going, I64)
            with build.if_then(going):
                moved = (
                    build.fadd(_at(build, self.line, 0), build.fmul(length, slope)),
                    build.fadd(_at(build, self.line, 1), build.fmul(length, intercept)),
                )
                self._evaluate(moved, self.found)
                new = _at(build, self.found, 0)
                better = build.and_(
                    build.fcmp_ordered("<", new, error), build.fcmp_ordered(">", new, _number(-math.inf))
                )
                store(build, self._next_length(better, slope, intercept, promise), self.length, _ZERO, _DOUBLE)
                with build.if_then(better):
                    for position in range(2):
                        store(build, _at(build, self.trial, position), self.line, number(position), _DOUBLE)
                    for position in range(len(_SUMS)):
                        store(build, _at(build, self.found, position), self.sums, number(position), _DOUBLE)

    def _next_length(self, better: ir.Value, slope: ir.Value, intercept: ir.Value, promise: ir.Value) -> ir.Value:
        """The length of the next step, as a multiple of Newton's: what would have been right for this one, by the slope
        of the error along it before and after."""
        build, length = self.build, _at(self.build, self.length, 0)
        moved = build.fadd(intercept, build.fmul(slope, self.centre))
        residual, product = (_at(build, self.found, _SUMS.index(name)) for name in ("residual", "product"))
        after = build.fadd(build.fmul(slope, product), build.fmul(moved, residual))
        right = build.fdiv(build.fmul(length, promise), build.fsub(promise, after))
        # An error that falls ever more steeply has no right length.
        right = build.select(build.fcmp_ordered(">", right, _number(0.0)), right, _number(_LONGEST))
        right = _between(build, right, _number(_SHORTEST), _number(_LONGEST))
        shorter = _between(build, right, build.fmul(length, _number(0.1)), build.fmul(length, _number(_SHORTER)))
        return build.select(better, right, shorter)

    def _step(self, form: str) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Newton's step of slope and intercept, and the error that it promises to remove."""
        build = self.build
        _, weight, value, square, residual, product = (_at(build, self.sums, i) for i in range(len(_SUMS)))
        centre, zero = self.centre, _number(0.0)
        if form == "intercept":
            shift = _ratio(build, residual, weight)
            return zero, shift, build.fmul(shift, residual)
        if form == "slope":
            # Sums of the predictions themselves, from those of the centred ones.
            twice = build.fmul(build.fadd(centre, centre), value)
            whole = build.fadd(build.fadd(square, twice), build.fmul(build.fmul(centre, centre), weight))
            along = build.fadd(product, build.fmul(centre, residual))
            slope = _ratio(build, along, whole)
            return slope, zero, build.fmul(slope, along)
        mean = _ratio(build, value, weight)
        own = build.fsub(square, build.fmul(mean, value))
        slope = _ratio(build, build.fsub(product, build.fmul(mean, residual)), own)
        shift = build.fsub(_ratio(build, residual, weight), build.fmul(slope, mean))
        promise = build.fadd(build.fmul(shift, residual), build.fmul(slope, product))
        return slope, build.fsub(shift, build.fmul(slope, centre)), promise

    def _write(self, out: ir.Value, form: str) -> None:
        build, place = self.build, len(FOUND) * FORMS.index(form)
        values = _at(build, self.line, 0), _at(build, self.line, 1), _at(build, self.sums, 0)
        for position, value in enumerate(values):
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
