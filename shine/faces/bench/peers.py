"""The evaluators of other libraries on Shine's individuals, and plain Python, a row at a time."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from shine.base.typing import Floats, Indices
from shine.data.datasets.dataset import Dataset
from shine.faces.bench.contenders import NUMPY_WORK, Compile, Contender, Prepared, Timed, Unsupported, mean_squares
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import Tape
from shine.lang.interpret import REFERENCE
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


SCALARS: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divide,
    "neg": operator.neg,
    "abs": abs,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "exp": _exp,
    "log": lambda a: math.log(a) if a > 0 else -math.inf if a == 0 else math.nan,
    "sin": lambda a: math.sin(a) if math.isfinite(a) else math.nan,
    "cos": lambda a: math.cos(a) if math.isfinite(a) else math.nan,
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
    """The entries of a table for the primitives of a population; an `Unsupported` if the table lacks one."""
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
    return _row_by_row([composed(population.tape(i), population.primitives) for i in range(len(population))])


def _row_by_row(formulas: Sequence[Value], compilation: Compile | None = None) -> Prepared:
    def over(dataset: Dataset, which: Indices) -> Timed:
        chosen, rows, y = [formulas[i] for i in which], dataset.columns.T.tolist(), dataset.target.tolist()
        return Timed(lambda: row_losses(chosen, rows, y))

    return Prepared(over, compilation)


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


def _deap_functions(population: Population, table: Mapping[str, Function]) -> tuple[list[Any], Compile]:
    """The functions that `gp.compile` makes of individuals, as `deap.gp.PrimitiveTree` in prefix order."""
    from deap import gp

    primitives, functions = population.primitives, counterparts(population, table)
    pset = gp.PrimitiveSet("shine", len(primitives.features))
    for function in primitives.functions:
        pset.addPrimitive(functions[function.name], function.arity, name=function.name)
    arguments = [pset.mapping[name] for name in pset.arguments]

    def leaf(code: int, value: float) -> list[Any]:
        return [gp.Terminal(value, False, object) if code == CONSTANT else arguments[code - 1]]

    def node(name: str, *operands: list[Any]) -> list[Any]:
        return [pset.mapping[name], *(part for operand in operands for part in operand)]

    trees = [gp.PrimitiveTree(fold(population.tape(i), primitives, leaf, node)) for i in range(len(population))]
    begin = time.perf_counter()
    compiled = [gp.compile(tree, pset) for tree in trees]
    return compiled, Compile((time.perf_counter() - begin) / max(len(trees), 1), "individual")


def prepare_deap_rows(population: Population, dtype: str) -> Prepared:
    """`gp.compile`, called for every row, as in DEAP's own example of symbolic regression."""
    compiled, compilation = _deap_functions(population, SCALARS)
    formulas = [lambda row, function=function: function(*row) for function in compiled]
    return _row_by_row(formulas, compilation)


def prepare_deap_arrays(population: Population, dtype: str) -> Prepared:
    """`gp.compile`, called once with the columns, as in DEAP's example with NumPy."""
    compiled, compilation = _deap_functions(population, REFERENCE)

    def over(dataset: Dataset, which: Indices) -> Timed:
        columns, y, chosen = list(dataset.columns), dataset.target, [compiled[i] for i in which]

        def run() -> list[float]:
            with np.errstate(all="ignore"):
                return [float(np.mean(np.square(function(*columns) - y))) for function in chosen]

        return Timed(run, _finite_or_inf)

    return Prepared(over, compilation)


def prepare_gplearn(population: Population, dtype: str) -> Prepared:
    """gplearn's programs, through their own `raw_fitness` with mean squared error."""
    # gplearn has no public name for the class of its programs.
    from gplearn.fitness import mean_square_error
    from gplearn.genetic import _Program

    function_of = _gplearn_function_class()
    primitives, known = population.primitives, counterparts(population, REFERENCE)
    table = {f.name: function_of(known[f.name], f.name, f.arity) for f in primitives.functions}

    def leaf(code: int, value: float) -> list[Any]:
        return [float(value) if code == CONSTANT else code - 1]

    def node(name: str, *operands: list[Any]) -> list[Any]:
        return [table[name], *(part for operand in operands for part in operand)]

    programs = [
        _Program(
            function_set=list(table.values()), arities={}, init_depth=(2, 6), init_method="half and half",
            n_features=len(primitives.features), const_range=None, metric=mean_square_error, p_point_replace=0.05,
            parsimony_coefficient=0.0, random_state=None, program=fold(population.tape(i), primitives, leaf, node),
        )
        for i in range(len(population))
    ]  # fmt: skip

    def over(dataset: Dataset, which: Indices) -> Timed:
        X, y, chosen = dataset.columns.T, dataset.target, [programs[i] for i in which]

        def run() -> list[float]:
            with np.errstate(all="ignore"):
                return [program.raw_fitness(X, y, None) for program in chosen]

        return Timed(run, _finite_or_inf)

    return Prepared(over)


def _gplearn_function_class() -> Any:
    """The class of gplearn's functions; its `make_function` would refuse a division without protection."""
    from gplearn.functions import add2

    return type(add2)


_OPERON_NAMES = ("add", "sub", "mul", "div", "exp", "log", "sin", "cos", "sqrt")


def prepare_pyoperon(population: Population, dtype: str) -> Prepared:
    """Operon's interpreter; only predictions are timed, not the loss."""
    import pyoperon as op

    primitives = population.primitives
    kinds = counterparts(population, {name: getattr(op.NodeType, name.capitalize()) for name in _OPERON_NAMES})
    some = op.Dataset(np.asfortranarray(np.zeros((2, len(primitives.features) + 1))))
    hashes = [variable.Hash for variable in sorted(some.Variables, key=lambda variable: variable.Index)]

    def leaf(code: int, value: float) -> list[Any]:
        constant = code == CONSTANT
        made = op.Node(op.NodeType.Constant) if constant else op.Node(op.NodeType.Variable, hashes[code - 1])
        made.Value = value if constant else 1.0
        return [made]

    def node(name: str, *operands: list[Any]) -> list[Any]:
        # In Operon's postfix order the first operand is next to its function.
        return [*(part for operand in reversed(operands) for part in operand), op.Node(kinds[name])]

    trees = [op.Tree(fold(population.tape(i), primitives, leaf, node)).UpdateNodes() for i in range(len(population))]

    def over(dataset: Dataset, which: Indices) -> Timed:
        table = op.Dataset(np.asfortranarray(np.column_stack([*dataset.columns, dataset.target])))
        chosen, rows = [trees[i] for i in which], op.Range(0, dataset.n_rows)
        out = np.zeros((len(chosen), dataset.n_rows), dtype=np.float32)
        return Timed(lambda: op.EvaluateTrees(chosen, table, rows, out, 1), lambda _: mean_squares(out, dataset.target))

    return Prepared(over)


def _finite_or_inf(losses: list[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = np.array(losses, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.inf)


PEERS = (
    Contender(
        "DEAP, rows",
        "float64",
        prepare_deap_rows,
        "deap",
        slow=True,
        work=SLOW_WORK,
        how="gp.compile, called for every row",
    ),
    Contender(
        "DEAP, arrays",
        "float64",
        prepare_deap_arrays,
        "deap",
        work=NUMPY_WORK,
        how="gp.compile, called with NumPy columns",
    ),
    Contender(
        "gplearn",
        "float64",
        prepare_gplearn,
        "gplearn",
        work=NUMPY_WORK,
        how="raw_fitness, with unprotected primitives",
    ),
    Contender(
        "pyoperon",
        "float32",
        prepare_pyoperon,
        "pyoperon",
        # As of 0.6.2: exp(-100) is 2.9e-39 there, and log(1e-40) is -87.3.
        departs="its exp and log end at the smallest normal number",
        how="EvaluateTrees; the loss is not counted",
    ),
)
"""Contenders that need packages of their own."""
