"""`df.shine` of Polars."""

from __future__ import annotations

import datetime

import polars as pl
import pytest

import shine.polars  # noqa: F401  # gives data frames their attribute
from shine import UnsupportedSyntaxError

FRAME = pl.concat(
    [
        pl.DataFrame({"x": [1.0, None], "s": ["a", "b"], "n": [1, 2]}, schema_overrides={"n": pl.UInt8}),
        pl.DataFrame({"x": [3.0, float("nan")], "s": [None, "äöü"], "n": [None, 4]}, schema_overrides={"n": pl.UInt8}),
    ],
    rechunk=False,
).with_columns(
    c=pl.Series(["u", None, "v", "u"], dtype=pl.Categorical),
    e=pl.Series(["v", "u", "v", None], dtype=pl.Enum(["u", "v"])),
    day=pl.Series([datetime.date(2024, 1, day) for day in range(1, 5)]),
    t=pl.Series([datetime.datetime(2024, 1, 1, hour) for hour in range(4)]).dt.replace_time_zone("Europe/Berlin"),
    flag=pl.Series([True, None, False, True]),
)

CASES = {
    "x > 2": [2],
    "~(x > 2)": [0, 3],
    "x != 3": [0, 3],
    "isna(x)": [1, 3],
    "s == 'äöü'": [3],
    "s != 'a'": [1, 3],
    "n + 255 > 256": [1, 3],
    "c == 'u'": [0, 3],
    "c != 'u'": [2],
    "e in ('u', 'w')": [1],
    "day > '2024-01-02'": [2, 3],
    "t < '2024-01-01 02:00'": [0, 1],
    "t < '2024-01-01T02:00Z'": [0, 1, 2],
    "~flag": [2],
}


@pytest.mark.parametrize("text", CASES)
def test_a_condition_selects_its_rows(text):
    assert FRAME.shine.query(text).tolist() == CASES[text]


def test_results_are_polars():
    mask = FRAME.shine.query("x > 2", "mask")
    assert mask.to_list() == [False, False, True, False]
    assert FRAME.shine.query("x > 2", "rows").equals(FRAME.filter(mask))
    assert FRAME.shine.eval("n * 2").to_list() == [2, 4, None, 8]


@pytest.mark.parametrize("kind", [pl.Int128, pl.Object, pl.List(pl.Int64), pl.Decimal(10, 2)])
def test_types_that_queries_do_not_read_are_refused(kind):
    series = pl.Series([object()], dtype=kind) if kind is pl.Object else pl.Series([None], dtype=kind)
    with pytest.raises(UnsupportedSyntaxError, match=r"line 1, column 1: column 'x' is .*, which queries do not read"):
        pl.DataFrame({"x": series}).shine.query("x > 0")


def test_an_empty_frame_has_no_rows():
    assert FRAME.clear().shine.query("x > 2 & s == 'a'").tolist() == []


def test_texts_are_encoded_once_a_frame(monkeypatch):
    frame = pl.DataFrame({"s": ["a text that is longer than a view", "b"]})
    assert frame.shine.query("s == 'b'").tolist() == [1]
    changed = frame.clone()
    monkeypatch.setattr("shine.frames.arrow._encoded", lambda array, kind: pytest.fail("encoded again"))
    assert frame.shine.query("s == 'a'").tolist() == []
    monkeypatch.undo()
    changed[1, "s"] = "a"
    assert changed.shine.query("s == 'a'").tolist() == [1]
    frame[1, "s"] = "c"
    assert frame.shine.query("s == 'c'").tolist() == [1]


def test_variables_are_the_callers():
    limit, names = 2, ["a", "b"]  # noqa: F841  # the queries read them
    assert FRAME.shine.query("n >= @limit & s in @names").tolist() == [1]
