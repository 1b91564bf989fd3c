"""Dates, times and durations in text, against Python's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.data.files.dates import counted, dates_of, durations_of, origin_of, unit_of

NAT = np.datetime64("NaT", "us")

ONE = {
    "2023-01-05": "2023-01-05",
    "2023/1/5": "2023-01-05",
    "2023-01-05 12:30": "2023-01-05T12:30",
    "2023-01-05T12:30:15.25Z": "2023-01-05T12:30:15.25",
    "2023-01-05T12:30:15,25": "2023-01-05T12:30:15.25",
    "2023-01-05T12:30+02:00": "2023-01-05T10:30",
    "2023-01-05 12:30 -0530": "2023-01-05T18:00",
    "05.01.2023": "2023-01-05",
    "5.1.2023 8:05": "2023-01-05T08:05",
    "31/01/2023": "2023-01-31",
    "01/31/2023 3:30 PM": "2023-01-31T15:30",
    "5 Jan 2023": "2023-01-05",
    "05-Sept-2023 8:00": "2023-09-05T08:00",
    "May 5, 2023 2:30 PM": "2023-05-05T14:30",
    "december 31 2023": "2023-12-31",
    "01-31-2023 12:05 am": "2023-01-31T00:05",
}


@pytest.mark.parametrize("cell", ONE)
def test_a_date_is_read(cell: str) -> None:
    assert dates_of([cell])[0][0] == np.datetime64(ONE[cell])


@pytest.mark.parametrize(
    "cell", ["2023-02-30", "2023-13-01", "2023-01/05", "12:30", "20230105", "1.5", "5.1.23", "5 Foo 2023", ""]
)
def test_other_cells_are_no_dates(cell: str) -> None:
    assert np.isnat(dates_of([cell])[0][0])


def test_the_column_tells_what_a_date_begins_with() -> None:
    assert dates_of(["05/01/2023", "31/01/2023"])[0][0] == np.datetime64("2023-01-05")
    assert dates_of(["05/01/2023", "01/31/2023"])[0][0] == np.datetime64("2023-05-01")
    assert dates_of(["05/01/2023"])[2] == "05/01/2023"
    assert dates_of(["05/01/2023"], "month")[0][0] == np.datetime64("2023-05-01")


def test_durations_are_read() -> None:
    cells = ["8:30", "08:30:15.5", "-1:00", "36:00", "8:60", "noon"]
    expected = [30600.0, 30615.5, -3600.0, 129600.0]
    values = durations_of(cells)
    assert (values[:4] / np.timedelta64(1, "s")).tolist() == expected
    assert np.isnat(values[4:]).all()


@pytest.mark.parametrize(
    ("first", "last", "unit", "origin"),
    [
        ("2023-01-05", "2023-01-05", "days", "2023-01-05"),
        ("2023-01-05T13:00", "2023-01-09T12:00", "days", "2023-01-05"),
        ("2023-01-05T13:00", "2023-01-05T18:00", "hours", "2023-01-05"),
        ("2023-01-05T13:07", "2023-01-05T13:30", "minutes", "2023-01-05T13"),
        ("2023-01-05T13:07:08", "2023-01-05T13:07:09", "seconds", "2023-01-05T13:07"),
    ],
)
def test_the_unit_suits_the_span(first: str, last: str, unit: str, origin: str) -> None:
    values = np.array([last, first, "NaT"], "datetime64[us]")
    assert unit_of(values) == unit
    assert origin_of(values, unit) == origin


@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), min_size=2, max_size=5))
def test_numbers_count_from_the_origin(moments: list[datetime]) -> None:
    cells = [moment.isoformat(sep=" ") for moment in moments]
    values = dates_of(cells)[0]
    unit = unit_of(values)
    origin = origin_of(values, unit)
    start = np.datetime64(origin, "us").astype(datetime).replace(tzinfo=UTC)
    step = timedelta(**{unit: 1})
    expected = [(moment.replace(tzinfo=UTC) - start) / step for moment in moments]
    np.testing.assert_allclose(counted(values, unit, origin), expected, rtol=1e-15)
    assert min(expected) >= 0


def test_missing_dates_are_nan() -> None:
    values = np.array(["2023-01-05", "NaT"], "datetime64[us]")
    np.testing.assert_array_equal(counted(values, "days", "2023-01-01"), [4, np.nan])
