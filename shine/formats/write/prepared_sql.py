"""SQL of the numbers that a run made of a table's columns: texts, dates, durations, and means for missing values."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shine.base.errors import ExportError
from shine.data.files.dates import UNITS
from shine.formats.write.sources import Source


def source_sql(source: Source, column: str, dialect: str) -> str:
    """An SQL expression of a number; NULL where the model would have no number.

    Parameters
    ----------
    source : Source
    column : str
        SQL text of the table's column: numbers, texts, timestamps or dates, intervals or times of day.
    dialect : str
        See `shine.formats.write.sql.sql_expression`.

    Raises
    ------
    ExportError
        If the database has no such values.
    """
    text = _WRITERS[source.kind](source, column, dialect)
    # A text that is not known has no number either, but is not missing.
    return (
        text if source.mean is None or source.kind == "text" else f"COALESCE({text}, {_written(source.mean, dialect)})"
    )


def prepared_notes(sources: Iterable[Source], dialect: str) -> list[str]:
    """What a user should know of the columns that an expression reads: a line for each date and duration."""
    written = "texts such as 2023-12-31" if dialect == "sqlite" else "of type DATE or TIMESTAMP"
    forms = {"date": f"dates, {written}", "duration": "of type TIME or INTERVAL"}
    headings = {source.heading: source.kind for source in sources if source.kind in forms}
    return [
        f"the expression takes the values of column {heading!r} to be {forms[kind]}"
        for heading, kind in headings.items()
    ]


def _plain(source: Source, column: str, dialect: str) -> str:
    return column


def _truth(source: Source, column: str, dialect: str) -> str:
    # Databases with a type for truth values do not calculate with them.
    return column if dialect == "sqlite" else f"CAST({column} AS INTEGER)"


def _text(source: Source, column: str, dialect: str) -> str:
    texts: dict[float, list[str]] = {}
    for text, code in source.codes.items():
        texts.setdefault(code, []).append(_quoted(text))
    if len(texts) == len(source.codes) and source.mean is None:
        cases = " ".join(f"WHEN {each[0]} THEN {_written(code, dialect)}" for code, each in texts.items())
        return f"CASE {column} {cases} END"
    cases = " ".join(f"WHEN {column} {_one_of(each)} THEN {_written(code, dialect)}" for code, each in texts.items())
    missing = "" if source.mean is None else f" WHEN {column} IS NULL THEN {_written(source.mean, dialect)}"
    return f"CASE {cases}{missing} END"


def _written(number: float, dialect: str) -> str:
    # DuckDB reads a number without an exponent as a decimal.
    text = repr(number)
    return f"{text}E0" if dialect == "duckdb" and "e" not in text and not number.is_integer() else text


def _one_of(texts: list[str]) -> str:
    return f"= {texts[0]}" if len(texts) == 1 else f"IN ({', '.join(texts)})"


def _date(source: Source, column: str, dialect: str) -> str:
    origin = str(np.datetime64(source.origin, "s")).replace("T", " ")
    if dialect != "sqlite":
        return _in_unit(f"EXTRACT(EPOCH FROM CAST({column} AS TIMESTAMP) - TIMESTAMP '{origin}')", source.unit)
    # Dates are texts in ISO 8601 there.
    if source.unit == "days":
        return f"(JULIANDAY({column}) - JULIANDAY('{origin}'))"
    # Whole seconds are exact, unlike fractions of days.
    whole = f"STRFTIME('%s', {column}) - STRFTIME('%s', '{origin}')"
    return _in_unit(f"({whole} + STRFTIME('%f', {column}) - STRFTIME('%S', {column}))", source.unit)


def _duration(source: Source, column: str, dialect: str) -> str:
    if dialect == "sqlite":
        raise ExportError(
            f"SQL (sqlite) has no durations; make a column of {source.unit} from {source.heading!r}, and name it with "
            "columns={...}"
        )
    return _in_unit(f"EXTRACT(EPOCH FROM CAST({column} AS INTERVAL))", source.unit)


_WRITERS = {
    "number": _plain,
    "truth": _truth,
    "text": _text,
    "date": _date,
    "duration": _duration,
}
"""The writer of each kind of column."""


def _in_unit(seconds: str, unit: str) -> str:
    return f"({seconds} / {UNITS[unit] / UNITS['seconds']!r})"


def _quoted(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"
