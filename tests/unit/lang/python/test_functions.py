"""Translated random functions with `if` and `try` compute the same as Python."""

from __future__ import annotations

import importlib.util
import random
import sys
from itertools import product

import numpy as np
import pytest

from shine.lang.interpret import evaluate
from shine.lang.python.functions import Functions

FUNCTIONS = ["sqrt", "log", "exp", "sin", "floor", "asin", "cosh", "log1p"]
HANDLERS = [
    ["ZeroDivisionError"],
    ["(ZeroDivisionError, OverflowError)"],
    ["ValueError", "ArithmeticError"],
    ["Exception"],
    ["OverflowError", "ValueError", "ZeroDivisionError"],
]
ROWS = list(product([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.5, 800.0], repeat=2))
DEPTH = 2


class Writer:
    """Writes the text of random functions."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def expression(self, depth, names):
        if depth <= 0 or self.random.random() < 0.15:
            return self.random.choice([*names, "1", "2.0", "0", "-1.5", "0.5"])
        a, b, c, d = (self.expression(depth - 1, names) for _ in range(4))
        operator, function = self.random.choice(["+", "-", "*", "/", "/", "//", "%"]), self.random.choice(FUNCTIONS)
        comparison, junction = self.random.choice(["<", ">", "==", "<="]), self.random.choice(["and", "or"])
        kinds = [f"({a} {operator} {b})"] * 5 + [f"math.{function}({a})"] * 3
        kinds += [f"({a} if {b} {comparison} {c} else {d})", f"({a} {junction} {b})", f"({a} < {b} <= {c})"]
        return self.random.choice([*kinds, f"{self.random.choice(['min', 'max'])}({a}, {b})"])

    def block(self, count, depth, names, indent, in_try):
        """Lines of statements, up to the first that returns."""
        lines, names, inner = [], list(names), indent + "    "
        for _ in range(count):
            kind = self.random.random()
            if kind < 0.15 and depth:
                lines.append(f"{indent}if {self.expression(2, names)}:")
                lines += self.block(self.random.randint(1, 2), depth - 1, names, inner, in_try)
                if self.random.random() < 0.5:
                    lines += [f"{indent}else:", *self.block(1, depth - 1, names, inner, in_try)]
            elif kind < 0.45 and depth and not in_try:
                lines += [f"{indent}try:", *self.block(self.random.randint(1, 3), depth - 1, names, inner, True)]
                for handler in self.random.choice(HANDLERS):
                    body = [f"{inner}pass"] if self.random.random() < 0.2 else self.block(1, 0, names, inner, True)
                    lines += [f"{indent}except {handler}:", *body]
            elif kind < 0.6:
                return [*lines, f"{indent}return {self.expression(3, names)}"]
            else:
                name = self.random.choice("xyzw")
                operator = self.random.choice(["=", "+=", "/="]) if name in names else "="
                lines.append(f"{indent}{name} {operator} {self.expression(3, names)}")
                if depth == DEPTH and name not in names:
                    names.append(name)
        return lines

    def function(self, name):
        body = self.block(self.random.randint(1, 4), DEPTH, ["x", "y"], "    ", False)
        return [f"def {name}(x, y):", *body, f"    return {self.expression(2, ['x', 'y'])}", ""]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A module of random functions: their source is read from the file."""
    writer, path = Writer(5), tmp_path_factory.mktemp("functions") / "random_functions.py"
    lines = ["import math", "", *(line for number in range(60) for line in writer.function(f"f{number}"))]
    path.write_text("\n".join(lines), encoding="utf-8")
    specification = importlib.util.spec_from_file_location("random_functions", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["random_functions"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["random_functions"]


def test_random_functions_have_the_values_of_python(written):
    columns, compared = [np.array(column) for column in zip(*ROWS, strict=True)], 0
    for function in (value for name, value in vars(written).items() if name.startswith("f")):
        functions = Functions()
        definition = functions.table[functions.primitive(function, 2, function.__name__)].definition
        for row, ours in zip(ROWS, evaluate(definition, columns).tolist(), strict=True):
            try:
                theirs = float(function(*row))
            except (ArithmeticError, ValueError, UnboundLocalError):
                continue  # not caught within the function
            assert ours == pytest.approx(theirs, rel=1e-11, nan_ok=True), (function.__name__, row)
            compared += 1
    assert compared > 1500
