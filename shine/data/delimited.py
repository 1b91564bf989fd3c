"""Delimited text: a header row, then numbers. Clean text is parsed fast; for other text, errors name the bad cells."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from shine.data.files import read_bytes
from shine.data.source import Source
from shine.errors import DataError
from shine.lang.names import cut, listed, shown
from shine.typing import Floats

MAX_REPORTED = 10
"""Most bad cells that an error lists."""

_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+", re.ASCII)


def open_delimited(path: Path) -> Source:
    """Open a CSV or TSV file, compressed by gzip or not.

    Raises
    ------
    DataError
        If it is not text with a header row.
    """
    lines = io.StringIO(_decoded(path, read_bytes(path)), newline=None).readlines()
    delimiter = _delimiter(path, lines)
    reader = csv.reader(iter(lines), delimiter=delimiter)
    try:
        header = next((row for row in reader if row), None)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not a table: {error}") from None
    if header is None:
        raise DataError(f"{path}: the file is empty; a header row with the names of the columns is needed")
    headings = tuple(cell.strip() for cell in header)
    if all(_number(cell) is not None for cell in headings):
        raise DataError(
            f"{path}:{reader.line_num}: the first row holds numbers ({listed(headings, 4)}); "
            "a header row with the names of the columns is needed above it"
        )
    body = _Body(path, headings, delimiter, lines, reader.line_num)
    return Source(path, headings, body.columns)


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8 text; save it as UTF-8") from None


def _delimiter(path: Path, lines: Sequence[str]) -> str:
    """The most frequent candidate outside quotes in the header."""
    header = re.sub(r'"[^"]*"', "", next((line for line in lines if line.strip()), ""))
    candidates = "\t,;" if ".tsv" in path.name.lower() else ",;\t"
    return max(candidates, key=header.count)


class _Body:
    """The rows below the header."""

    def __init__(self, path: Path, headings: tuple[str, ...], delimiter: str, lines: list[str], header: int) -> None:
        self.path, self.headings, self.delimiter = path, headings, delimiter
        self.lines, self.first = lines[header:], header

    def columns(self, indices: Sequence[int]) -> list[Floats]:
        """Columns by index, every cell checked."""
        if not any(line.strip() for line in self.lines):
            raise DataError(f"{self.path}: there is a header, but no row of data below it")
        reason = "rows differ in their number of cells"
        if self._is_rectangular():
            try:
                table = np.loadtxt(
                    # A generator runs Python code, so that signals are handled while a large file is read.
                    (line for line in self.lines),
                    delimiter=self.delimiter,
                    quotechar='"',
                    comments=None,
                    usecols=list(indices),
                    ndmin=2,
                )
            except (ValueError, OverflowError) as error:
                reason = str(error)
            else:
                if np.isfinite(table).all():
                    return [np.ascontiguousarray(column) for column in table.T]
                reason = "some numbers are not finite"
        problems = self._problems(indices)
        listed = list(islice(problems, MAX_REPORTED))
        if not listed:
            raise DataError(f"{self.path}: cannot be read as a table of numbers: {cut(reason)}")
        more = sum(1 for _ in problems)
        raise DataError("\n".join([*listed, *([f"{self.path}: and {more} more like these"] if more else [])]))

    def _is_rectangular(self) -> bool:
        # loadtxt ignores cells beyond the columns it uses, so it would not notice that an unquoted comma shifts cells.
        wanted = len(self.headings) - 1
        if any('"' in line for line in self.lines):
            try:
                rows = csv.reader(iter(self.lines), delimiter=self.delimiter)
                return all(len(row) == wanted + 1 for row in rows if row)
            except csv.Error:
                return False
        return all(line.count(self.delimiter) == wanted for line in self.lines if line != "\n")

    def _problems(self, indices: Sequence[int]) -> Iterator[str]:
        reader = csv.reader(iter(self.lines), delimiter=self.delimiter)
        try:
            for row in reader:
                place = f"{self.path}:{self.first + reader.line_num}"
                if row and len(row) != len(self.headings):
                    yield f"{place}: {len(row)} cells, but the header has {len(self.headings)}"
                    continue
                for index in indices if row else ():
                    problem = _problem(row[index].strip())
                    if problem:
                        yield f"{place}: column {shown(self.headings[index])}: {problem}"
        except csv.Error as error:
            yield f"{self.path}:{self.first + reader.line_num}: not a table: {error}"


def _problem(cell: str) -> str | None:
    number = _number(cell)
    if number is not None:
        return None if math.isfinite(number) else f"{shown(cell, 40)} is too large"
    if not cell:
        return "the cell is empty"
    text = ascii(cell if len(cell) <= 40 else cell[:37] + "...")
    if _DECIMAL_COMMA.fullmatch(cell) and len(cell) <= 40:
        return f"{text} is not a number; write a decimal point, {cell.replace(',', '.')}"
    return f"{text} is not a number"


def _number(cell: str) -> float | None:
    return float(cell) if _NUMBER.fullmatch(cell) else None
