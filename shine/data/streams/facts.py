"""Facts about all rows of a column, gathered block by block: kind, missing values, range, texts."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.base.typing import Floats, Mask
from shine.data.columns.kinds import HOLDS, Column, Kind, recognized
from shine.data.datasets.dataset import stable_mean
from shine.data.files.dates import UNITS
from shine.data.files.source import RawColumn
from shine.data.streams.streams import Stream, Texts, Values

MOST_TEXTS = 10_000
"""Most different texts of a column: those of more are names, and no formula has a use for their numbers."""

TOLD_CELLS = 1000
"""Cells, in proportion to how often each text occurs, that tell whether texts are numbers or dates."""


class Facts:
    """Facts of a column, of the rows that were seen so far.

    Parameters
    ----------
    stream : Stream
    index : int
        Position of the column.
    with_mean : bool
        Whether to add up numbers.
    """

    def __init__(self, stream: Stream, index: int, with_mean: bool = False) -> None:
        self.heading = stream.headings[index]
        self._stream, self._with_mean = stream, with_mean
        self.kind: Kind = "number"
        self.checksum = self.rows = self.missing = self.infinite = self.known = 0
        self.first_missing = self.first_infinite = -1
        self.low, self.high = np.inf, -np.inf
        self._times: list[Any] = []
        self._means: list[tuple[float, int]] = []
        self.counts: Counter[str] = Counter()
        self._codes: dict[str, int] = {}

    def note_missing(self, values: Values) -> Mask | None:
        """Note what is missing in the next rows, and what tells them from other rows.

        Returns
        -------
        ndarray of shape (n_rows,), bool, or None
            Which rows have no value; None if all have one.
        """
        start, self.rows = self.rows, self.rows + len(values)
        if isinstance(values, Texts):
            self.kind, content, gone = "text", self._merged(values), values.codes < 0
        elif values.dtype.kind in "mM":
            self.kind, content = ("date" if values.dtype.kind == "M" else "duration"), _microseconds(values)
            gone = np.isnat(values)
        else:
            numbers = np.ascontiguousarray(values, np.float64)
            content, gone = numbers.view(np.int64), self._not_numbers(numbers, start)
        self.checksum = zlib.crc32(content.data, self.checksum)
        count = int(np.count_nonzero(gone))
        if not count:
            return None
        self.first_missing = self.first_missing if self.missing else start + int(np.argmax(gone))
        self.missing += count
        return gone

    def _not_numbers(self, numbers: Floats, start: int) -> Mask:
        # NaN and infinity show in the ends, which take less time than a look at each number.
        if np.isfinite(numbers.min()) and np.isfinite(numbers.max()):
            return np.zeros(1, np.bool_)
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite):
            self.first_infinite = self.first_infinite if self.infinite else start + int(infinite[0])
            self.infinite += len(infinite)
        gone: Mask = np.isnan(numbers)
        return gone

    def add(self, values: Values) -> None:
        """Gather what values say; none is missing."""
        if not len(values):
            return
        if isinstance(values, Texts):
            counts = np.bincount(values.codes, minlength=len(values.texts))
            for code in np.flatnonzero(counts).tolist() if len(self.counts) <= MOST_TEXTS else ():
                self.counts[values.texts[code]] += int(counts[code])
        elif values.dtype.kind in "mM":
            times = _microseconds(values)
            odd = times[times % UNITS["days"] != 0]
            self._times = [min([*self._times[:1], times.min()]), max([*self._times[1:2], times.max()]),
                           *([odd[0]] if len(odd) else self._times[2:])]  # fmt: skip
            self._note_mean(times.astype(np.float64))
        else:
            numbers = values.astype(np.float64, copy=False)
            self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))
            self._note_mean(numbers)
        self.known += len(values)

    @property
    def identity(self) -> tuple[int, int, int]:
        """Key that tells values apart."""
        return self.rows, self.checksum, zlib.crc32("\0".join(self._codes).encode())

    @property
    def mean(self) -> float:
        """Mean of numbers, or of moments in microseconds."""
        means, counts = np.array(self._means or [(0.0, 1)]).T
        return stable_mean(means, counts)

    def _note_mean(self, numbers: Floats) -> None:
        if self._with_mean and not self.infinite:
            self._means.append((stable_mean(numbers), len(numbers)))

    def _merged(self, values: Texts) -> NDArray[np.int64]:
        """The codes of the texts in the order in which the texts occur first, whatever the batches are."""
        if len(self._codes) <= MOST_TEXTS:
            codes, first = np.unique(values.codes, return_index=True)
            for code in codes[np.argsort(first)].tolist():
                if code >= 0:
                    self._codes.setdefault(values.texts[code], len(self._codes))
        places = np.array([*(self._codes.get(text, -1) for text in values.texts), -1], np.int64)
        return places[values.codes]

    def column(self) -> Column:
        """A short column that is prepared as all rows would be: the ends of its range, or each of its texts."""
        if self.kind == "text":
            texts = np.array(list(self.counts), object)
            return recognized(RawColumn(self.heading, texts, self._stream.place), ".", kind="text")
        if self.kind == "number":
            values: NDArray[Any] = np.array([self.low, self.high]) if self.known else np.array([np.nan])
        else:
            letter = "M" if self.kind == "date" else "m"
            values = np.array(self._times or [np.iinfo(np.int64).min], np.int64).view(f"{letter}8[us]")
        return Column(RawColumn(self.heading, values, self._stream.place), self.kind, values)

    def text_problem(self) -> str | None:
        """Message about texts that are numbers or dates, as which they would be read in memory."""
        total = max(sum(self.counts.values()), 1)
        cells = [text for text, count in self.counts.items() for _ in range(max(1, TOLD_CELLS * count // total))]
        found = recognized(RawColumn(self.heading, np.array(cells, object), self._stream.place), ".")
        if not cells or found.kind == "text":
            return None
        held = HOLDS[found.kind]
        return f"holds {held} as texts, which are not read while streaming; write it as {held}"


def _microseconds(values: NDArray[Any]) -> NDArray[np.int64]:
    """Moments or durations as whole numbers, the least of all where there is none."""
    return values.astype(f"{values.dtype.kind}8[us]").astype(np.int64)
