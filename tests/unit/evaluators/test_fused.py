"""Elementary functions that are computed together with their argument, against what each step alone gives."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.codegen.operations import ELEMENTARY
from shine.data import Dataset
from shine.evaluators.evaluator import evaluator_of
from shine.lang.parse import parse
from shine.lang.population import Population
from shine.lang.primitives import ARITIES, BASIC

FUNCTIONS = sorted(name for name in ELEMENTARY if ARITIES[name] == 1)
EVERY = tuple(BASIC[name] for name in (*FUNCTIONS, "add", "sub", "mul", "div", "sqrt"))
ROWS = 1000
# Operands of both kinds on either side; results of the instruction before that are none of arithmetic, or are fused.
ARGUMENTS = (
    *(f"({left} {op} {right})" for op in "+-*/" for left, right in (("x0", "x1"), ("x0", "1.5"), ("1.5", "x0"))),
    *(f"(x2 {op} (x0 + x1))" for op in "+-*/"),
    *(f"((x0 * x1) {op} 3.0)" for op in "+-*/"),
    *(f"(sqrt(x2 * x2) {op} x1)" for op in "+-*/"),
)


def predictions(X: np.ndarray, sources: list[str], dtype: str) -> np.ndarray:
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    trees = [parse(source, names) for source in sources]
    population = Population.from_trees(trees, shine.PrimitiveSet(EVERY, names))
    # Not checked as data from outside are: results of functions may be infinite or NaN.
    data = Dataset(np.ascontiguousarray(X.T), np.zeros(len(X)), None, names)
    return evaluator_of(data, "mse", False, dtype, "machine").predict(population)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_function_of_a_result_has_the_bits_of_both_steps(dtype: str) -> None:
    X = np.random.default_rng(0).uniform(-3, 3, (ROWS, 3)).astype(np.float32).astype(np.float64)
    X[::97] *= 1e6
    X[5], X[6], X[7, 0], X[8, 1] = 0.0, -0.0, np.float32(3e38), np.float32(1e-40)
    sources = [f"{function}{argument}" for function in FUNCTIONS for argument in ARGUMENTS]
    inner = predictions(X, list(ARGUMENTS), dtype).astype(np.float64)
    apart = predictions(inner.T, [f"{f}(x{i})" for f in FUNCTIONS for i in range(len(ARGUMENTS))], dtype)
    # Alone, as an operand, and as the argument of another one.
    outer = predictions(apart.astype(np.float64).T, [f"exp(x{i})" for i in range(len(sources))], dtype)
    for wrapped, expected in ((sources, apart), ([f"exp({source})" for source in sources], outer)):
        fused = predictions(X, wrapped, dtype)
        same = (fused == expected) & (np.signbit(fused) == np.signbit(expected)) | np.isnan(fused) & np.isnan(expected)
        assert same.all(), [wrapped[i] for i in np.flatnonzero(~same.all(axis=1))[:5]]
