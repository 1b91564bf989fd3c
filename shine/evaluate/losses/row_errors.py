"""The epilogue of losses: functions that add up the errors of rows, as a function in the language defines them.

They are compiled apart from formulas and machines, one small module for each kind of errors. Jobs have their addresses:
so a new loss compiles no machine again. Sums are float64 in a fixed number of lanes, added in the order of the rows, as
those of `shine.compiler.codegen.moments`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from shine.compiler.codegen.blocks import (
    I64,
    POINTER,
    any_lane,
    broadcast,
    counted,
    declare,
    element_pointer,
    load,
    store,
)
from shine.compiler.codegen.moments import ERRORS, ERRORS_KINDS, ERRORS_LABELS, LANES, lanes, prediction_lanes
from shine.compiler.codegen.native.astjit import AstJit
from shine.compiler.codegen.numbers import Functions, Numbers, is_elementary, source_digest, splat
from shine.compiler.llvm import Engine
from shine.evaluate.losses.form import RowLoss
from shine.lang.forms.facts import basic_where
from shine.lang.forms.primitives import BASIC
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.parse import parse
from shine.lang.values import ValueGraph

LOGARITHMS = ("log", "log1p")
"""Functions whose sum is their own value of a product, or of ``a + (b + a*b)``."""

_DEEPEST = 8
"""Largest depth of nested sums searched for logarithms: each level may double the work."""


@dataclass(frozen=True)
class Logarithm:
    """A summand ``factor * log(argument)``, or with log1p.

    Parameters
    ----------
    name : {"log", "log1p"}
    factor : Tree
        The same for all rows.
    argument : Tree
    """

    name: str
    factor: Tree
    argument: Tree


def split(definition: Tree) -> tuple[Tree | None, tuple[Logarithm, ...]]:
    """The summands of a formula that are logarithms, and the rest of the sum, if there is any.

    All trees have the parameters of the formula.
    """
    splitter = _Splitter(definition)
    graph, result = splitter.graph, splitter.result
    rest, found = splitter.split(result, 0)
    values = [value for factor, _, argument in found for value in (factor, argument)]
    results = values if rest is None else [*values, rest]
    trees = graph.write(results, definition.parameters, definition.name) if found else ()
    terms = [Logarithm(name, *trees[2 * at : 2 * at + 2]) for at, (_, name, _) in enumerate(found)]
    return (definition if not found else None if rest is None else trees[-1]), tuple(terms)


class _Splitter:
    """Finds logarithms in the sums at the root of a formula."""

    def __init__(self, definition: Tree) -> None:
        self.graph = ValueGraph()
        arguments = [self.graph.parameter(name) for name in definition.parameters]
        self.result = self.graph.read(definition, arguments, [name for name in LOGARITHMS if name not in BASIC])

    def split(self, value: int, depth: int) -> tuple[int | None, list[tuple[int, str, int]]]:
        """The rest of a value without logarithms, None if there is none, and factor, function and argument of
        each."""
        graph = self.graph
        name, operands = graph.names[value], graph.operands[value]
        if name in LOGARITHMS:
            return None, [(graph.constant(1.0), name, operands[0])]
        if name in ("add", "sub") and depth < _DEEPEST:
            (left, own), (right, other) = (self.split(operand, depth + 1) for operand in operands)
            if name == "sub":
                other = [(graph.apply("neg", factor), log, argument) for factor, log, argument in other]
            if left is None:
                left = right if right is None or name == "add" else graph.apply("neg", right)
            elif right is not None:
                left = graph.apply(name, left, right)
            return (left, own + other) if own or other else (value, [])
        if name in ("mul", "div") and depth < _DEEPEST:
            constant = [self._is_constant(operand) for operand in operands]
            if constant[1] or (constant[0] and name == "mul"):
                varying, factor = operands if constant[1] else operands[::-1]
                rest, found = self.split(varying, depth + 1)
                scaled = [(graph.apply(name, own, factor), log, argument) for own, log, argument in found]
                return (rest if rest is None else graph.apply(name, rest, factor), scaled) if found else (value, [])
        return value, []

    def _is_constant(self, value: int) -> bool:
        """Whether a value is the same for all rows."""
        needed = {value}
        # Operands come before the values that are made of them.
        for one in range(value, -1, -1):
            if one in needed:
                needed.update(self.graph.operands[one])
        return not any(self.graph.is_parameter(one) for one in needed)


VARIANTS = tuple((weighted, scaled) for weighted in (False, True) for scaled in (False, True))
"""Whether a function reads weights, and whether it reads a line, in the order of the tables in jobs."""

_CARRIES_ON = basic_where(lambda facts: facts.infinite == "kept")
"""Functions whose value is not finite if an argument is not."""

WIDE = 32
"""Rows at a time of errors with elementary functions: several vectors of any processor, so that all are in flight."""

TOGETHER = 256
"""Rows of a product of arguments of a logarithm: 8 in each lane, so that no product overflows."""

_RANGES = {"log": (2.0**-100, 2.0**100), "log1p": (0.0, 2.0**100)}
"""Range of arguments whose products do not overflow. Of negative ones, log1p of the product would lose digits."""

_LOGARITHMS = {name: parse(f"{name}(x)") for name in LOGARITHMS}

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
    ``name(predictions, target, weights, rows, line, loss_columns, first, state)``.

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
    variants without them, but for logarithms, which are summed as one of a product where rows have no weights. `rows`
    is a multiple of `LANES`; padding rows have weight 0. `loss_columns` points to the addresses of the columns that the
    function reads further; the chunk begins at their row `first`.
    """
    module = ir.Module(name="errors")
    assert function.definition is not None
    rest, logarithms = split(function.definition)
    for weighted, scaled in VARIANTS:
        emitted = declare(module, variant_name(weighted, scaled), ir.VoidType(), ERRORS_KINDS, ERRORS_LABELS)
        predictions, target, weights, rows, line, loss_columns, first, state = emitted.args
        build = ir.IRBuilder(emitted.append_basic_block("entry"))
        total = lanes(build, state, _ZERO)
        whole = build.and_(rows, ir.Constant(I64, -WIDE))
        known = _Known(build, predictions, target, line if scaled else None, numbers)
        begin: ir.Value = _ZERO
        if logarithms and not weighted:
            rule = RowRule(build, function, loss_columns, first, WIDE)
            total, usable = _by_products(known, rule, rest, logarithms, least, total, whole)
            begin = build.select(usable, whole, _ZERO)
        parts = [(WIDE, begin, whole), (LANES, whole, rows)] if is_elementary(function) else [(LANES, _ZERO, rows)]
        for width, start, stop in parts:
            rule, at = RowRule(build, function, loss_columns, first, width), known.at(width)
            with counted(build, start, stop, width, [total]) as loop:
                error = rule.error(*at(rule, loop.index), least)
                if weighted:
                    error = build.fmul(lanes(build, weights, loop.index, width), error)
                loop.results = [added(build, loop.values[0], error)]
            total = loop.values[0]
        store(build, total, state, _ZERO, _DOUBLE)
        build.ret_void()
    return module


Arguments = Callable[["RowRule", ir.Value], tuple[ir.Value, list[ir.Value]]]


@dataclass(frozen=True)
class _Known:
    """The rows as a function of `errors_module` sees them.

    Parameters
    ----------
    build : ir.IRBuilder
    predictions, target : ir.Value
    line : ir.Value, optional
        Address of slope and intercept.
    numbers : Numbers
        Type of the predictions.
    """

    build: ir.IRBuilder
    predictions: ir.Value
    target: ir.Value
    line: ir.Value | None
    numbers: Numbers

    def at(self, width: int) -> Arguments:
        """Emits the model's values for the lanes from a row on, and the arguments of its errors."""
        build = self.build
        line = None if self.line is None else line_lanes(build, self.line, width)

        def arguments(rule: RowRule, row: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
            value = prediction_lanes(build, self.predictions, row, self.numbers, width)
            if line is not None:
                slope, intercept = line
                value = build.fadd(intercept, build.fmul(slope, value))
            return value, rule.arguments(value, self.target, row)

        return arguments


def _by_products(
    known: _Known,
    rule: RowRule,
    rest: Tree | None,
    logarithms: Sequence[Logarithm],
    least: float | None,
    total: ir.Value,
    rows: ir.Value,
) -> tuple[ir.Value, ir.Value]:
    """The sum with the errors of some rows added, one logarithm for `TOGETHER` rows; and whether all products are exact
    to rounding, which else is to be done without them. If not, the sum is as it was."""
    build, at = known.build, known.at(WIDE)
    doubles, bits = ir.VectorType(_DOUBLE, WIDE), ir.VectorType(I64, WIDE)
    ranges = [_RANGES[each.name] for each in logarithms]
    ones = [splat(doubles, 1.0 if each.name == "log" else 0.0) for each in logarithms]
    with counted(build, _ZERO, rows, TOGETHER, [total, *(ir.Constant(bits, None) for _ in logarithms)]) as block:
        end = build.add(block.index, ir.Constant(I64, TOGETHER))
        end = build.select(build.icmp_signed("<", end, rows), end, rows)
        with counted(build, block.index, end, WIDE, [*block.values, *ones]) as loop:
            value, arguments = at(rule, loop.index)
            worst, products = loop.values[1 : 1 + len(logarithms)], loop.values[1 + len(logarithms) :]
            for position, each in enumerate(logarithms):
                argument = rule.value(each.argument, arguments)
                # Numbers below the range, infinite ones and NaN are integers above it.
                above = build.sub(build.bitcast(argument, bits), _bits(ranges[position][0]))
                larger = build.icmp_unsigned(">", above, worst[position])
                worst[position] = build.select(larger, above, worst[position])
                product = build.fmul(products[position], argument)
                if each.name == "log1p":
                    product = build.fadd(products[position], build.fadd(argument, product))
                products[position] = product
            so_far = loop.values[0]
            if rest is not None or least or not rule.carries_on:
                error = splat(doubles, 0.0) if rest is None else rule.value(rest, arguments)
                so_far = added(build, so_far, rule.finite(value, error, least))
            loop.results = [so_far, *worst, *products]
        so_far, worst, products = loop.values[0], *_halves(loop.values[1:])
        nothing = [splat(doubles, 0.0)] * len(arguments)
        for each, product in zip(logarithms, products, strict=True):
            logarithm = rule.value(_LOGARITHMS[each.name], [product])
            so_far = added(build, so_far, build.fmul(rule.value(each.factor, nothing), logarithm))
        block.results = [so_far, *worst]
    so_far, *worst = block.values
    usable: ir.Value = ir.Constant(ir.IntType(1), 1)
    for each, (low, high) in zip(worst, ranges, strict=True):
        inside = build.icmp_unsigned("<=", each, build.sub(_bits(high), _bits(low)))
        usable = build.and_(usable, build.not_(any_lane(build, build.not_(inside))))
    return build.select(usable, so_far, total), usable


def _halves(values: list[ir.Value]) -> tuple[list[ir.Value], list[ir.Value]]:
    return values[: len(values) // 2], values[len(values) // 2 :]


def _bits(number: float) -> ir.Constant:
    """The bits of a number, in each of `WIDE` lanes."""
    return ir.Constant(ir.VectorType(I64, WIDE), [int(np.float64(number).view(np.int64))] * WIDE)


def added(build: ir.IRBuilder, total: ir.Value, errors: ir.Value) -> ir.Value:
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
    loss_columns, first : ir.Value
        As in `errors_module`.
    width : int
        Rows at a time.
    """

    def __init__(
        self, build: ir.IRBuilder, function: Primitive, loss_columns: ir.Value, first: ir.Value, width: int = LANES
    ) -> None:
        assert function.definition is not None
        self._build, self._definition, self._width = build, function.definition, width
        self.carries_on = _carries_on(function.definition)
        self._columns = []
        for position in range(function.arity - 2):
            column = load(build, loss_columns, ir.Constant(I64, position), POINTER, POINTER, 8)
            self._columns.append(element_pointer(build, column, first, _DOUBLE))

    def arguments(self, prediction: ir.Value, target: ir.Value, row: ir.Value) -> list[ir.Value]:
        """The arguments of the function for the lanes from a row on."""
        return [prediction, *(lanes(self._build, column, row, self._width) for column in (target, *self._columns))]

    def error(self, prediction: ir.Value, arguments: Sequence[ir.Value], least: float | None) -> ir.Value:
        """The error above the least one; not finite where the prediction is not."""
        return self.finite(prediction, self.value(self._definition, arguments), least)

    def finite(self, prediction: ir.Value, error: ir.Value, least: float | None) -> ir.Value:
        """The part of the error, or 0, above the least one; not finite where the prediction is not."""
        build = self._build
        if least:
            error = build.fsub(error, splat(prediction.type, least))
        if not self.carries_on:
            error = build.fadd(error, build.fsub(prediction, prediction))
        return error

    def value(self, tree: Tree, arguments: Sequence[ir.Value]) -> ir.Value:
        """The value of a tree with the function's parameters."""
        return AstJit(self._build, Numbers("float64", self._width)).lower(tree, arguments)


def _carries_on(definition: Tree) -> bool:
    """Whether the error is surely not finite where the prediction is not."""
    inputs, tokens = {"constant", "name", "assign"}, definition.tokens
    return definition.parameters[0] in definition.used_parameters and all(
        kind in _CARRIES_ON or kind in inputs or (kind == "div" and before[0] == "constant")
        for before, (kind, _) in pairwise(tokens)
    )


class Table:
    """Addresses of compiled functions, and the code they are in.

    Parameters
    ----------
    names : list of str
    description : tuple of str
        Meaning of the code, for the cache.
    module : callable
        Returns the module of the functions; its text is compiled.
    """

    def __init__(self, names: list[str], description: tuple[str, ...], module: Callable[[], object]) -> None:
        self._engine = Engine.kept(names, (*description, source_digest("evaluate")), module)
        self.addresses: NDArray[np.uint64] = np.array([self._engine.address(name) for name in names], np.uint64)

    @property
    def address(self) -> int:
        """Address of the addresses."""
        return int(self.addresses.ctypes.data)


def errors_code(kind: RowLoss, dtype: str) -> Table:
    """The functions that add up errors of predictions of a number type, in the order of `VARIANTS`."""
    return _errors_code(Functions.of((kind.function,)), kind.least, dtype)


@lru_cache(maxsize=64)
def _errors_code(function: Functions, least: float | None, dtype: str) -> Table:
    return Table(
        [variant_name(*variant) for variant in VARIANTS],
        ("errors", dtype, repr(least), *function.meaning),
        lambda: errors_module(function.functions[0], least, Numbers(dtype)),
    )
