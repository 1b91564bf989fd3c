"""The dialect of a text file: its letters, its comments and what separates its columns."""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

from shine.base.errors import DataError
from shine.data.files.numerals import numeral

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
