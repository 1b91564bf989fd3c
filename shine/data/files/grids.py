"""A grid of texts, from a text file or a sheet -> headings and columns; the rows between them that are no data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shine.base.errors import DataError
from shine.data.files.numerals import numeral
from shine.data.files.source import Marks, RawColumn
from shine.lang.forms.names import listed

MAX_REPORTED = 10
"""Most bad cells that an error lists."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The rows below the headings, and where each is in its file.

    Parameters
    ----------
    path : Path
    headings : tuple of str
    rows : list of list of str
        Cells without blanks around them, as many in each row as there are headings.
    place : callable
        The place of a row for messages.
    """

    path: Path
    headings: tuple[str, ...]
    rows: list[list[str]]
    place: Callable[[int], str]

    def columns(self, indices: Sequence[int]) -> list[RawColumn]:
        """Columns by index, as text."""
        columns = []
        for index in indices:
            values = np.empty(len(self.rows), object)
            values[:] = [row[index] for row in self.rows]
            columns.append(RawColumn(self.headings[index], values, self.place))
        return columns


def rectangular(path: Path, width: int, rows: Sequence[tuple[int, list[str]]], place: Callable[[int], str]) -> None:
    """Raise a `DataError` if rows have more or fewer cells than there are headings.

    Parameters
    ----------
    path : Path
    width : int
        Number of headings.
    rows : sequence of (number, cells)
    place : callable
        The place of a row's number for messages.
    """
    wrong = [(number, len(cells)) for number, cells in rows if len(cells) != width]
    lines = [f"{place(number)}: {count} cells, but the header has {width}" for number, count in wrong[:MAX_REPORTED]]
    if len(wrong) > MAX_REPORTED:
        lines.append(f"{path}: and {len(wrong) - MAX_REPORTED} more like these")
    if lines:
        raise DataError("\n".join(lines))


def shortened(path: Path, problems: Sequence[str]) -> list[str]:
    """The first of the problems; those that differ in their row alone are counted.

    Parameters
    ----------
    path : Path
    problems : sequence of str
        Lines of `RawColumn.problem`, or others.
    """
    alike: dict[str, list[str]] = {}
    for line in problems:
        place, column, text = line.partition(": column ")
        alike.setdefault(text if column else place, []).append(line)
    lines = [
        lines[0] if len(lines) == 1 else f"{lines[0]}, and in {len(lines) - 1} more row{'s' * (len(lines) > 2)}"
        for lines in alike.values()
    ]
    more = len(lines) - MAX_REPORTED
    return lines if more <= 0 else [*lines[:MAX_REPORTED], f"{path}: and {more} more like these"]


def fitted(cells: Sequence[str], width: int) -> list[str]:
    """The cells of a row without blanks around them; empty ones beyond the last heading are left out."""
    stripped = [cell.strip() for cell in cells]
    while len(stripped) > width and not stripped[-1]:
        stripped.pop()
    return stripped


def has_units(rows: Sequence[Sequence[str]], marks: Marks) -> bool:
    """Whether the first row holds units: it has text in each column whose other cells are numbers."""
    below = rows[1 : 1 + 50]  # rows below a possible row of units that are looked at
    columns = [index for index in range(len(rows[0])) if below and all(_is_number(row[index]) for row in below)]
    texts = [rows[0][index] for index in columns]
    return any(_is_text(text, marks) for text in texts) and not any(map(_is_number, texts))


def units_note(path: str, cells: Sequence[str]) -> str:
    """The note for a row of units."""
    return f"{path}: holds units ({listed((cell for cell in cells if cell), 6)}), not data; it is left out"


def _is_number(cell: str) -> bool:
    return numeral(cell, ".") is not None or numeral(cell, ",") is not None


def _is_text(cell: str, marks: Marks) -> bool:
    return not marks.are(cell) and len(cell) <= 24  # most characters of a unit
