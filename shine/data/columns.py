"""What a column of a file or a data frame holds: numbers, yes and no, dates, durations or texts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shine.data.dates import Order, dates_of, durations_of
from shine.data.numerals import Decimal, is_missing, numeral
from shine.data.source import RawColumn
from shine.lang.names import cut
from shine.typing import Floats

Kind = Literal["number", "truth", "date", "duration", "text"]

HOLDS: dict[Kind, str] = {
    "number": "numbers",
    "truth": "true and false",
    "date": "dates",
    "duration": "times of day or durations",
    "text": "text",
}
"""The contents of each kind of column, in words."""

_TRUTH = {"true": 1.0, "false": 0.0}

_INFINITE = ("inf", "infinity", "∞")


@dataclass(frozen=True, eq=False)
class Column:
    """A column and what it holds.

    Parameters
    ----------
    raw : RawColumn
    kind : str
    values : ndarray of shape (n_rows,)
        float64 for numbers and truth, NaN where missing; datetime64[us] or timedelta64[us], NaT where missing; or
        object, texts, None where missing.
    problems : tuple of str
        A line for each cell that is not of the kind.
    order : "day", "month" or None
        What dates begin with.
    sign : str
        The sign of percent or of a currency that stood beside all numbers.
    grouped : str
        A cell with thousands separators; empty if there is none.
    """

    raw: RawColumn
    kind: Kind
    values: NDArray[Any]
    problems: tuple[str, ...] = ()
    order: Order | None = None
    sign: str = ""
    grouped: str = ""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each row has no value."""
        if self.values.dtype.kind == "O":
            return np.array([value is None for value in self.values], bool)
        missing: NDArray[np.bool_] = np.isnat(self.values) if self.values.dtype.kind in "mM" else np.isnan(self.values)
        return missing


def recognized(raw: RawColumn, decimal: Decimal, kind: Kind | None = None, order: Order | None = None) -> Column:
    """A column with its kind: the one that at least half of its values have.

    Parameters
    ----------
    raw : RawColumn
    decimal : "." or ","
        The decimal sign in texts.
    kind : str, optional
        The kind of the column in the training data.
    order : "day" or "month", optional
        What dates in the training data begin with.
    """
    values, code = raw.values, raw.values.dtype.kind
    if code in "biuf" and kind != "text":
        column = _numbers(raw)
    elif code == "M":
        column = Column(raw, "date", values.astype("datetime64[us]"))
    elif code == "m":
        column = Column(raw, "duration", values.astype("timedelta64[us]"))
    elif code in "OUSTbiuf":
        return _from_text(raw, [_text(value) for value in values.tolist()], decimal, kind, order)
    else:
        lines = (raw.problem(0, f"holds {cut(values.dtype, 60)}, not numbers; leave it out of the features"),)
        return Column(raw, "number", np.full(len(values), np.nan), lines)
    same = kind == column.kind or {kind, column.kind} == {"number", "truth"}
    if kind is not None and not same:
        line = raw.problem(0, f"holds {HOLDS[column.kind]}, but {HOLDS[kind]} in the training data")
        column = replace(column, problems=(line,))
    return column


def _numbers(raw: RawColumn) -> Column:
    values: Floats = raw.values.astype(np.float64, copy=False)
    infinite = np.flatnonzero(np.isinf(values))
    text = f"the value is infinite{_and_more(len(infinite))}"
    problems = (raw.problem(int(infinite[0]), text),) if len(infinite) else ()
    return Column(raw, "number", values, problems)


def _and_more(count: int) -> str:
    return "" if count <= 1 else f", and in {count - 1} more row{'s' * (count > 2)}"


def _text(value: object) -> str:
    """A cell as text; empty if it is missing."""
    if isinstance(value, str):
        return value.strip()
    if value is None or _is_nothing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode(errors="replace").strip()
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def _is_nothing(value: object) -> bool:
    """Whether a value is NaN, NaT or pandas' NA: the first two differ from themselves, the last does not tell."""
    try:
        return bool(value != value)
    except TypeError:
        return True


def _from_text(raw: RawColumn, cells: list[str], decimal: Decimal, kind: Kind | None, order: Order | None) -> Column:
    missing = [is_missing(cell) for cell in cells]
    known = [cell for cell, gone in zip(cells, missing, strict=True) if not gone]
    if kind is None:
        kind = _kind(known, decimal)
    if kind == "text":
        texts = np.empty(len(cells), object)
        texts[:] = [None if gone else cell for cell, gone in zip(cells, missing, strict=True)]
        return Column(raw, "text", texts)
    if kind in ("number", "truth"):
        return _read_numbers(raw, cells, missing, decimal)
    if kind == "date":
        dates = dates_of(cells, order)
        values, order = dates.values, dates.order
        if dates.unclear:
            row = cells.index(dates.unclear)
            text = f"{cell_text(dates.unclear)} may begin with the day or the month; write dates as 2023-12-31"
            return Column(raw, "date", values, (raw.problem(row, text),))
    else:
        values = durations_of(cells)
    wrong = np.flatnonzero(np.isnat(values) & ~np.array(missing, bool))
    what = "a date" if kind == "date" else "a time"
    problems = [raw.problem(int(row), f"{cell_text(cells[row])} is not {what}") for row in wrong]
    return Column(raw, kind, values, tuple(problems), order)


def _kind(known: list[str], decimal: Decimal) -> Kind:
    if 2 * sum(numeral(cell, decimal) is not None for cell in known) >= len(known):
        return "number"
    if all(cell.lower() in _TRUTH for cell in known):
        return "truth"
    if 2 * int((~np.isnat(dates_of(known, "day").values)).sum()) >= len(known):
        return "date"
    if 2 * int((~np.isnat(dates_of(known, "month").values)).sum()) >= len(known):
        return "date"
    return "duration" if 2 * int((~np.isnat(durations_of(known))).sum()) >= len(known) else "text"


def _read_numbers(raw: RawColumn, cells: list[str], missing: list[bool], decimal: Decimal) -> Column:
    truths = all(gone or cell.lower() in _TRUTH for cell, gone in zip(cells, missing, strict=True)) and not all(missing)
    values = np.full(len(cells), np.nan)
    problems: list[str] = []
    sign, grouped, first = "", "", ""
    for row, (cell, gone) in enumerate(zip(cells, missing, strict=True)):
        if gone:
            continue
        if truths:
            values[row] = _TRUTH[cell.lower()]
            continue
        number = numeral(cell, decimal)
        if number is not None and not first:
            first, sign = cell, number.sign
        if number is None or not math.isfinite(number.value):
            problems.append(raw.problem(row, _wrong_number(cell, decimal)))
        elif number.sign != sign:
            problems.append(raw.problem(row, f"{cell_text(cell)} and {cell_text(first)} have different signs"))
        else:
            values[row] = number.value
            grouped = grouped or cell * number.grouped
    return Column(raw, "truth" if truths else "number", values, tuple(problems), None, sign, grouped)


def _wrong_number(cell: str, decimal: Decimal) -> str:
    if numeral(cell, decimal) is not None:
        return f"{cell_text(cell)} is too large"
    if cell.lower().lstrip("+-") in _INFINITE:
        return f"{cell_text(cell)} is not finite"
    other: Decimal = "," if decimal == "." else "."
    if numeral(cell, other) is not None:
        return f"{cell_text(cell)} is not a number where the decimal sign is {decimal!r}"
    return f"{cell_text(cell)} is not a number"


def cell_text(cell: str) -> str:
    """A cell for a message."""
    return ascii(cell if len(cell) <= 40 else cell[:37] + "...")


def reading_notes(columns: Iterable[Column]) -> list[str]:
    """What was left out of numbers, for the user."""
    notes = []
    for column in columns:
        if column.sign:
            notes.append(f"column {column.raw.heading!r}: the sign {column.sign} beside its numbers is left out")
        if column.grouped:
            notes.append(f"column {column.raw.heading!r}: numbers have thousands separators, as {column.grouped!r}")
    return notes
