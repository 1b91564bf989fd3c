"""Delimited text: a header row, then rows of cells. Plain numbers are parsed fast; errors name the line and column.

The dialect of a file, its letters, comments and separator, is read from its first lines.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.data.files.grids import Grid, fitted, has_units, rectangular, units_note
from shine.data.files.numerals import numeral
from shine.data.files.source import NO_MARKS, Marks, RawColumn, Source, read_bytes
from shine.lang.forms.names import listed

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Marks at the beginning of a file, and what they say."""

_OTHER_FILES = (
    (b"\x1f\x8b", "a gzip file, which should end in .csv.gz"),
    (b"BZh9", "a bzip2 file, which should end in .csv.bz2"),
    (b"\xfd7zXZ\0", "an xz file, which should end in .csv.xz"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file, which should end in .csv.zst"),
    (b"PK\x03\x04", "a zip or Excel file, which should end in .csv.zip or .xlsx"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file; save it as .xlsx"),
    (b"PAR1", "a Parquet file, which should end in .parquet"),
)
"""Beginnings of files that are no text, and what they are."""

_COMPARED = 50
"""Rows that tell the separator."""


@dataclass(frozen=True)
class Dialect:
    """The lines of a text file, and how to read them.

    Parameters
    ----------
    lines : list of str
        With their line feeds; comments are empty lines, so that lines keep their numbers.
    delimiter : str
        What separates columns.
    notes : tuple of str
        What a user should know.
    """

    lines: list[str]
    delimiter: str
    notes: tuple[str, ...]


def dialect_of(path: Path, data: bytes) -> Dialect:
    """The dialect of a file's bytes; a `DataError` if they are not text."""
    text, notes = _decoded(path, data)
    lines = io.StringIO(text, newline=None).readlines()
    given = re.fullmatch(r"sep=(.)\s*", lines[0]) if lines else None
    if given:  # Excel's own first line
        lines[0] = "\n"
        delimiter = given[1]
    else:
        first = lines[: 20 * _COMPARED]
        begin = next((place for place, line in enumerate(first) if not _is_comment(line)), 0)
        comment = next((line for line in reversed(first[:begin]) if line.strip()), "")
        delimiter = _delimiter(path, [line for line in first if not _is_comment(line)][:_COMPARED], comment)
    if any(line.startswith("#") for line in lines):
        lines = _without_comments(lines, delimiter)
    if delimiter == " ":
        lines = [" ".join(line.split()) + "\n" for line in lines]
    return Dialect(lines, delimiter, notes)


def _decoded(path: Path, data: bytes) -> tuple[str, tuple[str, ...]]:
    kind = next((kind for beginning, kind in _OTHER_FILES if data.startswith(beginning)), None)
    if kind is not None:
        raise DataError(f"{path}: is not text, but begins like {kind}")
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), _without_mark(data))
    try:
        return data.decode(encoding), ()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        if encoding != "utf-8":
            raise DataError(f"{path}:{line}: is not {encoding.upper()} text, although it begins like it") from None
    if b"\0" in data[:1000]:
        raise DataError(f"{path}:{line}: byte {byte:#04x} is not UTF-8 text; save it as UTF-8")
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        raise DataError(f"{path}:{line}: byte {byte:#04x} is not UTF-8 text; save it as UTF-8") from None
    note = f"{path}:{line}: is not UTF-8, and is read as Windows-1252 (Latin-1); if letters are wrong, save it as UTF-8"
    return text, (note,)


def _is_comment(line: str) -> bool:
    """Whether a line is a comment, or empty."""
    return line.startswith("#") or not line.strip()


def _without_mark(data: bytes) -> str:
    """The encoding of text without a mark: in UTF-16, every other byte of most texts is 0."""
    start = data[:1000]
    if 4 * start.count(0) <= len(start):
        return "utf-8"
    return "utf-16-le" if start[1::2].count(0) > start[::2].count(0) else "utf-16-be"


def _delimiter(path: Path, lines: list[str], comment: str) -> str:
    """The candidate that the comment above has as often, then the most rows, then the most frequent one."""
    if not lines:
        return ","
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
    candidates = "\t,;|" if ".tsv" in path.name.lower() else ",;\t|"
    found = [sign for sign in candidates if sign in bare[0]]
    if not found:
        # Columns aligned by blanks: every row has as many words.
        words = {len(line.split()) for line in bare}
        return " " if len(lines) > 1 and words == {len(bare[0].split())} and words != {1} else candidates[0]

    def rank(sign: str) -> tuple[bool, int, int]:
        count = bare[0].count(sign)
        return comment.count(sign) == count, sum(line.count(sign) == count for line in bare), count

    return max(found, key=rank)


def _without_comments(lines: list[str], delimiter: str) -> list[str]:
    """The lines, where comments are empty. A comment above a row with numbers is the header if it has as many cells."""
    first = next((place for place, line in enumerate(lines) if not _is_comment(line)), len(lines))
    above = [place for place in range(first) if lines[place].startswith("#")]
    kept = list(lines)
    for place in above:
        kept[place] = "\n"
    cells = _cells(lines[first], delimiter) if first < len(lines) else []
    width = len(cells)
    if above and any(numeral(cell, ".") or numeral(cell, ",") for cell in cells):
        # NumPy writes "# a,b"; without a blank the sign belongs to the heading.
        last = re.sub(r"^#+\s+", "", lines[above[-1]])
        kept[above[-1]] = last if len(_cells(last, delimiter)) == width else "\n"
    for place in range(first, len(lines)):
        # A cell such as #N/A begins with the sign too.
        if lines[place].startswith("#") and (width == 1 or len(_cells(lines[place], delimiter)) != width):
            kept[place] = "\n"
    return kept


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []


_QUOTED_COMMA = re.compile(r'"[^"]*[0-9],[0-9][^"]*"')
"""A number with a comma between quotes; it may also match numbers between quoted cells."""

_PLAIN_DELIMITERS = ",;\t|"
"""Delimiters that no number contains, and that do not stand around numbers as blanks do."""

_LARGE = 1 << 20
"""Bytes from which on pyarrow reads the numbers of a file, if it is there: faster, and with less memory."""


def open_delimited(path: Path, marks: Marks = NO_MARKS) -> Source:
    """Open a CSV or TSV file, compressed or not; a `DataError` if it is not text with a header row."""
    data = read_bytes(path)
    large = _large(path, data, marks)
    body = large.beginning if large else _Body(path, data, marks)
    read = (large.columns, large.cells) if large else (body.columns, body.cells)
    return Source(path, body.headings, *read, body.delimiter, (*body.dialect.notes, *body.notes()))


class _Body:
    """The rows below the header."""

    def __init__(self, path: Path, data: bytes, marks: Marks) -> None:
        self.path, self.dialect = path, dialect_of(path, data)
        self.delimiter = self.dialect.delimiter
        reader = csv.reader(iter(self.dialect.lines), delimiter=self.delimiter)
        try:
            header = next((row for row in reader if any(map(str.strip, row))), None)
        except csv.Error as error:
            raise DataError(f"{path}:{reader.line_num}: not a table: {error}") from None
        if header is None:
            raise DataError(f"{path}: the file is empty; a header row with the names of the columns is needed")
        self.headings = tuple(cell.strip() for cell in header)
        if all(numeral(cell, ".") is not None or numeral(cell, ",") is not None for cell in self.headings):
            raise DataError(
                f"{path}:{reader.line_num}: the first row holds numbers ({listed(self.headings, 4)}); "
                "a header row with the names of the columns is needed above it"
            )
        self.first = reader.line_num
        self.lines = self.dialect.lines[self.first :]
        if not any(line.strip() for line in self.lines):
            raise DataError(f"{path}: there is a header, but no row of data below it")
        self.units = 0
        """Line that holds units; 0 if none does."""
        # Lines that tell whether the first row holds units.
        rows, width = self._rows(self.lines[:200]), len(self.headings)
        if rows and all(len(row) == width for _, row in rows) and has_units([row for _, row in rows], marks):
            self.units, self.named_units = rows[0]
            self.lines = ["\n"] * (self.units - self.first) + self.lines[self.units - self.first :]

    def notes(self) -> list[str]:
        """Notes for the user."""
        return [units_note(f"{self.path}:{self.units}", self.named_units)] if self.units else []

    def cells(self) -> Iterable[str]:
        """The texts of all rows."""
        return (cell for row in self._grid.rows for cell in row)

    def columns(self, indices: Sequence[int], as_text: Collection[int] = ()) -> list[RawColumn]:
        """Columns by index: of numbers if each cell is a plain one, otherwise of text."""
        table = self._plain([index for index in indices if index not in as_text])
        if table is None:
            return self._grid.columns(indices)
        numbers = {index: RawColumn(self.headings[index], column, self.place) for index, column in table.items()}
        texts = dict(zip(as_text, self._grid.columns(list(as_text)), strict=True)) if as_text else {}
        return [numbers[index] if index in numbers else texts[index] for index in indices]

    def place(self, row: int) -> str:
        """The place of a row."""
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


def _large(path: Path, data: bytes, marks: Marks) -> _Large | None:
    """The rows of a large file; None for others, and for those whose beginning does not tell all."""
    if len(data) < _LARGE or b"\0" in data[:1000]:
        return None
    end = 0
    for _ in range(1000):  # lines of a large file that tell all about it but its numbers
        end = data.find(b"\n", end) + 1
        if end in (0, len(data)):
            return None
    has_other_ends = b"\r" in data[:end].replace(b"\r\n", b"")
    if has_other_ends or not data[end:].isascii():
        return None
    try:
        return _Large(_Body(path, data[:end], marks), data, marks)
    except DataError:
        return None


class _Large:
    """The rows of a large file, of which the beginning is known: columns of plain numbers need no lines."""

    def __init__(self, beginning: _Body, data: bytes, marks: Marks) -> None:
        self.beginning, self.data, self.marks = beginning, data, marks

    @cached_property
    def whole(self) -> _Body:
        """All rows as lines."""
        return _Body(self.beginning.path, self.data, self.marks)

    def cells(self) -> Iterable[str]:
        """As of `_Body`."""
        return self.whole.cells()

    def columns(self, indices: Sequence[int], as_text: Collection[int] = ()) -> list[RawColumn]:
        """As of `_Body`."""
        found, headings = None if as_text else self._plain(indices), self.beginning.headings
        if found is None:
            return self.whole.columns(indices, as_text)
        return [RawColumn(headings[index], found[index], self._place) for index in indices]

    def _plain(self, indices: Sequence[int]) -> dict[int, Floats] | None:
        body, start = self.beginning, 0
        if body.delimiter not in _PLAIN_DELIMITERS:
            return None
        for _ in range(body.units or body.first):
            start = self.data.find(b"\n", start) + 1
        return plain_columns(self.data, start, body.delimiter, len(body.headings), set(indices))

    def _place(self, row: int) -> str:
        return self.whole.place(row)


def plain_columns(
    data: bytes, start: int, delimiter: str, width: int, wanted: Collection[int]
) -> dict[int, Floats] | None:
    """Columns of finite numbers by index, the same as by `float`; None if rows have other cells, quotes or comments,
    and without pyarrow.

    Parameters
    ----------
    data : bytes
    start : int
        Where the first row begins.
    delimiter : str
        A letter of ASCII.
    width : int
        Number of columns; None is returned if a row has fewer or more.
    wanted : collection of int
        Columns to return.
    """
    try:
        import pyarrow
        from pyarrow import csv as reader
    except ImportError:
        return None
    names = [str(index) for index in range(width)]
    try:
        table = reader.read_csv(
            pyarrow.py_buffer(memoryview(data)[start:]),
            reader.ReadOptions(column_names=names, use_threads=False),
            reader.ParseOptions(delimiter=delimiter, quote_char=False),
            reader.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.float64()),
                null_values=[],
                include_columns=[names[index] for index in wanted],
                check_utf8=False,
            ),
        )
    except pyarrow.ArrowException:
        return None
    found = {index: table.column(names[index]).to_numpy() for index in wanted}
    return found if all(np.isfinite(column).all() for column in found.values()) else None
