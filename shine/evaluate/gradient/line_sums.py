"""Sums over rows at a line ``intercept + slope * prediction``, for the next line of less loss."""

from __future__ import annotations

from llvmlite import ir

from shine.compiler.codegen.blocks import POINTER, broadcast, counted, declare, horizontal_sum, number, store
from shine.compiler.codegen.moments import LANES, lanes, prediction_lanes
from shine.compiler.codegen.numbers import Numbers, is_elementary, splat
from shine.evaluate.gradient.working_residuals import Derivatives, inverse_scales, working
from shine.evaluate.losses.row_errors import WIDE, RowRule, added, line_lanes
from shine.evaluate.machine.job import job_fields
from shine.lang.forms.tree import Primitive

WEIGH = "weigh"
"""Name of the function that `weigh_function` defines."""

DATA = (
    "rows", "target", "weights", "loss_columns", "scales", "facts", "steps", "curvatures", "pulls", "errors",
    "weighted",
)  # fmt: skip
"""Words of the rows that lines are fitted to: their number, a multiple of `WIDE`; addresses of the target, of the
weights, of the addresses of further columns, of `SCALES` and of `FACTS`; the most evaluations of a form; addresses of
what `WEIGH` writes at the best constant; the functions that add up errors, as in a job of the machine; and whether any
weight is not 1. Padding rows have weight 0."""

SUMS = ("error", "weight", "value", "square", "pull", "product")
"""Weighted sums at a line: errors; then h, h*c, h*c*c, g and g*c with the centred predictions c, curvatures h and
pulls g (see `working`)."""

_DOUBLE = ir.DoubleType()
_ZERO = number(0)


class _Rows:
    """Emits a function's loop over the rows: errors at a line, and the sums of their derivatives.

    Parameters
    ----------
    build : ir.IRBuilder
        Positioned before the loop.
    function : Primitive
    least : float, optional
    line, data : ir.Value
        Address of slope and intercept; of the words of `DATA`.
    """

    def __init__(
        self, build: ir.IRBuilder, function: Primitive, least: float | None, line: ir.Value, data: ir.Value
    ) -> None:
        self.width = WIDE if is_elementary(function) else LANES
        words = job_fields(build, data, DATA)
        self.count, self._build, self._least = words["rows"], build, least
        self._target, self._weights, loss_columns, scales = (
            build.inttoptr(words[name], POINTER) for name in ("target", "weights", "loss_columns", "scales")
        )
        self.out = [build.inttoptr(words[name], POINTER) for name in ("curvatures", "pulls")]
        self._line = line_lanes(build, line, self.width)
        self._rule = RowRule(build, function, loss_columns, _ZERO, self.width)
        self._derivatives, self._inverses = Derivatives.of(function), inverse_scales(build, scales, self.width)

    def working(self, value: ir.Value, row: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Weighted errors, pulls and curvatures of predictions."""
        build, (slope, intercept) = self._build, self._line
        weights = lanes(build, self._weights, row, self.width)
        model = build.fadd(intercept, build.fmul(slope, value))
        arguments = self._rule.arguments(model, self._target, row)
        error = self._rule.error(model, arguments, self._least)
        pull, curvature = working(
            build, self._rule, self._derivatives, error, arguments, self._inverses, self._least is not None
        )
        error, pull, curvature = (build.fmul(weights, each) for each in (error, pull, curvature))
        return error, pull, curvature


def evaluate_function(module: ir.Module, function: Primitive, least: float | None, numbers: Numbers) -> ir.Function:
    """Internal function ``evaluate(predictions, centre, line, sums, data)``, which writes `SUMS` at a line and
    returns the errors; predictions are centred at the number `centre`."""
    labels = ("predictions", "centre", "line", "sums", "data")
    kinds = [_DOUBLE if label == "centre" else POINTER for label in labels]
    emitted = declare(module, "shine.lines.evaluate", _DOUBLE, kinds, labels)
    emitted.linkage = "internal"
    emitted.attributes.add("noinline")
    predictions, centre, line, sums, data = emitted.args
    build = ir.IRBuilder(emitted.append_basic_block("entry"))
    rows = _Rows(build, function, least, line, data)
    middle = broadcast(build, centre, ir.VectorType(_DOUBLE, rows.width))
    with counted(build, _ZERO, rows.count, rows.width, [splat(ir.VectorType(_DOUBLE, LANES), 0.0)] * len(SUMS)) as loop:
        value = prediction_lanes(build, predictions, loop.index, numbers, rows.width)
        error, pull, curvature = rows.working(value, loop.index)
        centred = build.fsub(value, middle)
        along = build.fmul(curvature, centred)
        terms = (error, curvature, along, build.fmul(along, centred), pull, build.fmul(pull, centred))
        loop.results = [added(build, total, term) for total, term in zip(loop.values, terms, strict=True)]
    totals = [horizontal_sum(build, total) for total in loop.values]
    for position, total in enumerate(totals):
        store(build, total, sums, number(position), _DOUBLE)
    build.ret(totals[0])
    return emitted


def weigh_function(module: ir.Module, function: Primitive, least: float | None) -> None:
    """``weigh(line, data)``, which writes the curvatures and pulls of the rows for predictions of 0."""
    emitted = declare(module, WEIGH, ir.VoidType(), [POINTER] * 2, ["line", "data"])
    build = ir.IRBuilder(emitted.append_basic_block("entry"))
    rows = _Rows(build, function, least, *emitted.args)
    with counted(build, _ZERO, rows.count, rows.width) as loop:
        _, pull, curvature = rows.working(splat(ir.VectorType(_DOUBLE, rows.width), 0.0), loop.index)
        for value, out in zip((curvature, pull), rows.out, strict=True):
            store(build, value, out, loop.index, _DOUBLE)
    build.ret_void()
