"""The text is read by an evaluator with Excel's own precedence, and compared with the reference tier."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from helpers.equality import ulps
from helpers.formulas import FEATURES
from helpers.rows import random_rows
from unit.formats.write.oracles import expected_where
from unit.formats.write.spreadsheet import evaluated

from shine.base.errors import ExportError
from shine.formats.write.excel import DEEPEST, LONGEST, excel_formula
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.parse import parse

COLUMNS = random_rows(np.random.default_rng(1), 10_000, "float64")


OWN_ROUNDING = {"log1p": 6, "expm1": 6, "hypot": 4, "cbrt": 128, "log2": 4, "log10": 4, "pow": 2}


@pytest.mark.parametrize("name", STANDARD)
def test_each_primitive_has_the_values_of_the_reference_tier_where_they_are_finite(name):
    columns = COLUMNS[: STANDARD[name].arity]
    tree = parse(f"{name}({', '.join(FEATURES[: len(columns)])})", FEATURES[: len(columns)])
    expected, finite = expected_where(tree, columns, np.isfinite)
    off = ulps(evaluated(excel_formula(tree), columns), expected)[finite]
    assert finite.sum() > 1000
    # The floor of a rounded quotient can be one more than the rounded floor.
    within = off <= OWN_ROUNDING.get(name, 0)
    assert within.all() if name != "floordiv" else within.mean() > 0.9


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("-a**2 + (-a)**2 + (-2)**a", "=-(A1^2) + (-A1)^2 + (-2)^A1"),
        ("a**b**2 + (a**b)**2 + a**-b", "=A1^(B1^2) + (A1^B1)^2 + A1^-B1"),
        ("(a + b)*3 - (a - -2.5e-7)", "=3*(A1 + B1) - (A1 + 2.5E-07)"),
        ("a if a < b <= 2 else log(b)", "=IF(AND(A1<B1, B1<=2), A1, LN(B1))"),
        ("(a > b) + (not b)", "=IF(A1>B1, 1, 0) + IF(B1=0, 1, 0)"),
        ("ceil(a)*1e308", "=(5E+307*2)*-INT(-A1)"),
        ("cbrt(a)", "=SIGN(A1)*ABS(A1)^(1/3)"),
        ("-4.1887902047863905*a**3", "=-(4*PI()/3)*A1^3"),
        ("a/3.141592653589793 + 1.4142135623730951", "=A1/PI() + SQRT(2)"),
        ("4*exp(a/-26.0)", "=4*EXP(-A1/26)"),
    ],
)
def test_formulas_read_as_one_would_write_them(formula, expected):
    assert excel_formula(parse(formula)) == expected


def test_columns_can_be_anywhere():
    tree = parse("speed/weight", ["weight", "speed", "unused"])
    assert excel_formula(tree) == "=B1/A1"
    assert excel_formula(tree, {"speed": "[@speed]", "weight": "$C$7"}) == "=[@speed]/$C$7"
    with pytest.raises(ValueError, match="cells lacks the feature 'weight'; it has speed"):
        excel_formula(tree, {"speed": "D2"})


def test_functions_of_the_user_are_written_out():
    own = parse("def twice(x, y):\n    half = x/2\n    return half if half > y else y")
    table = {**STANDARD, "twice": Primitive("twice", 2, own)}
    assert excel_formula(parse("twice(a, 3)", primitives=table)) == "=IF(A1/2>3, A1/2, 3)"


def test_a_formula_that_excel_cannot_hold_is_refused():
    deep = ast.Name("x", ast.Load())
    for _ in range(10_000):
        deep = application("sin", [deep])
    with pytest.raises(ExportError, match=f"too long for Excel: it has 50002 characters, at most {LONGEST - 1} are"):
        excel_formula(Tree(("x",), deep))
    nested = parse("sin(" * 65 + "x" + ")" * 65)
    with pytest.raises(ExportError, match=f"nested 65 levels deep; Excel allows {DEEPEST}"):
        excel_formula(nested)
    named = {"cells": "table", "headings": {"x": "a'(" + "(" * 70}}
    assert excel_formula(parse("2*x"), **named).startswith("=2*[@[a''((")
    assert excel_formula(parse("2*x"), {"x": f"'{'(' * 70}'!A1"}).startswith("=2*'((")
