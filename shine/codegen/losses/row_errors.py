"""The epilogue of losses: functions that add up the errors of rows, as a function in the language defines them.

They are compiled apart from formulas and machines, one small module for each kind of errors. Jobs have their addresses:
so a new loss compiles no machine again. Sums are float64 in a fixed number of lanes, added in the order of the rows, as
those of `shine.codegen.moments`.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from shine.codegen.blocks import (
    I64,
    POINTER,
    broadcast,
    counted,
    declare,
    element_pointer,
    load,
    store,
)
from shine.codegen.moments import ERRORS, ERRORS_KINDS, ERRORS_LABELS, LANES, lanes, prediction_lanes
from shine.codegen.native.astjit import AstJit
from shine.codegen.numbers import Numbers, splat
from shine.codegen.operations import operations_of
from shine.lang.facts import basic_where
from shine.lang.tree import Primitive, Tree

VARIANTS = tuple((weighted, scaled) for weighted in (False, True) for scaled in (False, True))
"""Whether a function reads weights, and whether it reads a line, in the order of the tables in jobs."""

_CARRIES_ON = basic_where(lambda facts: facts.infinite == "kept")
"""Functions whose value is not finite if an argument is not."""

WIDE = 32
"""Rows at a time of errors with elementary functions: several vectors of any processor, so that all are in flight."""

_DOUBLE = ir.DoubleType()
_ZERO = ir.Constant(I64, 0)


def variant_name(weighted: bool, scaled: bool) -> str:
    """Name of a function that adds up errors."""
    return f"errors.{'weighted' if weighted else 'plain'}.{'scaled' if scaled else 'raw'}"


def variant_of(build: ir.IRBuilder, table: ir.Value, weighted: ir.Value, scaled: ir.Value) -> ir.Value:
    """The function of a table of addresses, in the order of `VARIANTS`, for two flags (i64, 0 or 1)."""
    index = build.add(build.shl(weighted, ir.Constant(I64, 1)), scaled)
    return load(build, table, index, POINTER, ERRORS, 8)


def errors_module(function: Primitive, least: float | None, numbers: Numbers) -> ir.Module:
    """A module with a function for each of `VARIANTS`:
    ``name(predictions, target, weights, rows, line, beside, first, state)``.

    Parameters
    ----------
    function : Primitive
        ``(prediction, target, *columns) -> error``, with a definition.
    least : float, optional
        Lower bound of the errors, which is subtracted from each: so no summand is negative.
    numbers : Numbers
        Type of the predictions.

    Notes
    -----
    The functions add the errors of a chunk of rows to the state, `LANES` sums. `line` is slope and intercept of the
    model ``intercept + slope * prediction``. Weights of 1, or slope 1 and intercept 0, give the same bits as the
    variants without them. `rows` is a multiple of `LANES`; padding rows have weight 0. `beside` points to the addresses
    of the columns that the function reads further; the chunk begins at their row `first`.
    """
    module = ir.Module(name="errors")
    for weighted, scaled in VARIANTS:
        emitted = declare(module, variant_name(weighted, scaled), ir.VoidType(), ERRORS_KINDS, ERRORS_LABELS)
        predictions, target, weights, rows, line, beside, first, state = emitted.args
        build = ir.IRBuilder(emitted.append_basic_block("entry"))
        total = lanes(build, state, _ZERO)
        whole = build.and_(rows, ir.Constant(I64, -WIDE))
        parts = [(WIDE, _ZERO, whole), (LANES, whole, rows)] if _is_slow(function) else [(LANES, _ZERO, rows)]
        for width, start, stop in parts:
            rule = RowRule(build, function, beside, first, width)
            slope, intercept = line_lanes(build, line, width) if scaled else (None, None)
            with counted(build, start, stop, width, [total]) as loop:
                value = prediction_lanes(build, predictions, loop.index, numbers, width)
                if scaled:
                    value = build.fadd(intercept, build.fmul(slope, value))
                error = rule.error(value, rule.arguments(value, target, loop.index), least)
                if weighted:
                    error = build.fmul(lanes(build, weights, loop.index, width), error)
                loop.results = [_added(build, loop.values[0], error)]
            total = loop.values[0]
        store(build, total, state, _ZERO, _DOUBLE)
        build.ret_void()
    return module


def _is_slow(function: Primitive) -> bool:
    """Whether elementary functions take most of the time: they are faster with more lanes at a time."""
    return operations_of(function)["elementary"] > 0


def _added(build: ir.IRBuilder, total: ir.Value, errors: ir.Value) -> ir.Value:
    """The sum in `LANES` lanes with more errors added, in the order of the rows."""
    for first in range(0, errors.type.count, LANES):
        chosen = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(first, first + LANES)))
        total = build.fadd(total, build.shuffle_vector(errors, errors, chosen))
    return total


def line_lanes(build: ir.IRBuilder, line: ir.Value, count: int = LANES) -> tuple[ir.Value, ir.Value]:
    """Slope and intercept in each of `count` lanes."""
    kind = ir.VectorType(_DOUBLE, count)
    slope, intercept = (
        broadcast(build, load(build, line, ir.Constant(I64, i), _DOUBLE, _DOUBLE), kind) for i in (0, 1)
    )
    return slope, intercept


class RowRule:
    """Emits the error of rows, and other functions of the same arguments, at a builder's position.

    Parameters
    ----------
    build : ir.IRBuilder
        Positioned before the loop over rows: the addresses of columns are loaded here.
    function : Primitive
    beside, first : ir.Value
        As in `errors_module`.
    width : int
        Rows at a time.
    """

    def __init__(
        self, build: ir.IRBuilder, function: Primitive, beside: ir.Value, first: ir.Value, width: int = LANES
    ) -> None:
        assert function.definition is not None
        self._build, self._definition, self._width = build, function.definition, width
        self._columns = []
        for position in range(function.arity - 2):
            column = load(build, beside, ir.Constant(I64, position), POINTER, POINTER, 8)
            self._columns.append(element_pointer(build, column, first, _DOUBLE))

    def arguments(self, prediction: ir.Value, target: ir.Value, row: ir.Value) -> list[ir.Value]:
        """The arguments of the function for the lanes from a row on."""
        return [prediction, *(lanes(self._build, column, row, self._width) for column in (target, *self._columns))]

    def error(self, prediction: ir.Value, arguments: Sequence[ir.Value], least: float | None) -> ir.Value:
        """The error above the least one; not finite where the prediction is not."""
        build = self._build
        error = self.value(self._definition, arguments)
        if least:
            error = build.fsub(error, splat(prediction.type, least))
        if not _carries_on(self._definition):
            error = build.fadd(error, build.fsub(prediction, prediction))
        return error

    def value(self, tree: Tree, arguments: Sequence[ir.Value]) -> ir.Value:
        """The value of a tree with the function's parameters."""
        return AstJit(self._build, Numbers("float64", self._width)).lower(tree, arguments)


def _carries_on(definition: Tree) -> bool:
    """Whether the error is surely not finite where the prediction is not."""
    inputs = {"constant", "name", "assign"}
    return definition.parameters[0] in definition.used_parameters and all(
        kind in _CARRIES_ON or kind in inputs for kind, _ in definition.tokens[1:]
    )
