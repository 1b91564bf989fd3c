"""Conditions on rows of files, against the same comparisons in Python."""

import datetime as dt
import math

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.dataset as pads

from shine.base.errors import DataError
from shine.data.streams.conditions import condition

NIGHT = dt.datetime(2024, 1, 3, 12)
TABLE = pa.table(
    {
        "row": range(6),
        "small": pa.array([1, 2, 3, 127, None, -128], pa.int8()),
        "large": pa.array([1, 2**53, 2**53 + 1, -(2**63), None, 2**63 - 1], pa.int64()),
        "unsigned": pa.array([0, 1, 2**64 - 1, 2**63, None, 5], pa.uint64()),
        "single": pa.array([0.1, 0.5, math.inf, None, math.nan, 1], pa.float32()),
        "text": ["a", "b", None, "é", "", "a"],
        "label": pa.array(["a", "b", None, "é", "", "a"]).dictionary_encode(),
        "truth": [True, False, None, True, True, False],
        "day": pa.array([dt.date(2024, 1, day) for day in range(1, 6)] + [None]),
        "second": pa.array([NIGHT, NIGHT + dt.timedelta(seconds=1), None, NIGHT, NIGHT, NIGHT], pa.timestamp("s")),
        "zoned": pa.array([dt.datetime(2024, 1, 3, hour) for hour in (0, 4, 5, 6)] + [None] * 2)
        .cast(pa.timestamp("us", "UTC"))
        .cast(pa.timestamp("us", "America/New_York")),
        "amount": pa.array([1, 2, 3, 4, 5, 6]).cast(pa.decimal128(21, 2)),
        "wait": pa.array([dt.timedelta(hours=1)] * 6),
    }
)


def rows(text: str) -> list[int]:
    return pads.dataset(TABLE).to_table(filter=condition(text, TABLE.schema)).column("row").to_pylist()


@pytest.mark.parametrize("number", ["1", "1.5", "-129", "128", "1e300", "9007199254740992.0"])
@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("column", ["small", "large", "unsigned"])
def test_whole_numbers_are_compared_exactly(column: str, sign: str, number: str) -> None:
    values = TABLE.column(column).to_pylist()
    expected = [row for row, value in enumerate(values) if value is not None and eval(f"{value} {sign} {number}")]
    assert rows(f"{column} {sign} {number}") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("large in (9007199254740992.0, 1.5, 1e30)", [1]),
        ("unsigned in (-1, 18446744073709551615)", [2]),
        ("single == 0.1", []),
        ("single in (0.1,)", []),
        ("single in (0.5,)", [1]),
        ("amount > 1", [1, 2, 3, 4, 5]),
    ],
)
def test_numbers_in_lists_are_compared_as_by_equality(text: str, expected: list[int]) -> None:
    assert rows(text) == expected


@pytest.mark.parametrize("column", ["text", "label"])
@pytest.mark.parametrize("pattern", ["{} not in ('a',)", "not {} in ('a',)", "not ({} in ('a', 'x') and row >= 0)"])
def test_missing_values_are_neither_in_a_list_nor_outside(column: str, pattern: str) -> None:
    assert rows(pattern.format(column)) == rows(f"{column} != 'a'") == [1, 3, 4]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("day >= '2024-01-03'", [2, 3, 4]),
        ("day >= '2024-01-03 12:00'", [3, 4]),
        ("day in ('2024-01-03 12:00', '2024-01-05')", [4]),
        ("second > '2024-01-03 12:00:00.5'", [1]),
        ("zoned >= '2024-01-03'", [2, 3]),
        ("zoned >= '2024-01-03T05:30:00+00:00'", [3]),
        ("'2024-01-03' <= day < '2024-01-04'", [2]),
        ("truth == 1", [0, 3, 4]),
    ],
)
def test_dates_are_compared_exactly_and_in_the_zone_of_the_column(text: str, expected: list[int]) -> None:
    assert rows(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("small == '1'", "column 'small' holds int8; write numbers without quotes"),
        ("text == 1", "column 'text' holds string; write texts in quotes, as in '1'"),
        ("text in ('a', 1)", "write texts in quotes"),
        ("truth == 'x'", "write True or False"),
        ("second > '2024-01-01T00:00:00+01:00'", "it has no time zone"),
        ("wait > '2h'", r"holds duration\[us\]; conditions compare numbers, texts"),
        ("small < text", r"small \(int8\) and text \(string\) cannot be compared"),
        ("1 < 2", "line 1, column 5: 1 and 2 are no columns; compare a column"),
        ("small < -'a'", "'a' is not a number"),
        ("not " * 20_000 + "truth", "nested too deeply|not an expression"),
    ],
)
def test_what_does_not_fit_a_column_is_an_error(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        condition(text, TABLE.schema)
