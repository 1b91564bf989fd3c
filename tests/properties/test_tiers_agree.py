"""The tiers agree on random trees and rows, and the check notices if they do not."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from agreement import FEATURES, primitive_disagreements, random_rows, random_tree, same_bits, tree_disagreements
from llvmlite import ir

import shine
from shine.codegen.lowering import FLOAT_LOWERINGS, INTEGER_LOWERINGS, Emitter
from shine.data.dataset import Dataset
from shine.evaluators.machine_tier import MachineEvaluator
from shine.kernels.kernel import Kernel
from shine.lang.interpret import evaluate
from shine.lang.library import STANDARD
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.lang.tape import tree_from_tape
from shine.lang.tree import Tree

FLOATS = ["float64", "float32"]
INTEGERS = ["int32", "int64"]
INTEGER_PRIMITIVES = (*INTEGER_LOWERINGS, "square", "cube", "inv", "relu")
LEVELS = ["O0", "O1", "O2", "O3"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_random_trees_have_the_same_bits_interpreted_and_compiled(dtype):
    assert tree_disagreements(np.random.default_rng(0), 50, 1000, dtype) == []


@pytest.mark.parametrize("rows", [1, 64, 65, 513])
@pytest.mark.parametrize("dtype", FLOATS)
def test_random_trees_have_the_same_bits_on_the_machine_and_compiled(dtype, rows):
    rng = np.random.default_rng(rows)
    primitives = shine.PrimitiveSet(tuple(STANDARD.values()), FEATURES)
    trees = [random_tree(rng, tuple(STANDARD), int(rng.integers(1, 40))) for _ in range(6)]
    columns = random_rows(rng, rows, dtype)
    # Built without the check that all values are finite.
    dataset = Dataset(np.array(columns, np.float64), np.zeros(rows), None, FEATURES)
    machine = MachineEvaluator(dataset, "mse", False, dtype).predict(shine.Population.from_trees(trees, primitives))
    for tree, predicted in zip(trees, machine, strict=True):
        assert same_bits(predicted, Kernel(tree, dtype, "O1")(*columns)).all(), str(tree)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_inexact_primitive_is_within_two_ulp_of_numpy(dtype):
    assert primitive_disagreements(np.random.default_rng(2), 20_000, dtype) == []


def _fused(emit: Emitter, a: ir.Value, b: ir.Value) -> ir.Value:
    """A product plus a number, rounded once."""
    if getattr(a, "opname", None) != "fmul":
        return emit.builder.fadd(a, b)
    return emit.intrinsic("llvm.fma", *a.operands, b)


WRONG = {
    "a difference that is a sum": ("sub", lambda emit, a, b: emit.builder.fadd(a, b)),
    "a fused sum of a product": ("add", _fused),
    "a maximum that forgets NaN": ("max", lambda emit, a, b: emit.builder.select(emit.compare(">", a, b), a, b)),
    "a negation that loses the sign of zero": ("neg", lambda emit, a: emit.builder.fsub(emit.constant(0), a)),
}
"""Wrong lowerings that the check of whole trees must notice."""


@pytest.mark.slow
@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_lowering_is_noticed_in_trees(mistake, monkeypatch):
    name, rule = WRONG[mistake]
    monkeypatch.setitem(FLOAT_LOWERINGS, name, rule)
    assert any(tree_disagreements(np.random.default_rng(seed), 12, 200, "float64") for seed in range(20))


def test_an_error_of_a_few_ulp_in_one_primitive_is_noticed(monkeypatch):
    rule = FLOAT_LOWERINGS["sin"]
    monkeypatch.setitem(
        FLOAT_LOWERINGS, "sin", lambda emit, a: emit.builder.fmul(rule(emit, a), emit.constant(1 + 2.0**-50))
    )
    found = primitive_disagreements(np.random.default_rng(4), 2000, "float64")
    assert found
    assert all("sin at" in line for line in found)


def random_integer_tree(rng: np.random.Generator, size: int) -> Tree:
    """A tree of integer primitives; random nodes are applied to the stack until one value is left."""
    primitives = PrimitiveSet(tuple(STANDARD[name] for name in INTEGER_PRIMITIVES), FEATURES)
    constants = [0, 1, -1, 2, 3, 7, -10, np.iinfo("int32").max, np.iinfo("int32").min]
    codes: list[int] = []
    values: list[float] = []
    height = 0
    while len(codes) < size or height != 1:
        growing = len(codes) < size
        fits = [f.name for f in primitives.functions if (1 if growing else 2) <= f.arity <= height]
        if not fits or (growing and rng.random() < 0.5):
            constant = rng.random() < 0.3
            codes.append(CONSTANT if constant else int(rng.integers(1, 1 + len(FEATURES))))
            values.append(float(rng.choice(constants)) if constant else 0.0)
            height += 1
        else:
            name = str(rng.choice(fits))
            codes.append(primitives.function_codes[name])
            values.append(0.0)
            height += 1 - STANDARD[name].arity
    return tree_from_tape(np.array(codes, np.int16), np.array(values), primitives)


def random_integers(rng: np.random.Generator, rows: int, dtype: str) -> list[np.ndarray]:
    """Columns of small and of any integers, extremes among them."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    columns = []
    for _ in FEATURES:
        kind = rng.random(rows)
        small, wide = rng.integers(-5, 6, rows), rng.integers(low, high, rows, endpoint=True)
        columns.append(np.where(kind < 0.6, small, np.where(kind < 0.8, wide, rng.choice([low, high, low + 1], rows))))
    return [column.astype(dtype) for column in columns]


def outcome(function, *arguments):
    """The value as Python numbers, or the name of the error."""
    try:
        return np.asarray(function(*arguments)).tolist()
    except ZeroDivisionError:
        return "ZeroDivisionError"


def reference_row(tree: Tree, row: tuple[int, ...], dtype: str):
    """Value of a formula in one row."""
    return evaluate(tree, [[value] for value in row], dtype)[0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_random_integer_trees_have_the_same_value_or_the_same_error_in_every_row(dtype):
    rng = np.random.default_rng(5)
    errors = 0
    for _ in range(40):
        tree = random_integer_tree(rng, int(rng.integers(1, 20)))
        kernel, columns = shine.jit(tree, dtype=dtype, opt_level="O1"), random_integers(rng, 40, dtype)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        expected = [outcome(reference_row, tree, row, dtype) for row in rows]
        assert [outcome(kernel, *row) for row in rows] == expected, str(tree)
        failing = np.array([value == "ZeroDivisionError" for value in expected])
        whole = outcome(kernel, *columns)
        assert whole == ("ZeroDivisionError" if failing.any() else expected), str(tree)
        passing = [column[~failing] for column in columns]
        assert outcome(kernel, *passing) == [value for value in expected if value != "ZeroDivisionError"], str(tree)
        errors += failing.any()
    assert 5 < errors < 35


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_agrees_with_python_for_all_pairs_of_small_numbers(dtype):
    a, b = (grid.ravel() for grid in np.meshgrid(np.arange(-20, 21), [*range(-9, 0), *range(1, 10)]))
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    for operator, expected in {
        "//": [x // y for x, y in pairs],
        "%": [x % y for x, y in pairs],
        "/": [math.trunc(x / y) for x, y in pairs],
    }.items():
        assert shine.jit(f"a {operator} b", dtype=dtype)(a, b).tolist() == expected


FATAL = """
import numpy as np, shine
for dtype in ("int32", "int64"):
    low = np.iinfo(dtype).min
    for operator, wrapped in (("/", low), ("//", low), ("%", 0)):
        for text in (f"a {operator} b", f"a {operator} -1", f"{low} {operator} b", f"a {operator} 0"):
            k = shine.jit(text, params=("a", "b"), dtype=dtype, opt_level=LEVEL)
            for arguments in ((low, -1), ([low] * 19, [-1] * 19), (low, 0), ([low] * 19, [-1] * 18 + [0])):
                zero = text.endswith(" 0") or (text.endswith("b") and np.any(np.asarray(arguments[1]) == 0))
                try:
                    value = k(*arguments)
                except ZeroDivisionError:
                    value = None
                assert value is None if zero else np.all(value == wrapped), (text, arguments, value)
"""
"""Divisions that kill a process if the code does not check them, with every kind of divisor."""


@pytest.mark.parametrize("level", LEVELS)
def test_no_division_kills_the_process(level):
    assert run_alone(FATAL.replace("LEVEL", repr(level))) == (0, "")


def test_the_most_negative_exponent_works_as_any_other():
    # A loop over the bits of an exponent never ends if it assumes that the exponent's absolute value is positive.
    code = """
import numpy as np, shine
from shine.data.dataset import Dataset
from shine.evaluators.machine_tier import MachineEvaluator
from shine.kernels.kernel import Kernel
from shine.lang.interpret import evaluate
for dtype in ("int32", "int64"):
    low, tree = np.iinfo(dtype).min, shine.parse("a**b")
    for base, power in ((1, 1), (-1, 1), (2, 0), (-7, 0)):
        assert evaluate(tree, [[base], [low]], dtype).tolist() == [power]
        assert shine.jit(tree, dtype=dtype)(base, low) == power
"""
    assert run_alone(code) == (0, "")


def run_alone(code: str) -> tuple[int, str]:
    """Exit status, negative for a signal, and the end of stderr, of code run in its own process."""
    root = Path(shine.__file__).parents[1]
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=60)
    return done.returncode, done.stderr[-300:]
