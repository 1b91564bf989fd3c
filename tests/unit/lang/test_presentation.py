"""The notation of people: the same values up to rounding, fewer and more familiar symbols."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse
from shine.lang.presentation import for_people, presented


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-1.0*a", "-a"),
        ("a*-1.0", "-a"),
        ("1.0*a", "a"),
        ("square(a)", "a**2"),
        ("pow(a, 2.0)", "a**2"),
        ("a**1.0", "a"),
        ("a**-1.0", "1/a"),
        ("a**0.5", "sqrt(a)"),
        ("sqrt(a*a + b*b)", "sqrt(a**2 + b**2)"),
        ("3.0*a*a*a*b*b", "3*a**3*b**2"),
        ("(a + 1.0)*(a + 1.0)", "(a + 1)**2"),
        ("exp(a/3.3333333333333335)", "exp(0.3*a)"),
        ("exp(-a/3.3333333333333335)", "exp(-0.3*a)"),
        ("a/0.001", "1000*a"),
        ("a/20.0", "a/20"),
        ("a/3.0", "a/3"),
        ("a/3.141592653589793", "a/pi"),
        ("6.283185307179586*a", "2*pi*a"),
        ("a + -2.0*b", "a - 2*b"),
        ("a - -2.0*b", "a + 2*b"),
        ("-2.0*a + 3.0", "3 - 2*a"),
        ("-0.7 + a", "a - 0.7"),
        ("-(a - b)", "b - a"),
        ("-a*-b", "a*b"),
        ("a/(0.0 - b)", "-a/b"),
        ("a*inv(b)", "a/b"),
        ("a*2.0*b", "2*a*b"),
        ("where(a < b, a*a, -1.0*b)", "a**2 if a < b else -b"),
        ("min(-1.0*a, b)", "min(-a, b)"),
    ],
)
def test_formulas_are_written_as_people_write_them(text, expected):
    assert presented(parse(text)).readable == expected


LEAVES = st.sampled_from(["a", "b", "1.0", "-1.0", "2.0", "0.25", "-3.7", "0.0", "3.3333333333333335"])
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
        inner.map(lambda text: f"-({text})"),
        inner.map(lambda text: f"square({text})"),
        inner.map(lambda text: f"sin({text})"),
    ),
    max_leaves=12,
)


@given(FORMULAS)
def test_the_values_stay_the_same_up_to_rounding(text):
    columns = [np.array([0.3, -1.7, 2.9]), np.array([1.3, 0.4, -2.1])]
    tree = parse(text, ("a", "b"))
    shown = parse(presented(tree).readable, ("a", "b"))
    with np.errstate(all="ignore"):
        # Rounding decides what a difference of equal numbers is, so only well-conditioned formulas are compared.
        shaken = [column * (1 + 1e-13) for column in columns]
        before, near, after = (evaluate(t, c) for t, c in ((tree, columns), (tree, shaken), (shown, columns)))
        before, near, after = (np.broadcast_to(values, (3,)) for values in (before, near, after))
        allowed = 1e-9 * np.abs(before) + 1e3 * np.abs(near - before) + 1e-12
        differences = np.abs(after - before)
    compared = np.isfinite(before) & np.isfinite(near) & (allowed < 1e-3)
    assert (differences[compared] <= allowed[compared]).all()


@pytest.mark.slow
def test_a_formula_may_be_deeper_than_the_stack():
    node: ast.expr = ast.Name("a", ast.Load())
    for _ in range(20_000):
        node = ast.BinOp(node, ast.Mult(), ast.UnaryOp(ast.USub(), ast.Name("b", ast.Load())))
    assert presented(Tree(("a", "b"), node)).readable.startswith("a*b**1000*b**1000*")


def test_constants_are_rounded_after_divisors_have_become_factors():
    assert for_people(parse("exp(a/3.3333333333333335) + 2.34567*a"), 2).readable == "exp(0.3*a) + 2.3*a"


def test_a_factor_that_is_rounded_to_one_is_left_out():
    assert for_people(parse("1.0004*a - 0.99998*b"), 3).readable == "a - b"


def test_exact_means_the_tree_as_it_is():
    tree = parse("1.0*a/3.3333333333333335")
    assert for_people(tree, "exact") is tree


def test_the_digits_that_the_data_support_are_the_default():
    tree = parse("2.34567*a")
    assert [for_people(tree, None, digits).readable for digits in (None, 3)] == ["2.34567*a", "2.35*a"]


def test_values_with_names_are_written_like_results():
    tree = parse("def f(a):\n    t = square(a)\n    return t*-1.0 + t")
    assert presented(tree).readable == "def f(a):\n    t = a**2\n    return t - t"
