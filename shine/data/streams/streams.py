"""Tables read batch by batch, because they may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.base.typing import Indices
from shine.data.files.source import Marks, RawColumn, Source

BLOCK_ROWS = 1 << 17
"""Rows of a block, whatever the batches of a file are: sums over blocks in their order have the same bits for every way
to store the same rows. A block is large enough to hide the cost of a call, and has some megabytes."""

BLOCK_COLUMNS = 32
"""Columns of such a block; one of more columns has fewer rows, but no fewer than `LEAST_ROWS`."""

LEAST_ROWS = 1 << 10


def block_rows(columns: int) -> int:
    """Rows of a block of so many columns."""
    rows = BLOCK_ROWS * BLOCK_COLUMNS // max(columns, BLOCK_COLUMNS)
    return max(rows - rows % LEAST_ROWS, LEAST_ROWS)


@dataclass(frozen=True, eq=False)
class Texts:
    """Some rows of a column of texts.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,), int64
        Position of each row's text; -1 where it is missing.
    texts : tuple of str
    """

    codes: Indices
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: slice | NDArray[Any]) -> Texts:
        return Texts(self.codes[rows], self.texts)


Values = NDArray[Any] | Texts
"""Some rows of a column: numbers, with NaN where one is missing; dates or durations, with NaT; or texts."""


@dataclass(frozen=True, eq=False)
class Stream:
    """A table read from its first row to its last, as often as needed.

    Parameters
    ----------
    name : str
        For messages: a path, or what the table is.
    headings : tuple of str
    rows : int
    read : callable
        Positions of headings -> batches of these columns in the order of their rows, of any sizes. Other columns are
        not read.
    """

    name: str
    headings: tuple[str, ...]
    rows: int
    read: Callable[[Sequence[int]], Iterator[list[Values]]]

    def blocks(self, indices: Sequence[int], rows: int | None = None) -> Iterator[list[Values]]:
        """The rows of some columns in blocks of one size; the last may be shorter.

        A block within one batch is a view of it.
        """
        rows = block_rows(len(indices)) if rows is None else rows
        waiting: list[list[Values]] = []
        count = 0
        for batch in self.read(indices):
            start, end = 0, len(batch[0])
            while start < end:
                stop = min(start + rows - count, end)
                waiting.append([column[start:stop] for column in batch])
                count, start = count + stop - start, stop
                if count == rows:
                    yield joined(waiting)
                    waiting, count = [], 0
        if waiting:
            yield joined(waiting)

    def place(self, row: int) -> str:
        """The place of a row for messages."""
        return f"{self.name}: row {row}"


def joined(parts: Sequence[list[Values]]) -> list[Values]:
    """Columns of the rows of several batches."""
    if len(parts) == 1:
        return parts[0]
    columns: Any = zip(*parts, strict=True)
    return [_joined_texts(part) if isinstance(part[0], Texts) else np.concatenate(part) for part in columns]


def _joined_texts(parts: Sequence[Texts]) -> Texts:
    known: dict[str, int] = {}
    codes = []
    for part in parts:
        # The last place is that of missing texts: -1.
        places = np.array([*(known.setdefault(text, len(known)) for text in part.texts), -1], np.int64)
        codes.append(places[part.codes])
    return Texts(np.concatenate(codes), tuple(known))


def source_of(stream: Stream) -> Source:
    """A stream whose columns are read whole, as those of other files are."""

    def read(indices: Sequence[int], as_text: Collection[int] = ()) -> list[RawColumn]:
        columns = joined(list(stream.read(indices)))
        return [RawColumn(stream.headings[i], _array(v), stream.place) for i, v in zip(indices, columns, strict=True)]

    return Source(Path(stream.name), stream.headings, read, separator="")


def _array(values: Values) -> NDArray[Any]:
    """All values of a column; texts as objects."""
    return np.array([*values.texts, None], object)[values.codes] if isinstance(values, Texts) else values


def without_marks(stream: Stream, marks: Marks) -> Stream:
    """A stream in which marked values are missing."""

    def read(indices: Sequence[int]) -> Iterator[list[Values]]:
        for batch in stream.read(indices):
            yield [_without_marks(values, marks) for values in batch]

    return replace(stream, read=read) if marks.extra else stream


def _without_marks(values: Values, marks: Marks) -> Values:
    if not isinstance(values, Texts):
        return marks.without(values)
    codes = np.array([*(-1 if marks.are(text) else place for place, text in enumerate(values.texts)), -1], np.int64)
    return Texts(codes[values.codes], values.texts)
