"""Conversion of a file's columns to numbers: learned from the training data, repeated for new files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from shine.base.typing import Floats
from shine.data.columns.kinds import HOLDS, Column, Kind
from shine.data.files.dates import Order, counted, origin_of, unit_of
from shine.data.files.numerals import Decimal
from shine.data.files.source import NO_MARKS, Marks
from shine.lang.forms.names import Numbering, identifier, listed, shown

Missing = Literal["error", "drop", "mean"]
"""Treatment of missing values."""

Categories = Literal["error", "one-hot", "ordinal", "ignore"]
"""Treatment of columns of text."""

MOST_CATEGORIES = 50
"""Most texts of a column that become columns of their own; a column with more mostly holds names or numbers of rows."""


@dataclass(frozen=True)
class Reading:
    """The user's settings for reading a file.

    Parameters
    ----------
    missing : {"error", "drop", "mean"}
    categories : {"error", "one-hot", "ordinal", "ignore"}
    decimal : {".", ","}, optional
        The decimal sign; by default the cells tell.
    numbered : tuple of str
        Headings, or their identifiers, of columns whose texts are numbered, whatever `categories` says.
    where : str, optional
        Condition on columns: other rows are not read (see `shine.data.streams.conditions`).
    stream : bool, optional
        Whether to read rows block by block instead of holding all of them in memory; by default, if they are many.
    marks : Marks
        What also stands for a missing value.
    """

    missing: Missing = "error"
    categories: Categories = "error"
    decimal: Decimal | None = None
    numbered: tuple[str, ...] = ()
    where: str | None = None
    stream: bool | None = None
    marks: Marks = NO_MARKS

    def numbers(self, heading: str) -> bool:
        """Whether the texts of a column are numbered, whatever `categories` says."""
        return heading in self.numbered or identifier(heading) in self.numbered


@dataclass(frozen=True)
class PreparedColumn:
    """A column of a file, and the columns of numbers that are made of it.

    Parameters
    ----------
    heading : str
        As it is in the file.
    name : str
        Identifier of the heading.
    kind : {"number", "truth", "date", "duration", "one-hot", "ordinal"}
    names : tuple of str
        Name in formulas of each column of numbers.
    headings : tuple of str
        What each column of numbers is called where people read it.
    categories : tuple of str
        The texts; of "one-hot", the last have the columns, and of two texts only the second has one. The number of an
        "ordinal" text is its position.
    unit, origin : str
        The unit of dates and durations; the moment that dates count from, in ISO 8601.
    order : "day", "month" or None
        What dates begin with, if they do not begin with the year.
    means : tuple of float
        Mean of each column of numbers, for missing values; empty if there are none.
    """

    heading: str
    name: str
    kind: Literal["number", "truth", "date", "duration", "one-hot", "ordinal"]
    names: tuple[str, ...]
    headings: tuple[str, ...]
    categories: tuple[str, ...] = ()
    unit: str = ""
    origin: str | None = None
    order: Order | None = None
    means: tuple[float, ...] = ()

    @property
    def raw_kind(self) -> Kind:
        """Kind of the column in the file."""
        return "text" if self.kind == "one-hot" or self.kind == "ordinal" else self.kind

    def numbers(self, column: Column) -> list[Floats]:
        """The columns of numbers, NaN where a value is missing or a text is unknown."""
        if self.kind in ("number", "truth"):
            return [column.values.astype(np.float64, copy=False)]
        if self.raw_kind != "text":
            return [counted(column.values, self.unit, self.origin)]
        places = {text: place for place, text in enumerate(self.categories)}
        codes = np.array([places.get(text, np.nan) for text in column.values], np.float64)
        if self.kind == "ordinal":
            return [codes]
        first = len(self.categories) - len(self.names)
        return [np.where(np.isnan(codes), np.nan, codes == code) for code in range(first, len(self.categories))]

    def filled(self, numbers: Sequence[Floats]) -> dict[str, Floats]:
        """Columns of numbers by their names, with means where values are missing, if there are means."""
        if self.means:
            numbers = [np.where(np.isnan(v), mean, v) for v, mean in zip(numbers, self.means, strict=True)]
        return dict(zip(self.names, numbers, strict=True))

    def unknown(self, column: Column) -> list[str]:
        """A line for each text that was not in the training data."""
        if self.raw_kind != "text":
            return []
        known = {None, *self.categories}
        texts = dict.fromkeys(text for text in column.values if text not in known)
        rows = column.values.tolist()
        return [column.raw.problem(rows.index(text), self.unknown_text(text)) for text in texts]

    def unknown_text(self, text: str) -> str:
        """Message about a text that was not in the training data."""
        return f"{shown(text)} was not in the training data; known are {listed(map(shown, self.categories), 8)}"

    def note(self) -> str | None:
        """Note for the user on the conversion."""
        start = f"column {self.heading!r}"
        if self.kind == "date":
            return f"{start} holds dates; {self.names[0]} counts {self.unit} since {self.origin}"
        if self.kind == "duration":
            return f"{start} holds {HOLDS['duration']}; {self.names[0]} is in {self.unit}"
        if self.kind == "one-hot":
            return f"{start} holds {len(self.categories)} texts; 0 or 1 each: {listed(self.names, 6)}"
        if self.kind == "ordinal":
            codes = (f"{text!r} is {code}" for code, text in enumerate(self.categories))
            return f"{start} holds text; {self.names[0]} numbers the texts in alphabetical order: {listed(codes, 6)}"
        return None


@dataclass(frozen=True)
class Preparation:
    """All columns that formulas may use, and what else a new file needs.

    Parameters
    ----------
    columns : tuple of PreparedColumn
    missing : {"error", "drop", "mean"}
    decimal : {".", ","}
        Decimal sign of the training data, for new files whose cells do not tell.
    missing_marks : tuple of str or float
        What also stands for a missing value.
    """

    columns: tuple[PreparedColumn, ...]
    missing: Missing = "error"
    decimal: Decimal = "."
    missing_marks: tuple[str | float, ...] = ()

    @property
    def marks(self) -> Marks:
        """Further marks for a missing value."""
        return Marks(self.missing_marks)

    @property
    def is_plain(self) -> bool:
        """Whether every column is one of numbers, and nothing needs to be remembered."""
        default = replace(self, columns=()) == Preparation(())
        return default and all(column.kind == "number" for column in self.columns)

    def of(self, names: Sequence[str]) -> list[PreparedColumn]:
        """The columns of the file that columns of numbers come from."""
        wanted = set(names)
        return [column for column in self.columns if wanted & set(column.names)]


def plain_preparation(headings: Mapping[str, str]) -> Preparation:
    """The preparation of a run that remembers none: numbers, by the headings and the names of the features.

    Parameters
    ----------
    headings : mapping of str to str
        Heading of each feature, by its name in formulas.
    """
    columns = (PreparedColumn(text, name, "number", (name,), (text,)) for name, text in headings.items())
    return Preparation(tuple(columns))


def learned(column: Column, name: str, categories: Categories, taken: Numbering) -> PreparedColumn:
    """The conversion of a column to numbers.

    Parameters
    ----------
    column : Column
        Without problems, and with a value in some row.
    name : str
        Identifier of its heading.
    categories : {"one-hot", "ordinal"}
        For text.
    taken : Numbering
        Makes new names distinct from those of other columns.
    """
    heading, values = column.raw.heading, column.values
    if column.kind in ("number", "truth"):
        return PreparedColumn(heading, name, column.kind, (name,), (heading,))
    if column.kind in ("date", "duration"):
        unit = unit_of(values)
        origin = origin_of(values, unit) if column.kind == "date" else None
        since = f"{unit} since {origin}" if origin else unit
        own = taken.take(identifier(f"{name}_{unit}"))
        told = (f"{heading} ({since})",)
        return PreparedColumn(heading, name, column.kind, (own,), told, (), unit, origin, column.order)
    texts = tuple(sorted({text for text in values if text is not None}))
    if categories == "ordinal":
        return PreparedColumn(heading, name, "ordinal", (name,), (heading,), texts)
    shown = texts[1:] if len(texts) == 2 else texts
    # Most characters of a text that the name of its column has.
    names = tuple(taken.take(identifier(f"{name}_is_{text[:40]}")) for text in shown)
    headings = tuple(f"{heading} is {text}" for text in shown)
    return PreparedColumn(heading, name, "one-hot", names, headings, texts)
