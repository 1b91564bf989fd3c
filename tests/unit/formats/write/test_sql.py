"""The expressions are computed by SQLite, and by DuckDB where it is installed."""

from __future__ import annotations

import ast
import sqlite3
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from helpers.equality import ulps
from helpers.formulas import EXACT, FEATURES, random_tree
from helpers.markers import mostly_slow
from helpers.rows import random_rows
from unit.formats.write.oracles import expected_where

from shine.base.errors import ExportError
from shine.formats.write.sql import DIALECTS, quoted, sql_expression
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

COLUMNS = random_rows(np.random.default_rng(1), 10_000, "float64")
ULPS = {"log1p": 8, "expm1": 8, "hypot": 4, "cbrt": 128, "log2": 4, "sigmoid": 6, "aq": 4}
"""How far a primitive may be off that is made of several operations; all others 2 ulp."""

STRUCTURAL = (*EXACT, "neg", "abs", "min", "max", "floor", "ceil", "sign", "where", "lt", "le", "gt", "ge", "eq", "ne",
              "logical_and", "logical_or", "logical_not", "floordiv", "mod", "inv", "relu", "protected_div",
              "protected_sqrt")  # fmt: skip


def selected(text: str, names: tuple[str, ...], columns: Any) -> Any:
    """Values of an expression in SQLite, NULL as NaN."""
    with closing(sqlite3.connect(":memory:")) as base:
        columns_of_table = ", ".join(f'"{name}" DOUBLE PRECISION' for name in names)
        base.execute(f"CREATE TABLE data ({columns_of_table})")
        marks = ", ".join("?" * len(names))
        base.executemany(f"INSERT INTO data VALUES ({marks})", np.array(columns).T.tolist())
        rows = base.execute(f"SELECT {text} FROM data ORDER BY rowid").fetchall()
    base.close()
    return np.array([np.nan if value is None else value for (value,) in rows], np.float64)


def not_infinite(values: Any) -> Any:
    return ~np.isinf(values)


@pytest.mark.parametrize("name", mostly_slow(STANDARD, fast=list(STANDARD)[::8]))
def test_sqlite_has_the_values_of_each_primitive_unless_they_are_infinite(name):
    columns = COLUMNS[: STANDARD[name].arity]
    names = FEATURES[: len(columns)]
    tree = parse(f"{name}({', '.join(names)})", names)
    # SQLite keeps NaN as NULL, and has NULL where a divisor is 0 or an argument outside of a domain.
    # In NumPy as in C, but not in SQL, powers of NaN may be 1.
    expected, kept = expected_where(tree, columns, np.isfinite if name == "pow" else not_infinite)
    found = selected(sql_expression(tree, dialect="sqlite"), names, columns)
    assert kept.sum() > 4000
    assert (ulps(found, expected)[kept] <= ULPS.get(name, 2)).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_random_trees_have_the_values_of_the_reference_tier_in_sqlite(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, STRUCTURAL, int(rng.integers(1, 40)))
    columns = [column[:2000] for column in COLUMNS]
    expected, kept = expected_where(tree, columns, not_infinite)
    text = sql_expression(tree, dialect="sqlite")
    found = selected(text, FEATURES, columns)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    assert same[kept].all(), text


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("-a**2 + (-a)**2 - -3*b", "-POWER(a, 2.0) + POWER(-a, 2.0) + 3.0 * b"),
        ("--a - -(-3)", "-(-a) - 3.0"),
        ("(a + b)*(a - 1e-10)/2", "(a + b) * (a - 1E-10) / 2.0"),
        ("a/b + a/2", "CAST(a AS DOUBLE PRECISION) / b + a / 2.0"),
        ("a if a < b <= 2 else log(b)", "CASE WHEN a < b AND b <= 2.0 THEN a ELSE LN(b) END"),
        ("a if b else 1", "CASE WHEN b = 0.0 THEN 1.0 ELSE a END"),
        ("a if b != 2 else 1", "CASE WHEN b = 2.0 THEN 1.0 ELSE a END"),
        ("(not a) + (a != b)", "CASE WHEN a = 0.0 THEN 1.0 ELSE 0.0 END + CASE WHEN a = b THEN 0.0 ELSE 1.0 END"),
        ("1 if a < b or a != 2 else 0", "CASE WHEN a < b OR (a = 2.0) IS NOT TRUE THEN 1.0 ELSE 0.0 END"),
        ("a//2 - a % b", "FLOOR(a / 2.0) - (a - b * FLOOR(CAST(a AS DOUBLE PRECISION) / b))"),
        ("max(a, 0)", "CASE WHEN a > 0.0 THEN a WHEN a <= 0.0 THEN 0.0 END"),
        ("square(a) + square(a + 1)", "a * a + POWER(a + 1.0, 2.0)"),
    ],
)
def test_expressions_read_as_one_would_write_them(formula, expected):
    assert sql_expression(parse(formula)) == expected


def test_dialects_use_the_functions_of_their_database():
    tree = parse("max(a, 0) + a % 2")
    sqlite = "MAX(a, 0.0) + CASE WHEN MOD(a, 2.0) < 0 THEN MOD(a, 2.0) + 2.0 ELSE MOD(a, 2.0) END"
    assert sql_expression(tree, dialect="sqlite") == sqlite.replace("a,", "CAST(a AS REAL),")
    assert sql_expression(parse("cbrt(a)*2"), dialect="postgres") == "2.0 * CBRT(a)"
    assert sql_expression(parse("a*2.5"), dialect="duckdb") == "2.5E0 * a"


QUOTIENTS = (
    "a/b", "(a + 1 - 1)/b", "a//b", "(a*b)/(a + b)", "inv(a)*b", "a/b/b", "min(a, b)/b", "(a if a > b else b)/b",
    "a % b", "abs(a)/b", "(a > b)/b", "sign(a)/b", "hypot(a, b)",
)  # fmt: skip


@pytest.mark.parametrize("formula", QUOTIENTS)
def test_integer_columns_are_not_divided_as_integers(formula):
    a, b = [7, -7, 3, 2], [2, 2, 4, 3]
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE data (a INTEGER, b INTEGER)")
        base.executemany("INSERT INTO data VALUES (?, ?)", zip(a, b, strict=True))
        for dialect in ("standard", "sqlite"):
            text = sql_expression(parse(formula, ["a", "b"]), dialect=dialect)
            found = [value for (value,) in base.execute(f"SELECT {text} FROM data")]
            expected = evaluate(parse(formula, ["a", "b"]), [np.array(a, float), np.array(b, float)])
            assert found == pytest.approx(expected.tolist(), rel=1e-14)
    base.close()


def test_names_are_quoted_where_they_must_be():
    assert [quoted(name) for name in ("speed", "x_1", "Speed", "order", "my col", 'a"b', "é", "1st")] == [
        "speed", "x_1", '"Speed"', '"order"', '"my col"', '"a""b"', '"é"', '"1st"',
    ]  # fmt: skip
    names = ("select", 'a"; DROP TABLE data', "Group")
    tree = Tree(names, ast.BinOp(ast.Name(names[1], ast.Load()), ast.Sub(), ast.Name("Group", ast.Load())))
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"CREATE TABLE data ({', '.join(quoted(name) for name in names)})")
        base.execute("INSERT INTO data VALUES (1.0, 5.0, 2.0)")
        assert base.execute(f"SELECT {sql_expression(tree)} FROM data").fetchall() == [(3.0,)]
    base.close()


def test_columns_can_be_any_expressions():
    assert sql_expression(parse("a*2"), {"a": "t.speed"}) == "2.0 * t.speed"
    with pytest.raises(ValueError, match="columns lacks the feature 'b'; it has a"):
        sql_expression(parse("a*b"), {"a": "t.speed"})


def test_constants_keep_every_digit_unless_told_otherwise():
    for value in (0.1 + 0.2, 5e-324, 1.7976931348623157e308, 1 / 3, 123456789012345680.0, 2.0**53 + 2):
        text = sql_expression(Tree(("a",), ast.Constant(value)), dialect="sqlite")
        assert selected(text, ("a",), [[1.0]]) == value
    assert sql_expression(parse("0.123456*a"), precision=3) == "0.123 * a"


def test_infinity_and_nan_are_written_in_the_database_s_way():
    assert selected(sql_expression(parse("1/0 - a", ["a"]), dialect="sqlite"), ("a",), [[1.0]]) == np.inf
    assert np.isnan(selected(sql_expression(parse("0/0 + a", ["a"]), dialect="sqlite"), ("a",), [[1.0]]))


def test_functions_of_the_user_are_written_out():
    own = parse("def twice(x, y):\n    half = x/2\n    return half if half > y else y")
    table = {**STANDARD, "twice": Primitive("twice", 2, own)}
    text = sql_expression(parse("twice(a, 3)", primitives=table))
    assert text == "CASE WHEN a / 2.0 > 3.0 THEN a / 2.0 ELSE 3.0 END"


@pytest.mark.slow
def test_a_formula_that_sql_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="unknown dialect 'mysql'; use one of standard, sqlite, postgres, duckdb"):
        sql_expression(parse("a"), dialect="mysql")
    deep = ast.Name("x", ast.Load())
    for _ in range(10_000):
        deep = application("sin", [deep])
    with pytest.raises(ExportError, match="nested 10000 levels deep; sqlite allows 1000"):
        sql_expression(Tree(("x",), deep), dialect="sqlite")
    assert sql_expression(Tree(("x",), deep)).count("SIN(") == 10_000
    with pytest.raises(ExportError, match="too long for SQL: it has about 10"):
        sql_expression(parse("\n".join(["def f(x):", *["    x = max(x, x)"] * 100, "    return x"])))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_every_primitive(dialect):
    for name, primitive in STANDARD.items():
        names = FEATURES[: primitive.arity]
        assert sql_expression(parse(f"{name}({', '.join(names)})", names), dialect=dialect)


def test_duckdb_has_the_values_of_each_primitive():
    connection = pytest.importorskip("duckdb").connect()
    connection.register("data", dict(zip(FEATURES, COLUMNS, strict=True)))
    for name, primitive in STANDARD.items():
        names = FEATURES[: primitive.arity]
        tree = parse(f"{name}({', '.join(names)})", names)
        # DuckDB's NaN is equal to itself and greater than every number; a remainder by 0 is NULL.
        ordinary = np.isfinite if name == "floordiv" else lambda values: ~np.isnan(values)
        expected, kept = expected_where(tree, COLUMNS[: len(names)], ordinary)
        text = sql_expression(tree, dialect="duckdb")
        found = connection.sql(f"SELECT {text} AS value FROM data").fetchnumpy()["value"]
        found = np.ma.filled(np.ma.asarray(found, np.float64), np.nan)
        assert (ulps(found, expected)[kept] <= ULPS.get(name, 2)).all(), name
