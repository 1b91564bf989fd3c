"""`df.shine` of pandas."""

from __future__ import annotations

import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from helpers.markers import mostly_slow

import shine.pandas  # noqa: F401  # gives data frames their attribute
from shine import UnsupportedSyntaxError

ROWS = 7


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """A column of every type that pandas has; the second or third value is missing."""
    times = pd.to_datetime(["2024-01-01", None, "2024-03-01", "2024-04-01 12:00", "2025-01-01", "2026-01-01", None],
                           format="mixed")  # fmt: skip
    return pd.DataFrame({
        "f": [1.0, np.nan, 3, 4, 5, 6, 7],
        "i": pd.array([1, None, 3, 4, 5, 6, 7], dtype="Int64"),
        "b": pd.array([True, None, False, True, None, False, True], dtype="boolean"),
        "category": pd.Categorical(["a", "b", None, "a", "c", "b", "a"]),
        "objects": pd.Series(["x", None, "y", "x", "z", "x", "y"], dtype=object),
        "texts": ["x", None, "y", "x", "z", "x", "y"],
        "t": times,
        "tz": times.tz_localize("Europe/Berlin"),
        "days": pd.to_timedelta([1, 2, None, 4, 5, 6, 7], unit="D"),
        "whole": pd.Categorical([1, 2, None, 1, 3, 2, 1]),
        "born": [None, *[datetime.date(2024, 1, day) for day in range(1, ROWS)]],
        "truths": pd.Series([True, None, False, True, True, True, False], dtype=object),
        "sparse": pd.arrays.SparseArray([0.0, 0, 1, 0, 2, 0, 0]),
        "arrow": pd.array([1, None, 3, 4, 5, 6, 7], dtype="int64[pyarrow]"),
        "half": np.arange(ROWS, dtype=np.float16),
        "swapped": np.arange(ROWS, dtype=">i4"),
        "my col": range(ROWS),
        "größe": range(ROWS),
        "µ": range(ROWS),
        3: range(ROWS),
    })  # fmt: skip


CASES = {
    "f > 2": [2, 3, 4, 5, 6],
    "~(f > 2)": [0, 1],  # NaN is a number of NumPy's columns, as for pandas
    "isna(f)": [1],
    "~(i > 3)": [0, 2],
    "i.isnull()": [1],
    "i.between(2, 4)": [2, 3],
    "~b": [2, 5],
    "category == 'a'": [0, 3, 6],
    "category != 'a'": [1, 4, 5],
    "category == 'nowhere'": [],
    "category != texts": [0, 3, 4, 5, 6],
    "objects in ('x', 'z')": [0, 3, 4, 5],
    "texts not in ('x', 'z')": [2, 6],
    "texts == ['x', 'z']": [0, 3, 4, 5],
    "'2024-01-15' < t < '2025-01-01'": [2, 3],
    "t == '2024-04-01 12:00'": [3],
    "t != '2024-04-01T12:00:00.000000001'": [0, 2, 3, 4, 5],
    "tz >= '2024-03-01'": [2, 3, 4, 5],
    "tz == '2024-02-29T23:00:00Z'": [2],
    "days >= '4 days'": [3, 4, 5, 6],
    "whole > 1": [1, 4, 5],
    "born < '2024-01-03'": [1, 2],
    "truths": [0, 3, 4, 5],
    "sparse > 0": [2, 4],
    "arrow > 3": [3, 4, 5, 6],
    "half > 3": [4, 5, 6],
    "swapped < 2": [0, 1],
    "`my col` > 4": [5, 6],
    "größe < 2": [0, 1],
    "`3` == 2": [2],
    "index > 4": [5, 6],
    "i % 2 == 0 & i > 4": [5],
    "f > 1 if b else f < 2": [3, 6],
    "i in []": [],
    "i not in []": list(range(ROWS)),
    "(1 if i > 3 else 2) == 2": [0, 1, 2],  # the second is null
    "(1 if ~(i > 3) else 2) == 2": [1, 3, 4, 5, 6],
    "pi > f": [0, 2],
    "i ** -1 < 0.3": [3, 4, 5, 6],
    "np.sqrt(f) > 2": [4, 5, 6],
    "arctan2(f, 1) > 1.25": [3, 4, 5, 6],
    "max(f, i, 3) > 5": [5, 6],
    "f >\n 6": [6],
}


@pytest.mark.parametrize("text", mostly_slow(CASES, fast=list(CASES)[::8]))
def test_a_condition_selects_its_rows(frame, text):
    assert frame.shine.query(text).tolist() == CASES[text]


def test_indices_are_uint32_as_in_the_first_example():
    found = pd.DataFrame({"a": np.arange(1000.0)}).shine.query("a < 4.0")
    assert found.dtype == np.uint32
    assert found.tolist() == [0, 1, 2, 3]


def test_a_mask_and_the_rows_agree_with_the_indices(frame):
    frame = frame.drop(columns="swapped")  # pandas takes no rows of swapped bytes
    indices = frame.shine.query("f > 2")
    assert np.flatnonzero(frame.shine.query("f > 2", "mask")).tolist() == indices.tolist()
    assert frame.shine.query("f > 2", result="rows").equals(frame.iloc[indices])


def test_another_result_is_refused(frame):
    with pytest.raises(ValueError, match="result is one of 'indices', 'mask', 'rows', not 'bits'"):
        frame.shine.query("f > 2", "bits")


LIMIT = 2


def test_variables_are_the_callers_local_ones_first_unless_they_are_given(frame):
    limit, days, names = 4, datetime.date(2024, 3, 1), np.array(["x", "z"])  # noqa: F841  # the queries read them
    assert frame.shine.query("i > @limit").tolist() == [4, 5, 6]
    assert frame.shine.query("i <= @LIMIT").tolist() == [0]
    assert frame.shine.query("t > @days and texts in @names").tolist() == [3, 4, 5]
    assert frame.shine.query("i > @limit", variables={"limit": 6}).tolist() == [6]


@pytest.mark.parametrize("value", [np.float32(4), 4, np.int8(4), 4.0, pd.Series([4])[0]])
def test_numbers_of_every_library_are_variables(frame, value):
    assert frame.shine.query("i == @value").tolist() == [3]


def test_a_variables_next_value_needs_no_new_code(frame):
    from shine.frames.running import selecting

    for limit in (1, 2.5, 3):
        frame.shine.query("f > @limit & f < 100")
        if limit == 1:
            before = selecting.cache_info().misses
    assert selecting.cache_info().misses == before


def test_long_lists_are_looked_up_as_short_ones(frame):
    wanted = list(range(3, 40))  # noqa: F841  # the queries read them
    assert frame.shine.query("i in @wanted").tolist() == [2, 3, 4, 5, 6]
    assert frame.shine.query("~(i in @wanted)").tolist() == [0]
    assert frame.shine.query("f in @wanted").tolist() == [2, 3, 4, 5, 6]
    assert frame.shine.query("half in @wanted").tolist() == [3, 4, 5, 6]
    letters = [*"abcdefghijklmnopqrstuvwx"]  # noqa: F841  # the queries read them
    assert frame.shine.query("texts not in @letters").tolist() == [2, 4, 6]
    assert frame.shine.query("category in @letters").tolist() == [0, 1, 3, 4, 5, 6]


def test_columns_of_a_block_are_read_at_any_distance():
    block = np.arange(60_000.0).reshape(20_000, 3)
    frame = pd.DataFrame(block, columns=["a", "b", "c"], copy=False)
    found = frame.shine.query("a > b - 2 & c % 9 == 2")
    assert found.tolist() == np.flatnonzero(block[:, 2] % 9 == 2).tolist()
    assert frame[::-2].shine.query("a < 12").tolist() == [9998, 9999]


def test_a_repeated_heading_is_refused_only_where_it_is_used():
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"])
    assert frame.shine.query("b == 3").tolist() == [0]
    with pytest.raises(UnsupportedSyntaxError, match="line 1, column 1: 2 columns are called 'a'"):
        frame.shine.query("a == 1")


@pytest.mark.parametrize("text", ["[1, 3] == i", "[1, 3] != i", "x < inf and -Inf < x", "i < inf", "@some == i"])
def test_lists_on_the_left_and_infinity_mean_what_pandas_means(text):
    frame = pd.DataFrame({"i": [1, 2, 3, 4], "x": [1.0, np.inf, -np.inf, np.nan]})
    some = [2, 4]  # noqa: F841  # read by the queries
    assert frame.shine.query(text, result="rows").equals(frame.query(text))


def test_levels_of_the_index_without_a_name_have_numbers():
    index = pd.MultiIndex.from_product([["u", "v"], [1, 2]], names=[None, "number"])
    frame = pd.DataFrame({"x": range(4)}, index=index)
    assert frame.shine.query("ilevel_0 == 'v' and number == 1").tolist() == [2]
    with pytest.raises(UnsupportedSyntaxError, match="there is no column 'ilevel_1'"):
        frame.shine.query("ilevel_1 == 1")


def test_levels_of_the_index_have_names():
    index = pd.MultiIndex.from_product([["u", "v"], [1, 2]], names=["letter", "number"])
    frame = pd.DataFrame({"x": range(4)}, index=index)
    assert frame.shine.query("letter == 'v' & number < 2").tolist() == [2]


@pytest.mark.parametrize("rows", [0, 1])
def test_small_tables(rows):
    frame = pd.DataFrame({"x": [3.0] * rows, "s": pd.Series(["a"] * rows, dtype=object)})
    assert len(frame.shine.query("x > 2 & s == 'a'")) == rows
    assert frame.shine.query("x > 2", "mask").tolist() == [True] * rows
    assert frame.shine.eval("x*2").tolist() == [6.0] * rows


def test_values_have_the_frames_index_and_types():
    frame = pd.DataFrame({"a": [3.0, 5.0], "f": np.float32([1, 2]), "i": [1, 2]}, index=["u", "v"])
    values = frame.shine.eval("sqrt(a*a + 16)")
    assert values.to_dict() == {"u": 5.0, "v": np.sqrt(41.0)}
    types = {text: str(frame.shine.eval(text).dtype) for text in ("a", "f*2", "f + i", "i*2", "i / 2", "a > 4")}
    expected = {"a": "float64", "f*2": "float32", "f + i": "float64", "i*2": "int64", "i / 2": "float64",
                "a > 4": "bool"}  # fmt: skip
    assert types == expected


def test_missing_values_stay_missing(frame):
    values = frame.shine.eval("i * 2")
    assert str(values.dtype) == "Int64"
    assert values.isna().tolist() == frame["i"].isna().tolist()
    assert str(frame.shine.eval("i > 3 & b").dtype) == "boolean"
    assert frame.shine.eval("whole // (whole - 1)").isna().tolist() == [True, False, True, True, False, False, True]


def test_changed_texts_are_read_again():
    frame = pd.DataFrame({"s": ["a", "b", "c"]})
    assert frame.shine.query("s == 'b'").tolist() == [1]
    frame.loc[0, "s"] = "b"
    assert frame.shine.query("s == 'b'").tolist() == [0, 1]


def test_the_package_itself_does_not_import_pandas():
    code = "import shine, sys; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
