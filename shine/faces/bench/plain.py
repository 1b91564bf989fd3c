"""Plain Python, a row at a time: the cost of a formula without vectors and without compilation."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shine.base.typing import Floats, Indices
from shine.data.datasets.dataset import Dataset
from shine.faces.bench.contenders import Contender, Prepared, Timed, Unsupported
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import Tape
from shine.lang.population import Population

Function = Callable[..., Any]

Value = Callable[[Sequence[float]], float]
"""A formula: a row to a number."""


def _divide(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def _log(a: float) -> float:
    return math.log(a) if a > 0 else -math.inf if a == 0 else math.nan


def _sin(a: float) -> float:
    return math.sin(a) if math.isfinite(a) else math.nan


def _cos(a: float) -> float:
    return math.cos(a) if math.isfinite(a) else math.nan


def _sqrt(a: float) -> float:
    return math.sqrt(a) if a >= 0 else math.nan


SCALARS: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divide,
    "neg": operator.neg,
    "abs": abs,
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
    "sin": _sin,
    "cos": _cos,
}
"""Primitives over Python's floats, with the results of IEEE arithmetic where Python raises an error."""


def fold(tape: Tape, primitives: PrimitiveSet, leaf: Callable[[int, float], Any], node: Callable[..., Any]) -> Any:
    """Fold a tape from the leaves up, by `leaf(code, value)` and `node(name, *arguments)`."""
    stack: list[Any] = []
    for code, value in zip(tape.codes.tolist(), tape.values.tolist(), strict=True):
        if code < primitives.first_function:
            stack.append(leaf(code, value))
            continue
        function = primitives.function(code)
        arguments = stack[len(stack) - function.arity :]
        del stack[len(stack) - function.arity :]
        stack.append(node(function.name, *arguments))
    return stack.pop()


def counterparts(population: Population, table: Mapping[str, Function]) -> dict[str, Function]:
    """The entries of a table for the primitives of a population.

    Raises
    ------
    Unsupported
        If the table lacks one.
    """
    names = [function.name for function in population.primitives.functions]
    missing = [name for name in names if name not in table]
    if missing:
        raise Unsupported(f"has no {', '.join(missing)}")
    return {name: table[name] for name in names}


def composed(tape: Tape, primitives: PrimitiveSet) -> Value:
    """A formula as Python functions that call each other."""
    return fold(tape, primitives, _leaf, _node)


def _leaf(code: int, value: float) -> Value:
    return (lambda row: value) if code == CONSTANT else operator.itemgetter(code - 1)


def _node(name: str, *arguments: Value) -> Value:
    function = SCALARS[name]
    if len(arguments) == 1:
        (a,) = arguments
        return lambda row: function(a(row))
    a, b = arguments
    return lambda row: function(a(row), b(row))


def row_losses(formulas: Sequence[Value], rows: list[list[float]], y: list[float]) -> Floats:
    """Mean squared error of each formula, summed in plain Python."""
    losses = [_mean_square(formula, rows, y) for formula in formulas]
    return np.array([loss if math.isfinite(loss) else math.inf for loss in losses])


def _mean_square(formula: Value, rows: list[list[float]], y: list[float]) -> float:
    total = 0.0
    for row, wanted in zip(rows, y, strict=True):
        error = formula(row) - wanted
        total += error * error  # a power would raise an error instead of becoming infinite
    return total / len(y)


def prepare_plain(population: Population, dtype: str) -> Prepared:
    """Functions composed along each tree, called for every row."""
    counterparts(population, SCALARS)
    formulas = [composed(population.tape(i), population.primitives) for i in range(len(population))]

    def over(dataset: Dataset, which: Indices) -> Timed:
        chosen, rows, y = [formulas[i] for i in which], dataset.columns.T.tolist(), dataset.target.tolist()
        return Timed(lambda: row_losses(chosen, rows, y))

    return Prepared(over)


SLOW_WORK = 5e5
"""Node-rows that are enough to measure an evaluator that takes a row at a time."""

PLAIN = Contender(
    "plain Python",
    "float64",
    prepare_plain,
    slow=True,
    work=SLOW_WORK,
    how="functions composed along the tree, called for every row",
)
