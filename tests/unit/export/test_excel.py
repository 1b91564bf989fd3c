"""The text is read by an evaluator with Excel's own precedence, and compared with the reference tier."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from helpers.equality import same_bits, ulps
from helpers.formulas import FEATURES, random_tree
from helpers.rows import random_rows
from hypothesis import given
from strategies import trees
from unit.export.oracles import Reader, expected_where, tokens

from shine.errors import ExportError
from shine.export.excel import DEEPEST, LONGEST, column_letters, excel_formula
from shine.lang.library import STANDARD
from shine.lang.parse import parse
from shine.lang.tape import application
from shine.lang.tree import Primitive, Tree

FUNCTIONS: dict[str, Any] = {
    "ABS": np.abs, "SQRT": np.sqrt, "EXP": np.exp, "LN": np.log, "LOG10": np.log10, "INT": np.floor, "SIGN": np.sign,
    "SIN": np.sin, "COS": np.cos, "TAN": np.tan, "ASIN": np.arcsin, "ACOS": np.arccos, "ATAN": np.arctan,
    "SINH": np.sinh, "COSH": np.cosh, "TANH": np.tanh, "ATANH": np.arctanh,
    "LOG": lambda x, base: np.log(x) / np.log(base),
    "MOD": np.remainder,
    "MIN": lambda a, b: np.where((a < b) | (a != a), a, b),
    "MAX": lambda a, b: np.where((a > b) | (a != a), a, b),
    "IF": lambda condition, a, b: np.where(boolean(condition), a, b),
    "AND": lambda *conditions: np.logical_and.reduce([boolean(c) for c in conditions]),
    "OR": lambda *conditions: np.logical_or.reduce([boolean(c) for c in conditions]),
    "NOT": lambda condition: ~boolean(condition),
}  # fmt: skip
COMPARISONS = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "=": np.equal, "<>": np.not_equal,
}  # fmt: skip
BINARY: dict[str, tuple[int, Any]] = {
    **{symbol: (1, rule) for symbol, rule in COMPARISONS.items()},
    "+": (3, np.add),
    "-": (3, np.subtract),
    "*": (4, np.multiply),
    "/": (4, np.divide),
    "^": (5, lambda a, b: a * a if np.ndim(b) == 0 and b == 2 else a * a * a if np.ndim(b) == 0 and b == 3 else a**b),
}
"""Strength and meaning of Excel's operators; all group to the left, and a minus sign binds more strongly than any."""

TOKEN = r"[A-Z]+[0-9]+(?![0-9(])|[A-Z]+[0-9]*(?=\()|[0-9.]+(?:E[+-][0-9]+)?|#NUM!|<>|<=|>=|[-+*/^=<>(),]| +"
COLUMNS = random_rows(np.random.default_rng(1), 10_000, "float64")


def boolean(condition: Any) -> Any:
    assert np.asarray(condition).dtype == bool, "a number where Excel's text says a condition"
    return condition


class ExcelReader(Reader):
    def expression(self, minimum: int = 0) -> Any:
        left = self.prefix()
        while self.token in BINARY and BINARY[self.token][0] > minimum:
            strength, rule = BINARY[self.next()]
            left = rule(left, self.expression(strength))
        return left

    def prefix(self) -> Any:
        return -self.prefix() if self.accept("-") else self.atom()

    def atom(self) -> Any:
        token = self.next()
        if token == "(":
            value = self.expression()
            self.expect(")")
            return value
        if token == "PI":
            self.expect("(")
            self.expect(")")
            return np.float64(np.pi)
        if token in FUNCTIONS:
            self.expect("(")
            arguments = [self.expression()]
            while self.accept(","):
                arguments.append(self.expression())
            self.expect(")")
            return FUNCTIONS[token](*arguments)
        if token == "#NUM!":
            return np.float64(np.nan)
        return self.values[token] if token in self.values else np.float64(token)


def evaluated(formula: str, columns: Any) -> Any:
    assert formula[0] == "="
    values = {f"{column_letters(i)}1": column for i, column in enumerate(columns)}
    reader = ExcelReader(tokens(TOKEN, formula[1:]), values)
    with np.errstate(all="ignore"):
        return np.broadcast_to(reader.whole(reader.expression), columns[0].shape)


def test_the_evaluator_knows_the_traps_of_excel():
    x = np.array([3.0])
    assert evaluated("=-2^2", [x]) == 4
    assert evaluated("=2^3^2", [x]) == 64
    assert evaluated("=1-2^-1*-A1", [x]) == 2.5
    assert evaluated("=IF(A1-1=2, 7, 8)", [x]) == 7


OWN_ROUNDING = {"log1p": 6, "expm1": 6, "hypot": 4, "cbrt": 128, "log2": 4, "log10": 2, "pow": 2}
SAME = tuple(name for name in STANDARD if name not in {*OWN_ROUNDING, "floordiv"})


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


@pytest.mark.parametrize("seed", range(40))
def test_random_trees_have_the_bits_of_the_reference_tier_where_all_is_finite(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, SAME, int(rng.integers(1, 30)))
    expected, finite = expected_where(tree, COLUMNS, np.isfinite)
    formula = excel_formula(tree)
    assert same_bits(evaluated(formula, COLUMNS), expected)[finite].all(), formula


@given(trees())
def test_any_tree_is_exported_or_refused(tree):
    try:
        formula = excel_formula(tree)
    except ExportError as error:
        assert "at most 8191 are allowed" in str(error) or "levels deep" in str(error)
    else:
        evaluated(formula, [column[:3] for column in COLUMNS])


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


def test_columns_are_lettered_as_in_excel():
    assert [column_letters(i) for i in (0, 25, 26, 51, 52, 701, 702, 16383)] == [
        "A", "Z", "AA", "AZ", "BA", "ZZ", "AAA", "XFD",
    ]  # fmt: skip


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
    unknown = Tree(("x",), ast.Call(ast.Name("gamma", ast.Load()), [ast.Name("x", ast.Load())], []))
    with pytest.raises(ExportError, match="primitive 'gamma' cannot be exported to Excel"):
        excel_formula(unknown)
