"""Formulas read from the text of any engine, against Python's own arithmetic and Shine's reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from quality.formulas import parse_formula
from strategies import PARAMETERS, trees

from shine.lang.interpret import evaluate

SHARED = ("add", "sub", "mul", "div", "sqrt", "square", "exp", "log", "sin", "cos", "neg", "abs", "tanh")
"""Primitives that mean the same in Shine and in the text of other engines."""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x*y - 3/x", 2.0 * 5.0 - 3 / 2.0),
        ("-x**2", -4.0),
        ("(-x)**2", 4.0),
        ("x^3", 8.0),
        ("x**-2", 0.25),
        ("x**3.0", 8.0),
        ("1/x**1e400", 0.0),
        ("((-2.5) * x) ^ 2", 25.0),
        ("ln(x) + log(x)", 2 * math.log(2.0)),
        ("arcsin(1/x)", math.pi / 6),
        ("2*pi", 2 * math.pi),
        ("add(mul(x, y), square(x))", 14.0),
        ("protected_div(x, sub(y, y))", 1.0),
        ("protected_log(sub(x, x))", 0.0),
        ("protected_sqrt(sub(x, 6))", 2.0),
        ("harmonic(y)", 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5),
    ],
)
def test_text_has_the_value_of_python(text, value):
    assert parse_formula(text, ["x", "y"]).predict(np.array([[2.0, 5.0]])) == pytest.approx([value], rel=1e-15)


@given(trees(SHARED))
def test_formulas_that_shine_prints_are_read_with_the_same_values(tree):
    X = np.random.default_rng(0).uniform(-3, 3, (20, len(PARAMETERS)))
    with np.errstate(all="ignore"):
        expected = np.broadcast_to(evaluate(tree, list(X.T)), (20,))
    np.testing.assert_allclose(parse_formula(str(tree), PARAMETERS).predict(X), expected, rtol=1e-12)


def test_a_constant_keeps_all_its_digits():
    assert parse_formula("x + 0.15915494309189535", ["x"]).constants == ("0.15915494309189535",)


@pytest.mark.parametrize(
    ("text", "size"),
    [("x", 1), ("x + 1", 3), ("x**2", 2), ("square(x)", 2), ("x*x", 3), ("-3.0*x", 3), ("-x", 2), ("x**3", 3)],
)
def test_size_counts_nodes(text, size):
    assert parse_formula(text, ["x"]).size == size


@pytest.mark.parametrize(
    "text", ["", "x +", "z", "x if x else 1", "x.real", "f(x)", "sin(x, key=1)", "'x'", "True", "x[0]", "lambda: x"]
)
def test_other_text_is_rejected(text):
    with pytest.raises(ValueError, match="formula"):
        parse_formula(text, ["x"])
