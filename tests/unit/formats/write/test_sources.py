"""Columns are found by their original headings, whatever these are: the databases and data frames themselves say so."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pandas
import polars
import pytest
from helpers.exports import LIBRARIES
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shine.base.errors import ExportError
from shine.formats.write import export
from shine.formats.write.excel import excel_formula
from shine.formats.write.json import from_json, json_headings, to_json
from shine.formats.write.sql import sql_expression
from shine.lang.forms.names import distinct_names
from shine.lang.parse import parse

AWKWARD = [
    "my area (m²)", "unit price (€)", 'the "best"', "it's", "back`tick", "[x]", "a;DROP TABLE data;--", "two\nlines",
    "tab\tbed", "Площадь, м²", "面积", "🏠 rooms", "select", "Order", "1st", "x.y", "%d {0} {}", "\\n", "*", "^a.*$",
    "$1", " padded ", "/* comment */", "# heading", 'end"""', "a" * 300, "pl", "np", "frame", "f", "é", "e\u0301",
    "sin",
    "lambda", "\u202eright", "NaN", "null", "rowid",
]  # fmt: skip

A, B = np.array([2.0, 3.5, -1.25]), np.array([4.0, 0.5, 8.0])
EXPECTED = 2.5 * A**2 + np.maximum(B, 1.0)


def formula(*headings):
    names = distinct_names(headings)
    tree = parse(f"2.5*{names[0]}**2 + max({names[1]}, 1)", names)
    return tree, dict(zip(names, headings, strict=True))


def in_sqlite(text, headings):
    columns = ", ".join('"' + heading.replace('"', '""') + '" REAL' for heading in headings)
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"CREATE TABLE data ({columns})")
        base.executemany("INSERT INTO data VALUES (?, ?)", np.transpose([A, B]).tolist())
        return [value for (value,) in base.execute(f"SELECT {text} FROM data ORDER BY rowid")]


def defined(source, name="f"):
    space = {}
    exec(compile(source, "export", "exec"), space)
    return space[name]


def test_duckdb_finds_each_column():
    connection = pytest.importorskip("duckdb").connect()
    for heading in AWKWARD:
        tree, headings = formula(heading, "other one")
        columns = ", ".join('"' + each.replace('"', '""') + '" DOUBLE' for each in headings.values())
        connection.execute(f"CREATE OR REPLACE TABLE data ({columns})")
        connection.executemany("INSERT INTO data VALUES (?, ?)", np.transpose([A, B]).tolist())
        text = sql_expression(tree, dialect="duckdb", headings=headings)
        found = connection.sql(f"SELECT {text} AS value FROM data").fetchnumpy()["value"]
        np.testing.assert_array_equal(found, EXPECTED, heading)


@pytest.mark.slow
@pytest.mark.parametrize("heading", [*AWKWARD, ""])
def test_pandas_and_polars_find_the_column(heading):
    tree, headings = formula(heading, "other one")
    columns = {heading: A, "not used": A, "other one": B}
    series = defined(export(tree, "pandas", headings=headings))(pandas.DataFrame(columns, index=[7, 8, 9]))
    np.testing.assert_array_equal(series, EXPECTED)
    assert list(series.index) == [7, 8, 9]
    found = polars.DataFrame(columns).select(defined(export(tree, "polars", headings=headings))).to_series()
    np.testing.assert_array_equal(found, EXPECTED)


@pytest.mark.parametrize("heading", [*AWKWARD, "", "\0"])
def test_comments_of_code_stay_comments(heading):
    tree, headings = formula(heading, "other one")
    function = defined(export(tree, "python", "value", headings=headings), "value")
    np.testing.assert_array_equal(function(A, B), EXPECTED)
    text = export(tree, "c", headings=headings)
    assert text.count("/*") == text.count("*/") == export(tree, "c").count("/*")
    assert json_headings(export(tree, "json", headings=headings)) == headings


def test_columns_of_whole_numbers_are_not_computed_with_whole_numbers():
    tree = parse("a*a - b/2")
    columns = {"a": np.array([200, 3], np.uint8), "b": np.array([1, 2], np.int8)}
    expected = [40_000 - 0.5, 9 - 1.0]
    assert list(defined(export(tree, "pandas"))(pandas.DataFrame(columns))) == expected
    assert polars.DataFrame(columns).select(defined(export(tree, "polars")))["f"].to_list() == expected


def test_missing_values_stay_missing():
    tree = parse("2*a")
    frame = pandas.DataFrame({"a": pandas.array([1, None], "Int64")})
    np.testing.assert_array_equal(defined(export(tree, "pandas"))(frame), [2.0, np.nan])
    assert polars.DataFrame({"a": [1, None]}).select(defined(export(tree, "polars")))["f"].to_list() == [2.0, None]


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_headings_that_differ_by_case_only_are_refused_where_a_table_cannot_have_both(dialect):
    tree, headings = formula("Price", "price")
    with pytest.raises(ExportError, match="but 'Price' is for it the same as 'price'; rename one"):
        sql_expression(tree, dialect=dialect, headings=headings)
    with pytest.raises(sqlite3.OperationalError, match="duplicate column name"):
        in_sqlite("1", headings.values())


@pytest.mark.parametrize("form", ["sql", "pandas", "polars"])
def test_two_columns_of_one_heading_are_refused_if_the_formula_uses_one(form):
    tree = parse("2*a", ["a", "a_2", "b"])
    headings = {"a": "a", "a_2": "a", "b": "b"}
    with pytest.raises(ExportError, match="finds columns by heading, but two have the heading 'a'; rename one of them"):
        export(tree, form, headings=headings)
    assert export(parse("2*b", ["a", "a_2", "b"]), form, headings=headings)


@pytest.mark.parametrize(("heading", "problem"), [("", "without a name"), ("a\0b", "with a NUL character")])
def test_sql_says_which_column_it_cannot_name(heading, problem):
    with pytest.raises(ExportError, match=rf"duckdb\) has no column {problem}; name the column of 'x' with columns="):
        sql_expression(parse("2*x"), dialect="duckdb", headings={"x": heading})
    assert sql_expression(parse("2*x"), {"x": "t.c1"}, dialect="duckdb", headings={"x": heading}) == "2.0E0 * t.c1"


def test_excel_tables_have_their_headings():
    tree, headings = formula("price [€] #1 'net'", "rooms")
    text = excel_formula(tree, "table", headings=headings)
    assert text == "=2.5*[@[price '[€'] '#1 ''net'']]^2 + MAX([@[rooms]], 1)"
    with pytest.raises(ValueError, match="cells is a mapping of features to cells, or 'table'; it is 'tables'"):
        excel_formula(tree, "tables")
    with pytest.raises(ExportError, match="without a heading"):
        excel_formula(parse("2*x"), "table", headings={"x": ""})


def test_json_keeps_headings_and_reads_formulas_without_them():
    tree, headings = formula("my area (m²)", "rooms")
    assert from_json(to_json(tree, headings=headings)) == tree
    assert json_headings(to_json(tree)) == {name: name for name in tree.parameters}


def test_an_option_that_a_form_lacks_is_refused():
    with pytest.raises(ValueError, match="the export to sql has no option 'dialekt'; it has dialect, columns"):
        export(parse("x"), "sql", dialekt="sqlite")
    with pytest.raises(ValueError, match="the export to c has no option 'dialect'; it has none"):
        export(parse("x"), "c", dialect="sqlite")


@pytest.mark.parametrize("form", ["python", "pandas", "polars", "latex", "json", "c", "excel", "sql"])
def test_every_form_rounds_when_asked(form):
    tree = parse("2.34567*x**12 + 1/3")
    text = export(tree, form, precision=3)
    assert "2.35" in text and "2.345" not in text
    assert "12" in text and "0.3333" not in text
    assert "2.34567" in export(tree, form)
    assert export(tree, form, precision="exact") == export(tree, form)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["python", "c", "torch", "jax", "graphdef", "sympy"])
def test_code_has_the_headings_in_comments(form):
    if form in LIBRARIES:
        pytest.importorskip(LIBRARIES[form])
    tree, headings = formula("my area (m²)", "rooms")
    text = export(tree, form, headings=headings)
    assert "'my area (m²)'" in text and "'rooms'" not in text.partition("Symbol")[0]
    assert "'my area" not in export(tree, form)


def test_onnx_has_the_headings_in_its_metadata():
    onnx = pytest.importorskip("onnx")
    tree, headings = formula("my area (m²)", "rooms")
    (entry,) = onnx.load_from_string(export(tree, "onnx", headings=headings)).metadata_props
    assert (entry.key, json.loads(entry.value)) == ("headings", ["my area (m²)", "rooms"])


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6))
@pytest.mark.slow
def test_any_heading_is_found(heading):
    tree, headings = formula(heading, "other one")
    assume(heading != "other one")
    text = sql_expression(tree, dialect="sqlite", headings=headings)
    np.testing.assert_array_equal(in_sqlite(text, headings.values()), EXPECTED)
    columns = {heading: A, "other one": B}
    np.testing.assert_array_equal(
        defined(export(tree, "pandas", headings=headings))(pandas.DataFrame(columns)), EXPECTED
    )
    found = polars.DataFrame(columns).select(defined(export(tree, "polars", headings=headings))).to_series()
    np.testing.assert_array_equal(found, EXPECTED)
    np.testing.assert_array_equal(defined(export(tree, "python", headings=headings))(A, B), EXPECTED)
