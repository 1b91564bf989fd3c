"""Kinds of columns of files and data frames: numbers, yes and no, dates, durations or texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shine.base.typing import Floats
from shine.data.files.dates import Order, dates_of, durations_of
from shine.data.files.numerals import Decimal, Numeral, is_missing, numeral, plain_numbers
from shine.data.files.source import NO_MARKS, Marks, RawColumn
from shine.lang.forms.names import cut, shown

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


def recognized(
    raw: RawColumn, decimal: Decimal, marks: Marks = NO_MARKS, kind: Kind | None = None, order: Order | None = None
) -> Column:
    """A column with its kind: the one that at least half of its values have.

    Parameters
    ----------
    raw : RawColumn
    decimal : "." or ","
        The decimal sign in texts.
    marks : Marks
        What also stands for a missing value.
    kind : str, optional
        The kind of the column in the training data.
    order : "day" or "month", optional
        What dates in the training data begin with.
    """
    values, code = raw.values, raw.values.dtype.kind
    if code in "biuf" and kind != "text":
        column = _numbers(raw, marks)
    elif code == "M":
        column = Column(raw, "date", marks.without(values).astype("datetime64[us]"))
    elif code == "m":
        column = Column(raw, "duration", values.astype("timedelta64[us]"))
    elif code in "OUSTbiuf":
        return _from_text(raw, [_text(value) for value in values.tolist()], decimal, marks, kind, order)
    else:
        lines = (raw.problem(0, f"holds {cut(values.dtype, 60)}, not numbers; leave it out of the features"),)
        return Column(raw, "number", np.full(len(values), np.nan), lines)
    same = kind == column.kind or {kind, column.kind} == {"number", "truth"}
    if kind is not None and not same:
        line = raw.problem(0, f"holds {HOLDS[column.kind]}, but {HOLDS[kind]} in the training data")
        column = replace(column, problems=(line,))
    return column


def _numbers(raw: RawColumn, marks: Marks) -> Column:
    values: Floats = marks.without(raw.values).astype(np.float64, copy=False)
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
    except ValueError:  # an array in a cell
        return False


def _from_text(
    raw: RawColumn, cells: list[str], decimal: Decimal, marks: Marks, kind: Kind | None, order: Order | None
) -> Column:
    if marks.extra:
        cells = ["" if marks.are(cell, decimal) else cell for cell in cells]
    values, rest = plain_numbers(cells, decimal)
    missing = np.zeros(len(cells), bool)
    missing[[row for row in rest if is_missing(cells[row])]] = True
    numerals = {row: numeral(cells[row], decimal) for row in rest if not missing[row]}
    if kind is None:
        others = sum(found is None and not _is_infinite(cells[row]) for row, found in numerals.items())
        kind = _kind(cells, missing, others)
    if kind == "number":
        return _with_numerals(raw, values, cells, numerals, decimal)
    if kind == "truth":
        found = [_TRUTH.get(cell.lower(), np.nan) for cell in cells]
        return Column(raw, kind, np.array(found), _problems(raw, cells, np.isnan(found) & ~missing, "true or false"))
    if kind == "text":
        texts = np.empty(len(cells), object)
        texts[:] = [None if gone else cell for cell, gone in zip(cells, missing, strict=True)]
        return Column(raw, kind, texts)
    if kind == "duration":
        times = durations_of(cells)
        return Column(raw, kind, times, _problems(raw, cells, np.isnat(times) & ~missing, "a time"))
    dates, order, unclear = dates_of(cells, order)
    problems = _problems(raw, cells, np.isnat(dates) & ~missing, "a date")
    if unclear:
        text = f"{shown(unclear)} may begin with the day or the month; write dates as 2023-12-31"
        problems = (raw.problem(cells.index(unclear), text),)
    return Column(raw, kind, dates, problems, order)


def _kind(cells: list[str], missing: NDArray[np.bool_], others: int) -> Kind:
    """The kind of a column, of whose cells some are missing and `others` are no numbers."""
    count = int((~missing).sum())
    if 2 * others <= count:
        return "number"
    known = [cell for cell, gone in zip(cells, missing, strict=True) if not gone]
    if all(cell.lower() in _TRUTH for cell in known):
        return "truth"
    dates = (dates_of(known, "day")[0], dates_of(known, "month")[0])
    if 2 * max(np.count_nonzero(~np.isnat(found)) for found in dates) >= count:
        return "date"
    return "duration" if 2 * np.count_nonzero(~np.isnat(durations_of(known))) >= count else "text"


def _problems(raw: RawColumn, cells: list[str], wrong: NDArray[np.bool_], what: str) -> tuple[str, ...]:
    return tuple(raw.problem(int(row), f"{shown(cells[row])} is not {what}") for row in np.flatnonzero(wrong))


def _with_numerals(
    raw: RawColumn, values: Floats, cells: list[str], numerals: dict[int, Numeral | None], decimal: Decimal
) -> Column:
    """A column of plain numbers and of those with signs or separators; all have the same sign, or none."""
    plain = np.flatnonzero(~np.isnan(values))
    first = {"": int(plain[0])} if len(plain) else {}
    signs = Counter({"": len(plain)} if len(plain) else {})
    for row, found in numerals.items():
        if found is not None:
            signs[found.sign] += 1
            first.setdefault(found.sign, row)
    sign = signs.most_common(1)[0][0] if signs else ""
    problems = [
        (first[other], f"{shown(cells[first[other]])} and {shown(cells[first[sign]])} have different signs")
        for other in signs
        if other != sign
    ]
    for row, found in numerals.items():
        values[row] = np.nan if found is None else found.value
        if found is None or np.isinf(found.value):
            problems.append((row, _wrong_number(cells[row], decimal)))
    infinite = np.flatnonzero(np.isinf(values))
    problems += [(int(row), _wrong_number(cells[row], decimal)) for row in infinite if int(row) not in numerals]
    values[infinite] = np.nan
    grouped = next((cells[row] for row, found in numerals.items() if found is not None and found.grouped), "")
    lines = tuple(raw.problem(row, text) for row, text in sorted(problems))
    return Column(raw, "number", values, lines, None, sign, grouped)


def _wrong_number(cell: str, decimal: Decimal) -> str:
    if numeral(cell, decimal) is not None:
        return f"{shown(cell)} is too large"
    if _is_infinite(cell):
        return f"{shown(cell)} is not finite; correct it, or leave the row out"
    other: Decimal = "," if decimal == "." else "."
    if numeral(cell, other) is not None:
        return f"{shown(cell)} is not a number where the decimal sign is {decimal!r}"
    return f"{shown(cell)} is not a number"


def _is_infinite(cell: str) -> bool:
    return cell.lower().lstrip("+-") in _INFINITE


def digits_note(title: str, given: NDArray[Any], numbers: Floats) -> list[str]:
    """A note on whole numbers, as they were given, that float64 does not hold."""
    with np.errstate(invalid="ignore"):
        large = np.flatnonzero((np.abs(numbers) >= 2**53) & np.isfinite(numbers))
    cells = zip(map(_text, given[large].tolist()), numbers[large].tolist(), strict=True)
    lost = sum(cell.lstrip("+-").isdecimal() and int(cell) != number for cell, number in cells)
    text = f"{title}: whole numbers beyond 2**53 lose digits ({lost} of them); subtract a common one, or leave keys out"
    return [text] if lost else []


def reading_notes(columns: Iterable[Column]) -> list[str]:
    """Signs and units left out of numbers, for the user."""
    notes = []
    for column in columns:
        if column.sign:
            notes.append(f"column {column.raw.heading!r}: the sign {column.sign} beside its numbers is left out")
        if column.grouped:
            notes.append(f"column {column.raw.heading!r}: numbers have thousands separators, as {column.grouped!r}")
    return notes
