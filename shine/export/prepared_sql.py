"""SQL of the numbers that a run made of a table's columns: texts, dates, durations, and means for missing values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from shine.data.dates import UNITS
from shine.errors import ExportError

if TYPE_CHECKING:
    from shine.data.preparation import PreparedColumn


def prepared_sql(column: PreparedColumn, name: str, source: str, dialect: str) -> str:
    """An SQL expression of a column of numbers; NULL where the run would have no number.

    Parameters
    ----------
    column : PreparedColumn
        The column of the table.
    name : str
        One of its columns of numbers.
    source : str
        SQL text of the table's column: numbers, texts, timestamps or dates, intervals or times of day.
    dialect : str
        See `shine.export.sql.sql_expression`.

    Raises
    ------
    ExportError
        If the database has no such values.
    """
    place = column.names.index(name)
    text = _WRITERS[column.kind](column, place, source, dialect)
    return f"COALESCE({text}, {column.means[place]!r})" if column.means else text


def prepared_notes(columns: Iterable[PreparedColumn], dialect: str) -> list[str]:
    """What a user should know of the columns that an expression reads: a line for each date and duration."""
    written = "texts such as 2023-12-31" if dialect == "sqlite" else "of type DATE or TIMESTAMP"
    forms = {"date": f"dates, {written}", "duration": "of type TIME or INTERVAL"}
    return [
        f"the expression takes the values of column {column.heading!r} to be {forms[column.kind]}"
        for column in columns
        if column.kind in forms
    ]


def _plain(column: PreparedColumn, place: int, source: str, dialect: str) -> str:
    return source


def _truth(column: PreparedColumn, place: int, source: str, dialect: str) -> str:
    # Databases with a type for truth values do not calculate with them.
    return source if dialect == "sqlite" else f"CAST({source} AS INTEGER)"


def _one_hot(column: PreparedColumn, place: int, source: str, dialect: str) -> str:
    own = column.categories[len(column.categories) - len(column.names) + place]
    others = [_text(each) for each in column.categories if each != own]
    one_of = f"= {others[0]}" if len(others) == 1 else f"IN ({', '.join(others)})"
    rest = f" WHEN {source} {one_of} THEN 0.0" if others else ""
    return f"CASE WHEN {source} = {_text(own)} THEN 1.0{rest} END"


def _ordinal(column: PreparedColumn, place: int, source: str, dialect: str) -> str:
    cases = " ".join(f"WHEN {_text(each)} THEN {code}.0" for code, each in enumerate(column.categories))
    return f"CASE {source} {cases} END"


def _date(column: PreparedColumn, place: int, source: str, dialect: str) -> str:
    origin = str(np.datetime64(column.origin, "s")).replace("T", " ")
    if dialect != "sqlite":
        return _in_unit(f"EXTRACT(EPOCH FROM CAST({source} AS TIMESTAMP) - TIMESTAMP '{origin}')", column.unit)
    # Dates are texts in ISO 8601 there.
    if column.unit == "days":
        return f"(JULIANDAY({source}) - JULIANDAY('{origin}'))"
    # Whole seconds are exact, unlike fractions of days.
    whole = f"STRFTIME('%s', {source}) - STRFTIME('%s', '{origin}')"
    return _in_unit(f"({whole} + STRFTIME('%f', {source}) - STRFTIME('%S', {source}))", column.unit)


def _duration(column: PreparedColumn, place: int, source: str, dialect: str) -> str:
    if dialect == "sqlite":
        raise ExportError(
            f"SQL (sqlite) has no durations; make a column of {column.unit} from {column.heading!r}, and name it with "
            "columns={...}"
        )
    return _in_unit(f"EXTRACT(EPOCH FROM CAST({source} AS INTERVAL))", column.unit)


_WRITERS = {
    "number": _plain,
    "truth": _truth,
    "one-hot": _one_hot,
    "ordinal": _ordinal,
    "date": _date,
    "duration": _duration,
}
"""The writer of each kind of column."""


def _in_unit(seconds: str, unit: str) -> str:
    return f"({seconds} / {UNITS[unit] / UNITS['seconds']!r})"


def _text(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"
