"""The expression's values in long arithmetic are those of the formula."""

from __future__ import annotations

import ast

import mpmath
import numpy as np
import pytest
from helpers.formulas import FEATURES, random_tree
from unit.formats.write.oracles import Undefined, close, exact, run

from shine.base.errors import ExportError
from shine.formats.write.sympy import sympy_expression, sympy_source
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.parse import parse

sympy = pytest.importorskip("sympy")

POINTS = [dict(zip(FEATURES, np.round(np.random.default_rng(i).normal(size=3) * 2, 3), strict=True)) for i in range(4)]


def value_of(expression, names, point):
    symbols = [sympy.Symbol(name, real=True) for name in names]
    with mpmath.workdps(60):
        return sympy.lambdify(symbols, expression, "mpmath")(*(mpmath.mpf(float(point[name])) for name in names))


@pytest.mark.parametrize("name", STANDARD)
def test_each_primitive_keeps_its_value(name):
    names = FEATURES[: STANDARD[name].arity]
    tree = parse(f"{name}({', '.join(names)})", names)
    seen = 0
    for point in [*POINTS, {"a": 0.25, "b": 0.5, "c": 0.75}, {"a": 0.0, "b": 0.0001, "c": 1.0}]:
        try:
            wanted = exact(tree, [point[key] for key in names])
        except Undefined:
            continue
        seen += 1
        assert close(value_of(sympy_expression(tree), names, point), wanted, 1e-40)
    assert seen


def test_random_trees_keep_their_values():
    seen = 0
    for seed in range(14):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, tuple(STANDARD), int(rng.integers(3, 10)))
        try:
            expression = sympy_expression(tree)
            again = run(sympy_source(tree) + "\ndef value():\n    return f\n", "value")()
        except ExportError as error:
            # Values that are not real have no order.
            assert "SymPy cannot hold the formula" in str(error)
            continue
        for point in POINTS:
            try:
                wanted = exact(tree, list(point.values()))
            except Undefined:
                continue
            seen += 1
            # SymPy rounds intermediate results to 53 bits.
            assert close(value_of(expression, FEATURES, point), wanted, 1e-9), str(tree)
            assert close(value_of(again, FEATURES, point), wanted, 1e-9), sympy_source(tree)
    assert seen > 8


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("x*x*2.5 + sqrt(square(y))", "2.5*x**2 + Abs(y)"),
        ("x/3 + x*2.0", "7*x/3"),
        ("x if x > 0 else min(x, y)", "Piecewise((x, x > 0), (Min(x, y), True))"),
        ("(x < y) + 1", "Piecewise((1, x < y), (0, True)) + 1"),
        ("floor(x) + x % 2 - log(x)", "-log(x) + Mod(x, 2) + floor(x)"),
        ("6.283185307179586*sqrt(x/y)", "2*pi*sqrt(x/y)"),
        ("-17.32050807568877*x", "-10*sqrt(3)*x"),
    ],
)
def test_expressions_are_those_one_would_write(formula, expected):
    assert str(sympy_expression(parse(formula))) == expected


def test_symbols_are_real_and_called_as_the_features():
    expression = sympy_expression(parse("lambda_*S + beta", ["lambda_", "S", "beta"]))
    assert expression.free_symbols == {sympy.Symbol(name, real=True) for name in ("lambda_", "S", "beta")}


def test_the_source_builds_the_same_expression_to_the_last_digit():
    for formula in ("0.30000000000000004*x/3", "2**(1/3) + x", "7", "x*S - pi_", "x if (x > 0 and y != 1) else -x**y"):
        tree = parse(formula)
        again = run(sympy_source(tree) + "\ndef value():\n    return f\n", "value")()
        assert again == sympy_expression(tree)


def test_functions_of_the_user_are_written_out():
    table = {**STANDARD, "twice": Primitive("twice", 1, parse("def twice(x):\n    t = x + 1\n    return t*2"))}
    assert sympy_expression(parse("twice(y)", primitives=table)) == 2 * sympy.Symbol("y", real=True) + 2


def test_a_formula_that_sympy_cannot_hold_is_refused():
    with pytest.raises(ExportError, match="SymPy cannot hold the formula"):
        sympy_expression(parse("sqrt(-1) < x"))
    with pytest.raises(ExportError, match="SymPy cannot hold the formula: a part of it is infinite or undefined"):
        sympy_expression(parse("x if x > 1 else 1/(x - x)"))
    with pytest.raises(ValueError, match="is not a name for a Python variable"):
        sympy_source(parse("x"), "my model")


@pytest.mark.slow
def test_formulas_of_ten_thousand_levels_are_exported_or_refused():
    node = ast.Name("x", ast.Load())
    for _ in range(10_000):
        node = application("sin", [node])
    try:
        assert sympy_expression(Tree(("x",), node)).func == sympy.sin
    except ExportError as error:
        assert "nested too deeply for SymPy" in str(error)
