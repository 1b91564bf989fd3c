"""SQL of prepared columns: databases compute from the rows of the file what Shine computed from its preparation."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime

import numpy as np
import pytest

from shine.base.errors import ExportError
from shine.data.datasets.preparation import Preparation, PreparedColumn
from shine.formats.write import export
from shine.formats.write.sql import prepared_notes, sql_expression
from shine.lang.parse import parse

COLOUR = PreparedColumn(
    "the colour", "the_colour", "one-hot", ("red", "ochre"), ("c is red", "c is o'chre"), ("blue", "red", "o'chre")
)
SIZE = PreparedColumn("Size", "Size", "ordinal", ("Size",), ("Size",), ("L", "M", "S"))
WEIGHT = PreparedColumn("order", "order", "number", ("order",), ("order",), means=(2.5,))
OPEN = PreparedColumn("open", "open", "truth", ("open",), ("open",))
DAY = PreparedColumn("day", "day", "date", ("day_days",), ("day (days)",), unit="days", origin="2023-01-05")
START = PreparedColumn(
    "start", "start", "date", ("start_hours",), ("start (hours)",), unit="hours", origin="2023-01-05T10"
)
LENGTH = PreparedColumn("length", "length", "duration", ("length_minutes",), ("length (minutes)",), unit="minutes")
COLUMNS = Preparation((COLOUR, SIZE, WEIGHT, OPEN, DAY, START))

ROWS = [
    ("red", "S", 1.0, True, "2023-01-05", "2023-01-05 10:00:00"),
    ("o'chre", "L", None, False, "2024-03-01", "2023-01-06 11:30:00.25"),
    ("blue", "M", 4.0, True, "2022-12-31", "2023-01-05 09:59:59"),
    ("green", "XL", 4.0, None, None, None),
]
"""Rows of a table in a database."""

VALUES = {
    "red": [1, 0, 0, np.nan],
    "ochre": [0, 1, 0, np.nan],
    "Size": [2, 0, 1, np.nan],
    "order": [1, 2.5, 4, 4],
    "open": [1, 0, 1, np.nan],
    "day_days": [0, 421, -5, np.nan],
    "start_hours": [0, 25.5 + 0.25 / 3600, -1 / 3600, np.nan],
}
"""What formulas see, worked out by hand."""


def numbers(cells):
    return [np.nan if cell is None else float(cell) for (cell,) in cells]


def in_sqlite(text):
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute('CREATE TABLE t ("the colour", "Size", "order", open, day, start)')
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", ROWS)
        return numbers(base.execute(f"SELECT {text} FROM t").fetchall())


def in_duckdb(text):
    base = pytest.importorskip("duckdb").connect()
    base.execute(
        'CREATE TABLE t ("the colour" VARCHAR, "Size" VARCHAR, "order" DOUBLE, open BOOLEAN, day DATE, start TIMESTAMP)'
    )
    base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", ROWS)
    return numbers(base.execute(f"SELECT {text} FROM t").fetchall())


@pytest.mark.parametrize(("dialect", "run"), [("sqlite", in_sqlite), ("duckdb", in_duckdb)])
@pytest.mark.parametrize("name", VALUES)
def test_a_database_has_the_number(name, dialect, run):
    text = sql_expression(parse(f"2*{name}"), dialect=dialect, preparation=COLUMNS)
    np.testing.assert_allclose(run(text), 2 * np.array(VALUES[name]), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    ("formula", "values"),
    [
        ("2*x", [20, None, -10]), ("x if x > 3 else y", [10, 4, 30]), ("min(x, y)", [9, None, -5]),
        ("relu(x)", [10, None, 0]), ("x + (x < y)", [10, None, -4]),
    ],
)  # fmt: skip
def test_sqlite_s_columns_of_text_are_numbers(formula, values):
    """``.import`` makes a table whose columns are texts."""
    known = Preparation(tuple(PreparedColumn(n, n, "number", (n,), (n,)) for n in "xy"), "drop", missing_marks=(-999,))
    text = export(parse(formula), "sql", dialect="sqlite", preparation=known)
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE t (x TEXT, y TEXT)")
        base.executemany("INSERT INTO t VALUES (?, ?)", [("10", "9"), ("-999", "4"), ("-5", "30")])
        assert [value for (value,) in base.execute(f"SELECT {text} FROM t")] == values


def test_durations_in_duckdb():
    duckdb = pytest.importorskip("duckdb")
    text = sql_expression(parse("2*length_minutes"), dialect="duckdb", preparation=Preparation((LENGTH,)))
    clock = datetime(2023, 1, 1, 8, 30, 15) - datetime(2023, 1, 1)
    assert duckdb.execute(f"SELECT {text} FROM (SELECT ? AS length)", [clock]).fetchone() == (2 * 510.25,)


def test_sqlite_has_no_durations():
    with pytest.raises(ExportError, match=r"sqlite\) has no durations; make a column of minutes from 'length'"):
        sql_expression(parse("length_minutes"), dialect="sqlite", preparation=Preparation((LENGTH,)))


def test_columns_that_the_database_confuses_are_refused():
    twice = Preparation((SIZE, PreparedColumn("size", "size", "number", ("size",), ("size",))))
    with pytest.raises(ExportError, match="is for it the same as"):
        sql_expression(parse("size"), dialect="duckdb", preparation=twice)


def test_what_dates_must_be_is_told():
    assert prepared_notes([WEIGHT, DAY], "sqlite") == [
        "the expression takes the values of column 'day' to be dates, texts such as 2023-12-31"
    ]
    assert "of type DATE or TIMESTAMP" in prepared_notes([DAY], "duckdb")[0]
