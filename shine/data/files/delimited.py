"""Delimited text: a header row, then rows of cells. Plain numbers are parsed fast; errors name the line and column."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.data.files.dialect import Dialect, dialect_of
from shine.data.files.files import read_bytes
from shine.data.files.grids import Grid, fitted, has_units, rectangular, units_note
from shine.data.files.marks import NO_MARKS, Marks
from shine.data.files.numerals import numeral
from shine.data.files.source import RawColumn, Source
from shine.lang.forms.names import listed

_QUOTED_COMMA = re.compile(r'"[^"]*[0-9],[0-9][^"]*"')
"""A number with a comma between quotes; it may also match numbers between quoted cells."""

_LOOKED_AT = 200
"""Lines that tell whether the first row holds units."""


def open_delimited(path: Path, marks: Marks = NO_MARKS) -> Source:
    """Open a CSV or TSV file, compressed or not.

    Raises
    ------
    DataError
        If it is not text with a header row.
    """
    dialect = dialect_of(path, read_bytes(path))
    reader = csv.reader(iter(dialect.lines), delimiter=dialect.delimiter)
    try:
        header = next((row for row in reader if any(map(str.strip, row))), None)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not a table: {error}") from None
    if header is None:
        raise DataError(f"{path}: the file is empty; a header row with the names of the columns is needed")
    headings = tuple(cell.strip() for cell in header)
    if all(numeral(cell, ".") is not None or numeral(cell, ",") is not None for cell in headings):
        raise DataError(
            f"{path}:{reader.line_num}: the first row holds numbers ({listed(headings, 4)}); "
            "a header row with the names of the columns is needed above it"
        )
    body = _Body(path, headings, dialect, reader.line_num, marks)
    return Source(path, headings, body.columns, body.cells, dialect.delimiter, (*dialect.notes, *body.notes()))


class _Body:
    """The rows below the header."""

    def __init__(self, path: Path, headings: tuple[str, ...], dialect: Dialect, header: int, marks: Marks) -> None:
        self.path, self.headings, self.delimiter = path, headings, dialect.delimiter
        self.lines, self.first = dialect.lines[header:], header
        if not any(line.strip() for line in self.lines):
            raise DataError(f"{path}: there is a header, but no row of data below it")
        self.units = 0
        """Line that holds units; 0 if none does."""
        rows = self._rows(self.lines[:_LOOKED_AT])
        if rows and all(len(row) == len(headings) for _, row in rows) and has_units([row for _, row in rows], marks):
            self.units, self.named_units = rows[0]
            self.lines = ["\n"] * (self.units - self.first) + self.lines[self.units - self.first :]

    def notes(self) -> list[str]:
        """What a user should know."""
        return [units_note(f"{self.path}:{self.units}", self.named_units)] if self.units else []

    def cells(self) -> Iterable[str]:
        """The texts of all rows."""
        return (cell for row in self._grid.rows for cell in row)

    def columns(self, indices: Sequence[int], as_text: Collection[int] = ()) -> list[RawColumn]:
        """Columns by index: of numbers if each cell is a plain one, otherwise of text."""
        table = self._plain([index for index in indices if index not in as_text])
        if table is None:
            return self._grid.columns(indices)
        numbers = {index: RawColumn(self.headings[index], column, self._place) for index, column in table.items()}
        texts = dict(zip(as_text, self._grid.columns(list(as_text)), strict=True)) if as_text else {}
        return [numbers[index] if index in numbers else texts[index] for index in indices]

    def _place(self, row: int) -> str:
        return self._grid.place(row)

    def _plain(self, indices: list[int]) -> dict[int, Floats] | None:
        """Columns of finite numbers without any ambiguity; None if there is another cell."""
        commas = self.delimiter != "," and any("," in line for line in self.lines)
        if not indices or commas or not self._is_rectangular():
            return None
        try:
            table = np.loadtxt(
                # A generator runs Python code, so that signals are handled while a large file is read.
                (line for line in self.lines),
                delimiter=self.delimiter,
                quotechar='"',
                comments=None,
                usecols=indices,
                ndmin=2,
            )
        except (ValueError, OverflowError):
            return None
        if not np.isfinite(table).all():
            return None
        return {index: np.ascontiguousarray(column) for index, column in zip(indices, table.T, strict=True)}

    def _is_rectangular(self) -> bool:
        # loadtxt ignores cells beyond the columns it uses, so it would not notice that an unquoted comma shifts cells.
        wanted = len(self.headings) - 1
        if any('"' in line for line in self.lines):
            if any('"' in line and _QUOTED_COMMA.search(line) for line in self.lines):
                return False
            try:
                rows = csv.reader(iter(self.lines), delimiter=self.delimiter)
                return all(len(row) == wanted + 1 for row in rows if row)
            except csv.Error:
                return False
        return all(line.count(self.delimiter) == wanted for line in self.lines if line != "\n")

    @cached_property
    def _grid(self) -> Grid:
        rows = self._rows(self.lines)
        rectangular(self.path, len(self.headings), rows, lambda number: f"{self.path}:{number}")
        numbers = [number for number, _ in rows]
        return Grid(self.path, self.headings, [row for _, row in rows], lambda row: f"{self.path}:{numbers[row]}")

    def _rows(self, lines: Sequence[str]) -> list[tuple[int, list[str]]]:
        """Number of the line and cells of each row that has any."""
        reader = csv.reader(iter(lines), delimiter=self.delimiter)
        width, rows = len(self.headings), []
        try:
            for cells in reader:
                row = fitted(cells, width)
                if any(row):
                    rows.append((self.first + reader.line_num, row))
        except csv.Error as error:
            raise DataError(f"{self.path}:{self.first + reader.line_num}: not a table: {error}") from None
        return rows
