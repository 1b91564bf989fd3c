"""Constants rounded for people."""

import ast
from dataclasses import replace

import numpy as np
import pytest

from shine.lang.forms.rounding import rounded_number, rounded_tree
from shine.lang.parse import parse


def text(formula, *arguments, **options):
    return rounded_tree(parse(formula), *arguments, **options).readable


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("2.34567*x + 1234.56", "2.35*x + 1230"),
        ("0.000123456*x", "0.000123*x"),
        ("-1.23456*x", "-1.23*x"),
        ("sin(1.23456*x)/log(9.87654)", "sin(1.23*x)/log(9.88)"),
        ("1.23456 if x > 2.34567 and y < 3.45678 else -4.56789", "1.23 if x > 2.34567 and y < 3.45678 else -4.57"),
        ("123456*x", "123000*x"),
    ],
)
def test_constants_have_so_many_significant_digits(formula, expected):
    assert text(formula, 3) == expected


@pytest.mark.parametrize("formula", ["x**12", "x**-12", "pow(x, 12)", "6.283185307179586*x", "x/3", "1/3*x"])
def test_whole_exponents_and_numbers_with_names_stay(formula):
    assert rounded_tree(parse(formula), 1) == parse(formula)


def test_code_has_neither_names_nor_fractions():
    assert str(rounded_tree(parse("3.141592653589793*x + 1/3"), 3, named=False)) == "3.14*x + 0.333"


def test_a_feature_called_pi_makes_pi_a_number():
    assert rounded_tree(parse("3.141592653589793*pi", ["pi"]), 3).readable == "3.14*pi"


def test_assigned_values_are_rounded():
    tree = parse("def f(x):\n    t = 1.23456*x\n    return t*t")
    assert "t = 1.2*x" in str(rounded_tree(tree, 2))


def test_nothing_is_rounded_unless_the_data_say_so():
    tree = parse("2.34567*x")
    assert rounded_tree(tree, None) is tree
    assert rounded_tree(tree, "exact", supported=2) is tree
    assert rounded_tree(tree, 17) is tree
    assert rounded_tree(tree, None, supported=2).readable == "2.3*x"
    assert rounded_tree(tree, np.int64(4), supported=2).readable == "2.346*x"


@pytest.mark.parametrize("precision", [0, -1, True, 2.0, "all", "3"])
def test_another_precision_is_refused(precision):
    with pytest.raises(ValueError, match="precision is a number of significant digits from 1 on, 'exact' or None"):
        rounded_tree(parse("x"), precision)


@pytest.mark.parametrize("value", [1.7976931348623157e308, float("inf"), 10**400])
def test_a_number_without_a_rounded_one_stays(value):
    assert rounded_number(value, 2) == value


def test_a_deep_formula_is_rounded():
    depth = 20_000
    tree = parse("x")
    result = tree.result
    for _ in range(depth):
        result = ast.BinOp(result, ast.Add(), ast.Constant(1.25))
    assert rounded_tree(replace(tree, result=result), 2).size == 2 * depth + 1
