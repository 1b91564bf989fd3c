"""Any loss as least squares: the working residual and the weight of each row, from the derivatives of its error.

With l' and h the slope and the curvature of a row's error l by the prediction, ``h/2 * (d - step)**2`` with the working
residual ``d = -l'/h`` changes with the step of the prediction as l does, up to the second order: so a step of
Gauss-Newton minimizes the loss by least squares with weights h/2 (iteratively reweighted least squares; Green 1984).
Squared errors have d = r and the weight 1.

The second derivative is no curvature that a fit can use where it is negative, as for outliers under Student's t, or 0,
as for absolute errors; and where it is nearly 0, as for a class predicted wrongly with certainty, the step would be
far too long. So, with e = l - least, the error above the least possible one::

    h = max(l'', l'^2 / e - l'')

A parabola has ``l'^2 / e = 2 l''``: its curvature stays as it is. Absolute errors r get h = 1 / |r|, whose step leads
to r = 0 (Lawson 1961); an error that bends less than a parabola gets more curvature the less it bends. If no least
error is known, h is l'' where positive, else the curvature ``l' / (prediction - target)`` of reweighted residuals
(Beaton and Tukey 1974), else ``|l''|``, or what asks for a step as long as the target's deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from llvmlite import ir

from shine.base.typing import Floats
from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    broadcast,
    counted,
    declare,
    horizontal_sum,
    intrinsic,
    load,
    store,
)
from shine.compiler.codegen.moments import LANES, lanes
from shine.compiler.codegen.numbers import Functions, splat
from shine.data.datasets.dataset import AllRows, Dataset
from shine.evaluate.gradient.instructions import tile_lanes
from shine.evaluate.losses.form import RowLoss
from shine.evaluate.losses.row_errors import RowRule, Table, line_lanes
from shine.lang.derivative import derivative, is_constant, value_and_gradient
from shine.lang.forms.tree import Primitive, Tree

_LABELS = (
    "prediction", "step_mask", "target", "weights", "rows", "line", "loss_columns", "first", "scales", "residual",
    "weighing",
)  # fmt: skip
_KINDS = [I64 if label in ("rows", "first", "step_mask") else POINTER for label in _LABELS]
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_ZERO = ir.Constant(I64, 0)

SCALES = ("shortest", "typical")
"""Lengths by which a fit judges steps of the prediction: errors that vanish at a kink count as if they were at least
the shortest one away from it; the typical one is the target's deviation."""


def residuals_name(weighted: bool) -> str:
    """Name of a function of working residuals."""
    return f"residuals.{'weighted' if weighted else 'plain'}"


@dataclass(frozen=True)
class Derivatives:
    """Slope and second derivative of a row's error by the prediction."""

    slope: Tree
    second: Tree

    @classmethod
    def of(cls, function: Primitive) -> Derivatives:
        """The derivatives of a function ``(prediction, target, *columns)``."""
        definition = function.definition
        assert definition is not None
        prediction = definition.parameters[0]
        return cls(*value_and_gradient(derivative(definition, prediction), [prediction]))

    @property
    def reweights(self) -> bool:
        """Whether rows get other weights than their own: not if the second derivative is 2 everywhere."""
        return not is_constant(self.second, 2)


def residuals_module(function: Primitive, least: float | None) -> ir.Module:
    """A module with ``double name(prediction, step_mask, target, weights, rows, line, loss_columns, first, scales,
    residual, weighing)``, without and with weights.

    Parameters
    ----------
    function : Primitive
        ``(prediction, target, *columns) -> error``, with a definition.
    least : float, optional
        Lower bound of the errors.

    Notes
    -----
    The functions return the weighted sum of a tile's errors above the least, and write the working residuals to the
    tile `residual`. If the derivatives reweight the rows, they write the rows' weights to the tile `weighing`.
    `prediction` and `step_mask` are an operand of the gradient machine; `scales` has the two `SCALES`; the other
    arguments are those of `shine.evaluate.losses.row_errors.errors_module`.
    """
    module, derivatives = ir.Module(name="residuals"), Derivatives.of(function)
    for weighted in (False, True):
        emitted = declare(module, residuals_name(weighted), _DOUBLE, _KINDS, _LABELS)
        prediction, mask, target, weights, rows, line, loss_columns, first, scales, residual, weighing = emitted.args
        build = ir.IRBuilder(emitted.append_basic_block("entry"))
        rule = RowRule(build, function, loss_columns, first)
        slope, intercept = line_lanes(build, line)
        inverses = inverse_scales(build, scales)
        zero = splat(_VECTOR, 0.0)
        with counted(build, _ZERO, rows, LANES, [zero]) as loop:
            model = build.fadd(intercept, build.fmul(slope, tile_lanes(build, prediction, loop.index, mask, _VECTOR)))
            arguments = rule.arguments(model, target, loop.index)
            error = rule.error(model, arguments, least)
            left, own = working(build, rule, derivatives, error, arguments, inverses, least is not None)
            if derivatives.reweights:
                # The weight is 0 only where the pull is.
                left = build.fdiv(left, build.select(build.fcmp_ordered(">", own, zero), own, splat(_VECTOR, 1.0)))
                own = build.fmul(lanes(build, weights, loop.index), own) if weighted else own
                store(build, own, weighing, loop.index, _DOUBLE)
            store(build, left, residual, loop.index, _DOUBLE)
            if weighted:
                error = build.fmul(lanes(build, weights, loop.index), error)
            loop.results = [build.fadd(loop.values[0], error)]
        build.ret(horizontal_sum(build, loop.values[0]))
    return module


def inverse_scales(build: ir.IRBuilder, scales: ir.Value, width: int = LANES) -> list[ir.Value]:
    """1 / `SCALES`, in each of `width` lanes: a division in each row would take as long as all else."""
    kind = ir.VectorType(_DOUBLE, width)
    lengths = (load(build, scales, ir.Constant(I64, i), _DOUBLE, _DOUBLE) for i in range(len(SCALES)))
    return [broadcast(build, build.fdiv(ir.Constant(_DOUBLE, 1.0), length), kind) for length in lengths]


def working(
    build: ir.IRBuilder,
    rule: RowRule,
    derivatives: Derivatives,
    error: ir.Value,
    arguments: list[ir.Value],
    inverses: list[ir.Value],
    bounded: bool,
) -> tuple[ir.Value, ir.Value]:
    """Pulls, that is working residuals times weights, and weights of the rows in the lanes.

    Parameters
    ----------
    build : ir.IRBuilder
    rule : RowRule
    derivatives : Derivatives
    error : ir.Value
        The errors above the least one.
    arguments : list of ir.Value
        The arguments of the errors.
    inverses : list of ir.Value
        `inverse_scales`.
    bounded : bool
        Whether a least error is known.
    """
    step = rule.value(derivatives.slope, arguments)
    if not derivatives.reweights:
        return build.fmul(step, splat(step.type, -0.5)), splat(step.type, 1.0)
    second = rule.value(derivatives.second, arguments)
    row = _Row(build, step, second, inverses)
    return row.working(row.from_error(error) if bounded else row.from_second(*arguments[:2]))


class _Row:
    """Emits minus half the slope and half the curvature of the rows in the lanes; both are 0 where there is none."""

    def __init__(self, build: ir.IRBuilder, slope: ir.Value, second: ir.Value, inverses: list[ir.Value]) -> None:
        self.build, self.kind = build, slope.type
        self.shortest, self.typical = inverses
        # A derivative that is not finite, at a kink or beyond a pole, says nothing.
        self.slope, self.second = self._finite(slope), self._finite(second)

    def working(self, curvature: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The pull and the weight."""
        build, zero, half = self.build, splat(self.kind, 0.0), splat(self.kind, 0.5)
        usable = build.fcmp_ordered(">", curvature, zero)
        pull, weight = build.fmul(self.slope, build.fneg(half)), build.fmul(curvature, half)
        return build.select(usable, pull, zero), build.select(usable, weight, zero)

    def from_error(self, error: ir.Value) -> ir.Value:
        """The curvature, given the error above the least one."""
        build = self.build
        chord = build.fdiv(build.fmul(self.slope, self.slope), error)
        chord = build.fsub(self._least(chord, self._steepest(self.shortest)), self.second)
        return build.select(build.fcmp_ordered(">", chord, self.second), chord, self.second)

    def from_second(self, prediction: ir.Value, target: ir.Value) -> ir.Value:
        """The curvature if no least error is known."""
        build, zero = self.build, splat(self.kind, 0.0)
        bent = build.fcmp_ordered(">", self.second, zero)
        towards = build.fdiv(self.slope, build.fsub(prediction, target))
        away = build.fcmp_ordered(">", towards, zero)
        towards = self._least(towards, self._steepest(self.shortest))
        size, long = self._size(self.second), self._steepest(self.typical)
        other = build.select(build.fcmp_ordered(">", size, long), size, long)
        return build.select(bent, self.second, build.select(away, towards, other))

    def _steepest(self, inverse: ir.Value) -> ir.Value:
        """The curvature that asks for a step of some length, whose inverse is given."""
        return self.build.fmul(self._size(self.slope), inverse)

    def _least(self, value: ir.Value, most: ir.Value) -> ir.Value:
        return self.build.select(self.build.fcmp_ordered("<", value, most), value, most)

    def _size(self, value: ir.Value) -> ir.Value:
        return self.build.call(intrinsic(self.build.module, "llvm.fabs", self.kind, 1), [value])

    def _finite(self, value: ir.Value) -> ir.Value:
        small = self.build.fcmp_ordered("<", self._size(value), splat(self.kind, float("inf")))
        return self.build.select(small, value, splat(self.kind, 0.0))


class ResidualsCode:
    """The functions of working residuals, without and with weights."""

    def __init__(self, function: Primitive, meaning: tuple[str, ...], least: float | None) -> None:
        self.reweights = Derivatives.of(function).reweights
        self.table = Table(
            [residuals_name(weighted) for weighted in (False, True)],
            ("residuals", repr(least), *meaning),
            lambda: residuals_module(function, least),
        )


def residuals_code(kind: RowLoss) -> ResidualsCode:
    """The code that fits constants by a loss."""
    return _residuals_code(Functions.of((kind.function,)), kind.least)


@lru_cache(maxsize=64)
def _residuals_code(function: Functions, least: float | None) -> ResidualsCode:
    return ResidualsCode(function.functions[0], function.meaning, least)


def scales_of(dataset: Dataset | AllRows) -> Floats:
    """The `SCALES` of fits to a data set."""
    deviation = np.sqrt(dataset.target_square / dataset.weight)
    # Errors with a kink are fitted as if they were at least this share of the target's deviation away from it.
    return np.maximum([1e-6 * deviation, deviation], np.finfo(np.float64).tiny)
