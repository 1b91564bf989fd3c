"""The evaluators of other libraries, if they are installed, on Shine's individuals.

They get primitives with IEEE semantics: protected ones would make other formulas, and slower ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from shine.base.typing import Indices
from shine.data.datasets.dataset import Dataset
from shine.faces.bench.contenders import NUMPY_WORK, Compile, Contender, Prepared, Timed, mean_squares
from shine.faces.bench.plain import SCALARS, SLOW_WORK, Function, counterparts, fold, row_losses
from shine.lang.forms.primitives import CONSTANT
from shine.lang.interpret import REFERENCE
from shine.lang.population import Population


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

    def over(dataset: Dataset, which: Indices) -> Timed:
        chosen, rows, y = [formulas[i] for i in which], dataset.columns.T.tolist(), dataset.target.tolist()
        return Timed(lambda: row_losses(chosen, rows, y))

    return Prepared(over, compilation)


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
