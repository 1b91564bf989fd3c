"""Formulas of integers have the values of the reference, or its error, and never kill the process."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.formulas import FEATURES, OF_INTEGERS

import shine
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import tree_from_tape
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate

INTEGERS = ["int32", "int64"]


def random_integer_tree(rng: np.random.Generator, size: int) -> Tree:
    """A tree of integer primitives; random nodes are applied to what is on the stack until one value is left."""
    primitives = PrimitiveSet(tuple(STANDARD[name] for name in OF_INTEGERS), FEATURES)
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
    """Columns of small integers, of any, and of extremes."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    columns = []
    for _ in FEATURES:
        kind = rng.random(rows)
        small, wide = rng.integers(-5, 6, rows), rng.integers(low, high, rows, endpoint=True)
        columns.append(np.where(kind < 0.6, small, np.where(kind < 0.8, wide, rng.choice([low, high, low + 1], rows))))
    return [column.astype(dtype) for column in columns]


def outcome(function, *arguments):
    """The value as Python numbers, or the error's name."""
    try:
        return np.asarray(function(*arguments)).tolist()
    except ZeroDivisionError:
        return "ZeroDivisionError"


def reference_row(tree: Tree, row: tuple[int, ...], dtype: str):
    """Value of a formula in one row."""
    return evaluate(tree, [[value] for value in row], dtype)[0]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", INTEGERS)
def test_random_integer_trees_have_the_same_value_or_the_same_error_in_every_row(dtype):
    rng = np.random.default_rng(5)
    errors = 0
    for _ in range(25):
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
    assert 3 < errors < 22


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
"""Divisions that kill a process unless the divisor is checked, with every kind of divisor."""


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_no_division_kills_the_process(level):
    assert run_alone(FATAL.replace("LEVEL", repr(level))) == (0, "")


@pytest.mark.slow
def test_the_most_negative_exponent_is_one_like_any_other():
    # The absolute value of this exponent is negative: a loop over its bits could run forever.
    code = """
import numpy as np, shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.interpret import evaluate
for dtype in ("int32", "int64"):
    low, tree = np.iinfo(dtype).min, shine.parse("a**b")
    for base, power in ((1, 1), (-1, 1), (2, 0), (-7, 0)):
        assert evaluate(tree, [[base], [low]], dtype).tolist() == [power]
        assert shine.jit(tree, dtype=dtype)(base, low) == power
"""
    assert run_alone(code) == (0, "")


def run_alone(code: str) -> tuple[int, str]:
    """Run code in a process of its own: its exit status, negative for a signal, and the end of stderr."""
    root = Path(shine.__file__).parents[1]
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=60)
    return done.returncode, done.stderr[-300:]
