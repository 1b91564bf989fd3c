"""Queries that are refused: the exact place and what to do."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import shine.pandas  # noqa: F401  # gives data frames their attribute
from shine import UnsupportedSyntaxError

FRAME = pd.DataFrame({
    "mass": [1.0], "i": [1], "u": pd.Series([1], dtype="uint64"), "name": ["a"],
    "t": pd.to_datetime(["2024-01-01"]).as_unit("us"), "tz": pd.to_datetime(["2024-01-01"]).tz_localize("UTC"),
    "flag": [True], "my col": [1], "lists": [[1]],
})  # fmt: skip

REFUSED = {
    "": (None, "the query is empty"),
    "mas > 1": (1, "there is no column 'mas'; did you mean mass? columns are mass, i, u"),
    "i > 0 & mycol > 1": (9, "did you mean `my col`?"),
    "my col > 1": (4, "stands in backticks"),
    "`no such` > 1": (1, "there is no column 'no such'"),
    "mass.between(0, 1, 'neither')": (1, "between takes 2 arguments, not 3"),
    "mass = 1": (6, "write '==' to compare, or assign the result of eval"),
    "round(mass, decimals=1) > 1": (
        21,
        "functions take no keyword arguments; give values in their order, or compute it",
    ),
    "`my col``mass` > 1": (9, "not an expression"),
    "(`my col`)(1) > 1": (2, "'my col' is a column, and cannot be called"),
    "@frame.nothing(mass) > 1": (1, "'@frame' gives no function that queries know"),
    "mass > @frame.nothing": (8, "there is no variable 'frame.nothing'"),
    "mass > @frame.DataFrame": (8, "@frame.DataFrame is type"),
    "mass > 1 && i > 1": (10, "'&&' is not an operator; write '&'"),
    "mass > 1 || i > 1": (10, "write '|'"),
    "mass > 'a'": (8, "float64 cannot be compared with 'a'; leave out the quotes"),
    "i > 0 & name == 1": (17, "column 'name' holds texts, which are compared with a text in quotes"),
    "name < 'b'": (8, "compared with ==, != and in"),
    "name + 1 > 2": (1, "is text, not a number to compute with"),
    "t > 'tomorrow'": (5, "'tomorrow' is not a date; write a date such as '2024-02-29'"),
    "t > '2024-01-01T00:00Z'": (5, "has a time zone, but the column has none"),
    "t > 5": (5, "5 is not a date"),
    "t < tz": (5, "one has a time zone and one has none"),
    "t < mass": (5, "time[us] and float64 cannot be compared"),
    "t + 1 > t": (1, "not a number to compute with"),
    "i > 99999999999999999999": (5, "fits neither int64 nor uint64; write a float such as 1e30"),
    "i + 9223372036854775808 > 1": (5, "does not fit int64"),
    "mass > 1e999": (8, "too large for float64"),
    "mass > 1/0": (8, "division by zero"),
    "mass > 9**9**9": (8, "the power is too large"),
    "i & 1": (1, "this is int64, no condition to combine; write a comparison such as x != 0"),
    "mass": (1, "no condition; compare it"),
    "mass > @nowhere": (8, "there is no variable 'nowhere'"),
    "mass > @limt": (8, "did you mean @limit?"),
    "mass > @frame": (8, "@frame is module; a variable is a number, a text, a date, or a list of them"),
    "mass in (1, 'a')": (9, "cannot be compared with 'a'"),
    "mass in (1, None)": (9, "write isna(x) beside it"),
    "mass in (1, i)": (13, "a list has numbers, texts or variables, no columns"),
    "mass == None": (9, "write isna(x) or notna(x)"),
    "mass is i": (9, "'is' is not part of queries"),
    "sqroot(mass) > 1": (1, "there is no function 'sqroot'; did you mean 'sqrt'?"),
    "sqrt(mass, 1) > 1": (1, "sqrt takes 1 argument, not 2"),
    "sqrt(2) > mass": (1, "a function needs a column"),
    "mass.rolling(3) > 1": (
        1,
        "there is no method 'rolling'; there are isna, isnull, notna, notnull, isin, between, abs; for",
    ),
    "mass.round() > 1": (1, "there is no method 'round'; write round(x)"),
    "mass.gt(1)": (1, "there is no method 'gt'; write >"),
    "t.dt.year > 1": (
        1,
        "attributes are not part of queries; a heading with a dot needs backticks, `a.b`; else compute",
    ),
    "name == @limit[0]": (9, "brackets are not part of queries; compute it before the query, as a column, or as a var"),
    "len(name) > 1": (1, "there is no function 'len'; compute it before the query"),
    "t > @frame.Timestamp('2024-01-01')": (5, "compute it before the query, as a column, or as a variable for @value"),
    "mass <> 1": (6, "'<>' is not an operator; write '!='"),
    "!flag": (1, "write 'not' or '~'"),
    "i > 1 AND i < 3": (7, "and 'and', 'or', 'not', 'in' join conditions"),
    "mass ^ 2 > 1": (1, "write ** for a power"),
    "lists == 1": (1, "has Python objects; convert it"),
    "flag > 'a'": (8, "bool cannot be compared with 'a'"),
    "__import__('os').remove('x')": (1, "there is no method 'remove'"),
    "f'{mass}' == 'a'": (1, "f-strings are not part of the language"),
    "mass > 1\n & name < 'b'": (11, "compared with ==, != and in"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_refused_query_names_its_place(text):
    limit, frame = 3, pd  # noqa: F841  # read by the queries
    column, message = REFUSED[text]
    with pytest.raises(UnsupportedSyntaxError) as caught:
        FRAME.shine.query(text)
    assert message in str(caught.value)
    assert caught.value.column == column
    assert caught.value.line == (None if column is None else text.count("\n") + 1)


def test_values_of_texts_and_times_are_refused():
    for text in ("name", "t"):
        with pytest.raises(UnsupportedSyntaxError, match="a query is a condition or a number"):
            FRAME.shine.eval(text)


def test_a_query_is_a_text():
    with pytest.raises(TypeError, match=r"a query is a text such as 'x > 2.0', not date"):
        FRAME.shine.query(datetime.date(2024, 1, 1))


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("mass in @v", [1, None], "a list has no missing values; write isna(x) beside it"),
        ("mass not in @v", [1.0, float("nan")], "a list has no missing values"),
        ("mass == @v", np.full(20, np.nan), "a list has no missing values"),
        ("i.isin(@v)", pd.array([1, None], dtype="Int64"), "a list has no missing values"),
        ("t in @v", [pd.NaT], "a list has no missing values"),
        ("t in @v", np.array(["2024-01-01", "NaT"], dtype="datetime64[s]"), "a list has no missing values"),
        ("name in @v", ["a", np.nan], "a list has no missing values"),
        ("mass in @v", [[1], 2], "@v is a list with list; a variable is a number"),
        ("mass > @v", [1, 2], "cannot be compared with (1, 2); lists go with in, == and !="),
        ("@v > 1 and flag", [1, 2], "(1, 2) and 1 cannot be compared; lists go with in, == and !="),
        ("1 < @v and flag", [1, 2], "1 and (1, 2) cannot be compared; lists go with in, == and !="),
        ("mass + @v > 1", [1, 2], "(1, 2) is not a number to compute with; lists go with in, == and !="),
        ("1 + @v > mass", [1, 2], "(1, 2) is not a number to compute with; lists go with in, == and !="),
        ("@v & flag", [True, False], "no condition to combine; lists go with in, == and !="),
    ],
)
def test_a_list_that_does_not_fit_is_told(text, value, message):
    with pytest.raises(UnsupportedSyntaxError) as caught:
        FRAME.shine.query(text, variables={"v": value})
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [None, pd.NA, pd.NaT], ids=str)
@pytest.mark.parametrize("text", ["mass == @v", "t > @v", "name != @v", "i.between(@v, 2)", "@v == i"])
def test_nothing_equals_a_missing_variable(text, value):
    with pytest.raises(UnsupportedSyntaxError, match=r"nothing equals a missing value; write isna\(x\) or notna\(x\)"):
        FRAME.shine.query(text, variables={"v": value})


def test_variables_are_a_mapping():
    with pytest.raises(TypeError, match=r"variables is a mapping such as \{'limit': 3\}, not list"):
        FRAME.shine.query("mass > @v", variables=[3])
