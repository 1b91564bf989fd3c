"""Dates, times and durations in text, and the numbers that formulas see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shine.base.typing import Floats

Order = Literal["day", "month"]
"""First part of a date that does not begin with the year."""

_TIME = (
    r"(?:(?:T|\s)\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp][Mm])?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?"
)
_DATES = (
    re.compile(r"(?P<year>\d{4})(?P<gap>[-/.])(?P<month>\d{1,2})(?P=gap)(?P<day>\d{1,2})" + _TIME, re.ASCII),
    re.compile(r"(?P<first>\d{1,2})(?P<gap>[-/.])(?P<other>\d{1,2})(?P=gap)(?P<year>\d{4})" + _TIME, re.ASCII),
)
_WORDS = (
    re.compile(r"(?P<day>\d{1,2})[-. ]+(?P<word>[A-Za-z]{3,9})[-. ,]+(?P<year>\d{4})" + _TIME, re.ASCII),
    re.compile(r"(?P<word>[A-Za-z]{3,9})\.? +(?P<day>\d{1,2}),? +(?P<year>\d{4})" + _TIME, re.ASCII),
)
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_CLOCK = re.compile(
    r"(?P<sign>-?)(?P<hour>\d{1,4}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:[.,]\d{1,9})?))?", re.ASCII
)

UNITS = {"days": 86_400_000_000, "hours": 3_600_000_000, "minutes": 60_000_000, "seconds": 1_000_000}
"""Microseconds of each unit of time that formulas may see."""

_BEGINNING = {"days": "D", "hours": "D", "minutes": "h", "seconds": "m"}
"""NumPy's unit that an origin is rounded down to, so that people can read it."""


def dates_of(cells: Sequence[str], order: Order | None = None) -> tuple[NDArray[Any], Order | None, str]:
    """Dates in cells: ISO 8601, ``31.12.2023``, ``31/12/2023``, ``12/31/2023``, ``31 Dec 2023``, and a time or none.

    Points mean that the day comes first. With other signs the first number above 12 tells.

    Parameters
    ----------
    cells : sequence of str
    order : "day" or "month", optional
        What comes first, if it is known.

    Returns
    -------
    ndarray of shape (n_cells,), datetime64[us]
        NaT where a cell is no date.
    "day", "month" or None
        What came first; None if every date began with the year.
    str
        A cell whose order nothing tells; empty if there is none.
    """
    patterns = (*_DATES, *_WORDS)
    matches = [next((found for form in patterns if (found := form.fullmatch(cell))), None) for cell in cells]
    short = [match for match in matches if match is not None and "first" in match.re.groupindex]
    unclear = ""
    if order is None and short:
        if any(int(match["first"]) > 12 for match in short) or all(match["gap"] == "." for match in short):
            order = "day"
        elif any(int(match["other"]) > 12 for match in short):
            order = "month"
        else:
            unclear = short[0].string
    values = np.full(len(cells), "NaT", "datetime64[us]")
    for row, match in enumerate(matches):
        if match is not None:
            values[row] = _moment(match, order)
    return values, order, unclear


def _moment(match: re.Match[str], order: Order | None) -> np.datetime64:
    parts = match.groupdict()
    if "first" in parts:
        swapped = order == "month"
        parts["day"], parts["month"] = parts["other" if swapped else "first"], parts["first" if swapped else "other"]
    if "word" in parts:
        # The number of an English month, written in full or by its first letters; 0 if it is none.
        months = (place for place, month in enumerate(_MONTHS, 1) if month.startswith(parts["word"].lower()))
        parts["month"] = str(next(months, 0))
    hour = int(parts["hour"] or 0)
    if parts["half"]:
        if not 1 <= hour <= 12:
            return np.datetime64("NaT", "us")
        hour = hour % 12 + 12 * (parts["half"].lower() == "pm")
    fraction = int((parts["fraction"] or "0").ljust(6, "0")[:6])
    year, month, day, minute, second = (int(parts[name] or 0) for name in ("year", "month", "day", "minute", "second"))
    try:
        moment = datetime(year, month, day, hour, minute, second, fraction, _zone(parts["zone"]))
        return np.datetime64(moment.astimezone(UTC).replace(tzinfo=None), "us")
    except (ValueError, OverflowError):  # no such day
        return np.datetime64("NaT", "us")


def _zone(text: str | None) -> timezone:
    if text is None or text in ("Z", "UTC", "GMT"):
        return UTC
    minutes = 60 * int(text[1:3]) + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def durations_of(cells: Sequence[str]) -> NDArray[Any]:
    """Times of day and durations, ``8:30`` or ``08:30:15.5``; NaT where a cell is neither. Microseconds."""
    values = np.full(len(cells), "NaT", "timedelta64[us]")
    for row, cell in enumerate(cells):
        match = _CLOCK.fullmatch(cell)
        if match is not None:
            seconds = float((match["second"] or "0").replace(",", "."))
            amount = 3600 * int(match["hour"]) + 60 * int(match["minute"]) + seconds
            values[row] = np.timedelta64(round(1e6 * amount) * (-1 if match["sign"] else 1), "us")
    return values


def unit_of(values: NDArray[Any]) -> str:
    """The largest unit of time that the values span twice, or have differences of whole units of; days for one day.

    Parameters
    ----------
    values : ndarray, datetime64[us] or timedelta64[us]
    """
    known = values[~np.isnat(values)].astype(np.int64)
    if values.dtype.kind == "M" and not (known % UNITS["days"]).any():
        return "days"
    span = int(known.max() - known.min()) if values.dtype.kind == "M" else int(abs(known).max())
    return next((unit for unit, length in UNITS.items() if span >= 2 * length), "seconds")


def origin_of(values: NDArray[Any], unit: str) -> str:
    """The moment that numbers count from, in ISO 8601: the first one, rounded down to the unit."""
    first = values[~np.isnat(values)].min()
    return str(first.astype(f"datetime64[{_BEGINNING[unit]}]"))


def counted(values: NDArray[Any], unit: str, origin: str | None) -> Floats:
    """Dates since an origin, or durations, in a unit; NaN where they are missing."""
    lengths = values - np.datetime64(origin, "us") if origin is not None else values
    numbers = lengths.astype(np.int64) / UNITS[unit]
    return np.where(np.isnat(lengths), np.nan, numbers)
