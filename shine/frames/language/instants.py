"""Dates, times and durations that a query compares a column with, as exact numbers in the column's unit."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np

from shine.frames.language.types import UNITS, ColumnType
from shine.lang.forms.names import shown, value_text

_INSTANT = re.compile(
    r"(?P<local>\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?)?)?)?)\s*(?P<shift>Z|[+-]\d\d(:?\d\d)?)?"
)
_SHIFT = re.compile(r"([+-])(\d\d):?(\d\d)?")
_DURATION = re.compile(r"(?P<count>[+-]?\d+(\.\d+)?)\s*(?P<unit>[a-zµμ]+)")
_HOUR = 3600 * 10**9
_WORDS = {
    "ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9, "second": 10**9,
    "min": 60 * 10**9, "minute": 60 * 10**9, "h": _HOUR, "hour": _HOUR, "d": 24 * _HOUR, "day": 24 * _HOUR,
    "week": 7 * 24 * _HOUR,
}  # fmt: skip
_EPOCH = datetime.datetime(1970, 1, 1)

_DATES = "write a date such as '2024-02-29', '2024-02-29 13:30' or '2024-02-29T13:30:00+01:00'"


def instant(value: object, column: ColumnType) -> Fraction:
    """A date or time in a column's unit since 1970.

    A time without a zone beside a column with one is local time there; if clocks are set back, the earlier of the two.

    Parameters
    ----------
    value : str, datetime.date, datetime.datetime, pandas.Timestamp or numpy.datetime64
    column : ColumnType

    Raises
    ------
    ValueError
        If it is none, or has a time zone and the column has none.
    """
    nanoseconds, shift = _parts(value)
    if shift is None and column.zone is not None:
        shift = _local_shift(nanoseconds, column.zone)
    elif shift is not None and column.zone is None:
        raise ValueError(f"{value_text(value)} has a time zone, but the column has none; leave it out")
    return Fraction(nanoseconds - (shift or 0), UNITS[column.unit or "ns"])


def duration(value: object, column: ColumnType) -> Fraction:
    """A duration in a column's unit; errors as of `instant`.

    Parameters
    ----------
    value : str, datetime.timedelta, pandas.Timedelta or numpy.timedelta64
    column : ColumnType
    """
    scale = UNITS[column.unit or "ns"]
    if isinstance(value, datetime.timedelta):
        rest = getattr(value, "nanoseconds", 0)
        return Fraction((value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1000 + rest, scale)
    if isinstance(value, np.timedelta64) and not np.isnat(value):
        unit, count = np.datetime_data(value.dtype)
        if unit not in ("Y", "M", "generic"):
            size = {"m": 60 * 10**9, "h": _HOUR, "W": 7 * 24 * _HOUR, **UNITS}.get(unit)
            if size is not None:
                return Fraction(int(value.astype(np.int64)) * count * size, scale)
    found = _DURATION.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    size = None if found is None else _WORDS.get(found["unit"]) or _WORDS.get(found["unit"].removesuffix("s"))
    if found is None or size is None:
        raise ValueError(f"{value_text(value)} is not a duration; write '3 days', '2h' or '1.5 s'")
    return Fraction(found["count"]) * size / scale


def _parts(value: object) -> tuple[int, int | None]:
    """Nanoseconds since 1970 on the clock, and those that the clock is ahead of UTC; None if it is not said."""
    if isinstance(value, np.datetime64) and not np.isnat(value):
        return _nanoseconds(value), None
    if isinstance(value, datetime.datetime) and value == value:
        offset = value.utcoffset()
        fields = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
        clock = _exact(datetime.datetime(*fields) - _EPOCH) + getattr(value, "nanosecond", 0)
        return clock, None if offset is None else _exact(offset)
    if isinstance(value, datetime.date) and value == value:
        return _exact(datetime.datetime(value.year, value.month, value.day) - _EPOCH), None
    found = _INSTANT.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value_text(value)} is not a date; {_DATES}")
    try:
        clock = _nanoseconds(np.datetime64(found["local"]))
    except ValueError:
        raise ValueError(f"{shown(str(value))} is not a date of the calendar; {_DATES}") from None
    return clock, _shift(found["shift"])


def _nanoseconds(value: np.datetime64) -> int:
    unit, _ = np.datetime_data(value.dtype)
    if unit not in UNITS:
        value = value.astype("datetime64[s]" if unit in ("h", "m") else "datetime64[D]")
        unit, _ = np.datetime_data(value.dtype)
    return int(value.astype(np.int64)) * UNITS[unit]


def _shift(text: str | None) -> int | None:
    if text is None or text == "Z":
        return None if text is None else 0
    found = _SHIFT.fullmatch(text)
    assert found is not None
    size = (int(found[2]) * 60 + int(found[3] or 0)) * 60 * 10**9
    return -size if found[1] == "-" else size


def _local_shift(clock: int, zone: str) -> int:
    """Nanoseconds that local time is ahead of UTC at a time of the clock."""
    if _SHIFT.fullmatch(zone):
        return _shift(zone) or 0
    try:
        where = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"the time zone {shown(zone)} is not known here; write the time with its shift") from None
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=clock // 1000)
    except OverflowError:
        return 0
    return _exact(moment.replace(tzinfo=where).utcoffset() or datetime.timedelta())


def _exact(delta: datetime.timedelta) -> int:
    return (delta.days * 86_400 + delta.seconds) * 10**9 + delta.microseconds * 1000
