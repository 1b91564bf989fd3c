"""Dates and durations as exact numbers."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pytest

from shine.frames.language.arithmetic import duration, instant
from shine.frames.language.types import ColumnType


def time(unit: str, zone: str | None = None) -> ColumnType:
    """A column of times."""
    return ColumnType("int64", "least", "time", unit, zone)


@pytest.mark.parametrize(
    ("value", "unit", "zone", "expected"),
    [
        ("1970-01-02", "s", None, 86_400),
        ("1970", "D", None, 0),
        ("1970-02", "D", None, 31),
        ("1969-12-31T23:59:59.999999999", "ns", None, -1),
        ("1970-01-01 00:00:00.5", "s", None, Fraction(1, 2)),
        ("1970-01-01T01:00+01:00", "s", "UTC", 0),
        ("1970-01-01T00:00Z", "s", "Asia/Tokyo", 0),
        ("2024-07-01", "s", "Europe/Berlin", 1719784800),
        ("2024-10-27 02:30", "s", "Europe/Berlin", 1729989000),  # the first of two
        ("2024-01-01", "s", "+02:00", 1704067200 - 7200),
        ("9999-12-31", "ns", None, 253402214400 * 10**9),
        (datetime.date(1970, 1, 3), "D", None, 2),
        (datetime.datetime(1970, 1, 1, 0, 0, 1, 5), "us", None, 1_000_005),
        (np.datetime64("1970-01-01T00:00:01", "s"), "ms", None, 1000),
        (np.datetime64("1970-01-01T01", "h"), "s", None, 3600),
    ],
)  # fmt: skip
def test_instants(value, unit, zone, expected):
    assert instant(value, time(unit, zone)) == expected


@pytest.mark.parametrize(
    "value", ["tomorrow", "now", "2024-13-01", "2024-02-30", "1.2.2024", 3, np.datetime64("NaT", "s"), ""]
)
def test_what_is_no_date_is_refused(value):
    with pytest.raises(ValueError, match="is not a date"):
        instant(value, time("s"))


def test_a_zone_beside_a_column_without_one_is_refused():
    with pytest.raises(ValueError, match="has a time zone, but the column has none"):
        instant("2024-01-01T00:00Z", time("s"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3 days", 3 * 86_400), ("2h", 7200), ("1.5 s", Fraction(3, 2)), ("-1 min", -60), ("10 ns", Fraction(1, 10**8)),
        (datetime.timedelta(days=-1, microseconds=1), Fraction(1, 10**6) - 86_400), (np.timedelta64(2, "h"), 7200),
    ],
)  # fmt: skip
def test_durations(value, expected):
    assert duration(value, ColumnType("int64", "least", "duration", "s")) == expected


@pytest.mark.parametrize("value", ["3", "three days", "3 fortnights", 3, np.timedelta64(1, "Y")])
def test_what_is_no_duration_is_refused(value):
    with pytest.raises(ValueError, match="is not a duration"):
        duration(value, ColumnType("int64", "least", "duration", "s"))
