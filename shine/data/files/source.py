"""Files of data: their bytes, compressed or not, the interface of their formats, and marks of missing values."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from shine.base.errors import DataError, needing, reason
from shine.base.lazy import cached_property
from shine.data.files.dates import dates_of
from shine.data.files.numerals import Decimal, is_missing, numeral
from shine.lang.forms.names import distinct_names, listed, normalized, shown, similar


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column as a file holds it.

    Parameters
    ----------
    heading : str
    values : ndarray of shape (n_rows,)
        float64, with NaN where a value is missing; datetime64 or timedelta64; or object, of texts.
    place : callable
        The place of a row for messages, such as ``d.csv:7``.
    """

    heading: str
    values: NDArray[np.generic]
    place: Callable[[int], str]

    def problem(self, row: int, text: str) -> str:
        """A line that says what is wrong in a row."""
        return f"{self.place(row)}: column {shown(self.heading)}: {text}"


@dataclass(frozen=True)
class Source:
    """A file of columns, opened.

    Parameters
    ----------
    path : Path
    headings : tuple of str
        The headings as they are in the file.
    read : callable
        ``read(indices, as_text=())`` returns the columns at indices of headings; those that `as_text` names stay text,
        even if all their cells are numbers.
    cells : callable, optional
        Returns all texts that may tell how the file writes numbers; without it, the columns that are read tell.
    separator : str
        What separates columns of text.
    notes : tuple of str
        What a user should know about the way the file was read.
    """

    path: Path
    headings: tuple[str, ...]
    read: Callable[..., list[RawColumn]]
    cells: Callable[[], Iterable[str]] | None = None
    separator: str = ","
    notes: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A distinct identifier for each heading (see `shine.lang.forms.names.distinct_names`)."""
        return distinct_names(self.headings)

    @cached_property
    def _by_heading(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, heading in enumerate(self.headings):
            places.setdefault(heading, []).append(place)
        return places

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def index(self, wanted: str) -> int:
        """Position of a column, by its heading or its name.

        A `DataError` if there is no such column, or several have this heading.
        """
        matches = self._by_heading.get(wanted, [])
        if len(matches) > 1:
            others = " or ".join(shown(self.names[i]) for i in matches[:20] if self.names[i] != wanted)
            raise DataError(
                f"{self.path}: {len(matches)} columns have the heading {shown(wanted)}; write {others} for another, or "
                "rename one of them"
            )
        place = matches[0] if matches else self._by_name.get(normalized(wanted))
        if place is None:
            known, near = listed(shown(heading) for heading in self.headings), similar(wanted, self.headings)
            hint = f"did you mean {shown(near)}? " if near else ""
            raise DataError(f"{self.path}: there is no column {shown(wanted)}; {hint}the file has {known}")
        return place

    def indices(self, wanted: Iterable[str]) -> list[int]:
        """Positions of columns; a `DataError` with a line for each that `index` does not find."""
        found, problems = [], []
        for each in wanted:
            try:
                found.append(self.index(each))
            except DataError as error:
                problems.append(str(error))
        if problems:
            raise DataError("\n".join(dict.fromkeys(problems)))
        return found


@dataclass(frozen=True)
class Marks:
    """Marks for missing values, besides those of `shine.data.files.numerals.MISSING`.

    Parameters
    ----------
    extra : tuple of str or float
        As the user wrote them. A number, or the text of one, means all ways to write the number; a date those of the
        date; the case of other texts does not matter.
    """

    extra: tuple[str | float, ...] = ()

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(str(mark).strip().lower() for mark in self.extra)

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """The marks that are numbers."""
        found = (_number(mark) for mark in self.extra)
        return tuple(number for number in found if number is not None)

    def are(self, cell: str, decimal: Decimal = ".") -> bool:
        """Whether a cell, without blanks around it, stands for a missing value."""
        if is_missing(cell) or cell.lower() in self._texts:
            return True
        found = numeral(cell, decimal) if self.numbers else None
        return found is not None and found.value in self.numbers

    def without(self, values: NDArray[Any]) -> NDArray[Any]:
        """Numbers or moments with NaN or NaT for marks; the same array if it has none."""
        kind = values.dtype.kind
        if kind in "iuf" and self.numbers:
            # A mark such as -99.9 is another number in float32, as the file has it.
            with np.errstate(over="ignore"):
                marks = np.array(self.numbers, values.dtype if kind == "f" else None)
            return np.where(np.isin(values, marks), np.nan, values)
        if kind == "M" and self.extra:
            moments = dates_of([str(mark).strip() for mark in self.extra], "day")[0]
            return np.where(np.isin(values.astype("datetime64[us]"), moments), np.datetime64("NaT"), values)
        return values


NO_MARKS = Marks()


def _number(mark: str | float) -> float | None:
    try:
        return float(mark)
    except ValueError:
        return None


MAX_BYTES = 4 << 30
"""Most bytes of a file after decompression: 4 GiB. A few kilobytes can decompress to more than any memory holds."""

_CHUNK = 1 << 24


def check_file(path: Path) -> None:
    """Raise a `DataError` unless the path is a file within the limit."""
    try:
        if not path.exists():
            raise DataError(f"{path}: no such file")
        if not path.is_file():
            raise DataError(f"{path}: is not a file")
        size = path.stat().st_size
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise unreadable(path, error) from None
    check_size(path, size)


def check_size(path: Path, size: int) -> None:
    """Raise a `DataError` if decompressed data exceed the limit."""
    if size > MAX_BYTES:
        raise DataError(f"{path}: holds more than {MAX_BYTES} bytes; split it, or keep fewer rows or columns")


def _zip_member(path: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(path)
    members = [info for info in archive.infolist() if not info.is_dir() and not info.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise DataError(f"{path}: holds {len(members)} files; an archive with exactly one is needed")
    return archive.open(members[0])


def _zstandard(path: Path) -> IO[bytes]:
    with needing(f"{path}: reading Zstandard", "pyarrow", "parquet"):
        import pyarrow
    stream: IO[bytes] = pyarrow.input_stream(str(path), compression="zstd")
    return stream


_STREAMS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    ".gz": ("gzip", gzip.open),
    ".bz2": ("bzip2", bz2.open),
    ".xz": ("xz", lzma.open),
    ".zip": ("zip", _zip_member),
    ".zst": ("Zstandard", _zstandard),
}
"""Name and reader of each compression, by the ending of the file's name."""

_DAMAGES = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, RuntimeError)
"""Errors of the readers; the last two are for zip files with an unusual compression, and with a password."""

COMPRESSIONS = ("", *_STREAMS)
"""Endings of names of compressed files; none for a file that is not."""


def read_bytes(path: Path) -> bytes:
    """All bytes of a file, decompressed if the ending of its name says so.

    A `DataError` if it cannot be read, is damaged, or exceeds the limit.
    """
    check_file(path)
    if path.suffix.lower() not in _STREAMS:
        try:
            return path.read_bytes()
        except OSError as error:
            raise unreadable(path, error) from None
    kind, opened = _STREAMS[path.suffix.lower()]
    try:
        with opened(path) as stream:
            chunks: list[bytes] = []
            total = 0
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                check_size(path, total)
                chunks.append(chunk)
        return b"".join(chunks)
    except EOFError:
        raise DataError(f"{path}: the compressed data end too early; the file is truncated") from None
    except _DAMAGES as error:
        raise DataError(f"{path}: is not a valid {kind} file: {error}") from None
    except OSError as error:
        # bz2 and pyarrow have no errors of their own for damaged data; the system's errors have a number.
        if error.errno is None:
            raise DataError(f"{path}: is not a valid {kind} file: {error}") from None
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> DataError:
    """The error for a file that the system cannot read."""
    return DataError(f"{path}: cannot be read: {reason(error)}")
