"""Lines ``intercept + slope * prediction`` of least loss, as native code over the predictions of a few rows.

Each line is fitted by Newton's method on the sums of `working`, from the better of two lines: that of least squares,
and a step from the best constant, whose derivatives are the same for all individuals. Each step shows how long it
should have been, and the next one becomes so long: curvatures that are too large, as for errors with a kink, slow a fit
down little. A start that is hardly better than the constant is not improved: most individuals of a population are no
better. Predictions are centred, so that slope and intercept hardly depend on each other. Simpler lines start from the
fitted line: the nearest one of their form.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf

import numpy as np
from llvmlite import ir

from shine.base.typing import AnyArray, Floats, Words
from shine.compiler.codegen.blocks import (
    POINTER,
    broadcast,
    counted,
    declare,
    horizontal_sum,
    load,
    number,
    stack,
    store,
)
from shine.compiler.codegen.moments import LANES, LINE_FORMS, lanes, prediction_lanes
from shine.compiler.codegen.numbers import Functions, Numbers, splat
from shine.compiler.kernels import emit_kernel
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

_ROUNDING = (64 * 2.0**-52) ** 2
"""Variance of predictions, as a share of their squared mean, that is no more than rounding."""

_NONE, _INTERCEPT, _SLOPE, _BOTH = range(len(LINE_FORMS))
_WEIGHT, _CONSTANT, _PROMISING, _TOLERANCE = map(FACTS.index, ("weight", "constant", "promising", "tolerance"))
_PULL, _PRODUCT = SUMS.index("pull"), SUMS.index("product")

Deviations = Callable[[AnyArray, Words, Floats], float]
"""Writes sums of the deviations of predictions from the first one, which it returns (see `_emit_deviations`)."""

LineErrors = Callable[[AnyArray, Words, Floats], float]
"""The sum of errors of a line."""

Evaluate = Callable[[AnyArray, float, Floats, Floats, Words], float]
"""Writes `SUMS` at a line (see `evaluate_function`) and returns the first, that of errors."""


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
    emitted = _emit_deviations(module, numbers), _emit_errors(module), evaluate
    fit = declare(module, FIT_LINES, ir.VoidType(), [POINTER] * 3, ["predictions", "data", "found"])
    build = ir.IRBuilder(fit.append_basic_block("entry"))
    build.call(emit_kernel(module, fit_forms, DATA), [*fit.args, *emitted])
    build.ret_void()
    weigh_function(module, function, least)
    return module


def _emit_deviations(module: ir.Module, numbers: Numbers) -> ir.Function:
    """Internal function ``deviations(predictions, data, sums)``.

    It writes weighted sums of the deviations from the first prediction, which it returns: d, d*d and d*t with the
    target's deviations t from its mean; h*d, h*d*d and g*d with the curvatures h and pulls g at the best constant.
    """
    emitted, build = _internal(module, "shine.lines.deviations", "sums")
    predictions, data, sums = emitted.args
    words = job_fields(build, data, DATA)
    target, weights, curvatures, pulls, facts = (
        build.inttoptr(words[name], POINTER) for name in ("target", "weights", "curvatures", "pulls", "facts")
    )
    # Deviations from any prediction of the row serve as well as those from the mean.
    middle = build.extract_element(prediction_lanes(build, predictions, _ZERO, numbers), ir.Constant(ir.IntType(32), 0))
    mean = load(build, facts, number(FACTS.index("target")), _DOUBLE, _DOUBLE)
    middles, means = broadcast(build, middle, _VECTOR), broadcast(build, mean, _VECTOR)
    with counted(build, _ZERO, words["rows"], LANES, [splat(_VECTOR, 0.0)] * 6) as loop:
        value = build.fsub(prediction_lanes(build, predictions, loop.index, numbers), middles)
        other = build.fsub(lanes(build, target, loop.index), means)
        weighed, bent = (build.fmul(lanes(build, each, loop.index), value) for each in (weights, curvatures))
        pulled = build.fmul(lanes(build, pulls, loop.index), value)
        products = build.fmul(weighed, value), build.fmul(weighed, other), bent, build.fmul(bent, value), pulled
        terms = (weighed, *products)
        loop.results = [build.fadd(total, term) for total, term in zip(loop.values, terms, strict=True)]
    for place, total in enumerate(loop.values):
        store(build, horizontal_sum(build, total), sums, number(place), _DOUBLE)
    build.ret(middle)
    return emitted


def _emit_errors(module: ir.Module) -> ir.Function:
    """Internal function ``errors(predictions, data, line)``, the sum of errors of a line."""
    emitted, build = _internal(module, "shine.lines.errors", "line")
    predictions, data, line = emitted.args
    words, state = job_fields(build, data, DATA), stack(build, _DOUBLE, LANES)
    target, weights, table, loss_columns = (
        build.inttoptr(words[name], POINTER) for name in ("target", "weights", "errors", "loss_columns")
    )
    store(build, splat(_VECTOR, 0.0), state, _ZERO, _DOUBLE)
    add = variant_of(build, table, words["weighted"], number(1))
    build.call(add, [predictions, target, weights, words["rows"], line, loss_columns, _ZERO, state])
    build.ret(horizontal_sum(build, lanes(build, state, _ZERO)))
    return emitted


def _internal(module: ir.Module, name: str, last: str) -> tuple[ir.Function, ir.IRBuilder]:
    """A function of predictions, data and an array, which returns a number; and a builder at its start."""
    emitted = declare(module, name, _DOUBLE, [POINTER] * 3, ("predictions", "data", last))
    emitted.linkage = "internal"
    return emitted, ir.IRBuilder(emitted.append_basic_block("entry"))


def fit_forms(
    predictions: AnyArray, data: Words, out: Floats, deviations: Deviations, errors: LineErrors, evaluate: Evaluate
) -> None:
    """Fit a line of each form to an individual's predictions, the best one first."""
    facts: Floats = data["facts"]
    weight, target, middle, bend, constant, least_gain, _, _ = facts[:8]
    line, trial, sums, rows = np.empty(2), np.empty(2), np.empty(6), np.empty(6)
    first = deviations(predictions, data, rows)
    value, square, product, bent, along, pulled = rows[:6]
    # The slope of least squares, and that of a step from the best constant, whose line turns around a prediction; both
    # are 0 for a prediction that varies by no more than rounding.
    shift = value / weight
    centre = first + shift
    square = square - shift * value
    varies = square > weight * (centre * centre * _ROUNDING)
    turn = _ratio(bent, bend)
    slope = product / square if varies else 0.0
    step = _ratio(pulled, along - turn * bent) if varies else 0.0
    promise = step * pulled
    line[0], line[1], sums[0] = 0.0, middle, constant
    for candidate in range(2):
        trial[0], trial[1] = slope, target - slope * centre
        if candidate:
            trial[0], trial[1] = step, middle - step * (first + turn)
        error = errors(predictions, data, trial)
        if error < sums[0]:
            line[0], line[1], sums[0] = trial[0], trial[1], error
    for form in range(_BOTH):
        _write(out, form, line, inf)
    _write(out, _BOTH, line, sums[0])
    if max(constant - sums[0], promise) > least_gain:
        sums[0] = evaluate(predictions, centre, line, sums, data)
        _fit(_BOTH, predictions, data, centre, line, sums, evaluate)
        _write(out, _BOTH, line, sums[0])
        _fit_simpler(predictions, data, centre, square, line, sums, out, evaluate)


def _fit_simpler(
    predictions: AnyArray,
    data: Words,
    centre: float,
    square: float,
    line: Floats,
    sums: Floats,
    out: Floats,
    evaluate: Evaluate,
) -> None:
    """Fit lines of simpler forms that can come near the fitted line, whose sums are known."""
    facts: Floats = data["facts"]
    constant, promising = facts[_CONSTANT], facts[_PROMISING]
    slope, intercept = line[:2]
    error, h, along, bent = sums[:4]
    # Errors of unknown sign have no multiples; the constant's error is the yardstick.
    most = error * promising if error >= 0.0 else error + (constant - error) / promising
    # Largest difference of equal errors of lines, as a share of the constant's error.
    most = min(constant, most + abs(constant) * 1e-9)
    whole = centre * centre + square / facts[_WEIGHT]
    for simpler in range(_BOTH):
        form = _SLOPE - simpler
        # The nearest line of the form.
        line[0], line[1] = 1.0, 0.0
        if form == _INTERCEPT:
            line[1] = intercept + (slope - 1.0) * centre
        if form == _SLOPE:
            line[0] = slope + intercept * centre / whole
        turned = line[0] - slope
        moved = line[1] - intercept + turned * centre
        # Growth of the error on the way there, to the second order.
        growth = moved * moved * h + turned * turned * bent + moved * turned * (along + along)
        # A line no better than the constant is no use.
        if error + growth < most:
            sums[0] = evaluate(predictions, centre, line, sums, data)
            if form != _NONE:
                _fit(form, predictions, data, centre, line, sums, evaluate)
            _write(out, form, line, sums[0])


def _fit(
    form: int, predictions: AnyArray, data: Words, centre: float, line: Floats, sums: Floats, evaluate: Evaluate
) -> None:
    """Improve a line, whose sums are known, by Newton's method."""
    facts: Floats = data["facts"]
    trial, found, move = np.empty(2), np.empty(6), np.empty(2)
    length, going = 1.0, 1
    for _ in range(data["steps"]):
        if going:
            promise = _step(form, sums, centre, move)
            going = promise * length > facts[_TOLERANCE] * abs(sums[0])
            if going:
                for place in range(2):
                    trial[place] = line[place] + length * move[place]
                new = evaluate(predictions, centre, trial, found, data)
                better = -inf < new < sums[0]
                # The length of the next step, as a multiple of Newton's: what would have been right for this one, by
                # the slope of the error along it before and after.
                after = move[0] * found[_PRODUCT] + (move[1] + move[0] * centre) * found[_PULL]
                right = length * promise / (promise - after)
                # An error that falls ever more steeply has no right length.
                right = min(_LONGEST, max(_SHORTEST, right if right > 0.0 else _LONGEST))
                # Largest factor of the next step after one that did not lower the error.
                length = right if better else min(length * 0.5, max(length * 0.1, right))
                if better:
                    for place in range(2):
                        line[place] = trial[place]
                    for place in range(6):
                        sums[place] = found[place]


def _step(form: int, sums: Floats, centre: float, move: Floats) -> float:
    """Write Newton's step of slope and intercept; the error that it promises to remove."""
    _, weight, value, square, pull, product = sums[:6]
    shift = _ratio(pull, weight)
    promise = shift * pull
    move[0], move[1] = 0.0, shift
    if form == _SLOPE:
        # Sums of the predictions themselves, from those of the centred ones.
        whole = square + (centre + centre) * value + centre * centre * weight
        along = product + centre * pull
        move[0], move[1] = _ratio(along, whole), 0.0
        promise = move[0] * along
    if form == _BOTH:
        mean = _ratio(value, weight)
        slope = _ratio(product - mean * pull, square - mean * value)
        shift = shift - slope * mean
        move[0], move[1] = slope, shift - slope * centre
        promise = shift * pull + slope * product
    return promise


def _ratio(value: float, divisor: float) -> float:
    """The quotient of two numbers; 0 if the divisor is not positive."""
    return value / divisor if divisor > 0.0 else 0.0


def _write(out: Floats, form: int, line: Floats, error: float) -> None:
    """Write the result of a form: `LINE_FIELDS`."""
    result = out[3 * form :]
    result[0], result[1], result[2] = line[0], line[1], error


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
