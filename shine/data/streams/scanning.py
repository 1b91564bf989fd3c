"""The first pass over a stream: facts about its columns, the moments of the target, and a sample of the rows."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.base.errors import DataError
from shine.base.typing import Floats, Indices, Mask
from shine.data.columns.kinds import HOLDS, Column, Kind, recognized
from shine.data.datasets.dataset import MOST_SEEN, stable_mean, stable_sum
from shine.data.datasets.preparation import MOST_CATEGORIES, Reading
from shine.data.datasets.training import told_role
from shine.data.files.dates import UNITS
from shine.data.files.source import RawColumn
from shine.data.streams.streams import Stream, Texts, Values, joined
from shine.lang.forms.names import shown


class Moments:
    """Mean and squared deviations of a target (Chan, Golub and LeVeque 1983); the order of the blocks counts."""

    def __init__(self) -> None:
        self.rows, self.weight, self.mean, self.square = 0, 0.0, 0.0, 0.0
        self._squares, self._repeats = 0.0, True

    @np.errstate(all="ignore")  # squares may overflow: the spread is infinite then
    def add(self, target: Floats, weights: Floats) -> None:
        """Add some rows.

        Parameters
        ----------
        target, weights : ndarray of shape (n_rows,)
        """
        self.rows += len(target)
        own = float(stable_sum(weights)) if len(weights) else 0.0
        if not own > 0:
            return
        self._squares += float(stable_sum(weights * weights))
        self._repeats = self._repeats and bool((weights == np.floor(weights)).all() and weights.max() < MOST_SEEN)
        mean = float(stable_sum(weights * target)) / own
        shift, before = mean - self.mean, self.weight
        self.weight += own
        self.mean += shift * own / self.weight
        self.square += float(stable_sum(weights * (target - mean) ** 2)) + shift * shift * before * own / self.weight

    @property
    def effective_rows(self) -> float:
        """As that of a `Dataset`."""
        return self.weight if self._repeats else self.weight**2 / self._squares


class Scan:
    """One pass over the rows.

    Parameters
    ----------
    stream, given, features, reading
        As for `shine.data.streams.streaming.streamed`.
    positions : ndarray of shape (n_sampled,), int64
        Rows to keep in memory, in ascending order: the values of all columns become `sample`.
    """

    def __init__(
        self, stream: Stream, roles: Mapping[str, int], features: Sequence[int], reading: Reading, positions: Indices
    ) -> None:
        self.stream, self.roles, self.features, self.reading = stream, roles, features, reading
        indices = [*roles.values(), *features]
        self.facts = {index: Facts(stream, index, reading.missing == "mean") for index in indices}
        self._needed = indices if reading.missing == "drop" else list(roles.values())
        self.moments = Moments()
        picked, start = [], 0
        for block in stream.blocks(indices):
            values = dict(zip(indices, block, strict=True))
            self._add(values)
            stop = start + len(block[0])
            own = positions[np.searchsorted(positions, start) : np.searchsorted(positions, stop)] - start
            picked.append([column[own] for column in block])
            start = stop
        if start != stream.rows:
            raise DataError(
                f"{stream.name}: had {stream.rows} rows, and {start} when it was read; it changes meanwhile"
            )
        self.sample = dict(zip(indices, joined(picked), strict=True))

    def _add(self, values: Mapping[int, Values]) -> None:
        lost = {index: self.facts[index].note_missing(column) for index, column in values.items()}
        kept = without([lost[index] for index in self._needed])
        for index, column in values.items():
            rows = without([None if kept is None else ~kept, lost[index]])
            self.facts[index].add(column if rows is None else column[rows])
        target = taken(values[self.roles["target"]], kept)
        if not isinstance(target, Texts) and target.dtype.kind in "biuf" and len(target):
            weights = taken(values[self.roles["sample_weight"]], kept) if "sample_weight" in self.roles else None
            if not isinstance(weights, Texts) and (weights is None or weights.dtype.kind in "biuf"):
                weights = np.ones(len(target)) if weights is None else weights.astype(np.float64)
                self.moments.add(target.astype(np.float64), weights)

    @property
    def checksum(self) -> int:
        """Of the values of all columns."""
        return zlib.crc32(repr([facts.identity for facts in self.facts.values()]).encode())


def taken(values: Values, kept: Mask | None) -> Values:
    """The rows that are kept; all by None."""
    return values if kept is None else values[kept]


def without(masks: Sequence[Mask | None]) -> Mask | None:
    """The rows that are in none of the masks; None if these are all."""
    known = [mask for mask in masks if mask is not None]
    return ~np.logical_or.reduce(known) if known else None


def check(scan: Scan) -> None:
    """Raise a `DataError` with a line for each column that cannot be used."""
    problems = [*_role_problems(scan), *_text_problems(scan)]
    for facts in scan.facts.values():
        if facts.infinite:
            more = f", and in {facts.infinite - 1} more" if facts.infinite > 1 else ""
            problems.append(_problem(scan, facts, facts.first_infinite, f"the value is infinite{more}"))
        elif facts.missing == facts.rows:
            problems.append(_problem(scan, facts, 0, "no row has a value"))
        elif facts.missing and scan.reading.missing == "error":
            more = f", as in {facts.missing - 1} other row{'s' * (facts.missing > 2)}" if facts.missing > 1 else ""
            text = f"the value is missing{more}; data.missing may be drop or mean"
            problems.append(_problem(scan, facts, facts.first_missing, text))
    if problems:
        raise DataError("\n".join(problems))
    if not scan.moments.rows:
        raise DataError(
            f"{scan.stream.name}: no row has a value in every column; choose data.features, or missing: mean"
        )


def _problem(scan: Scan, facts: Facts, row: int, text: str) -> str:
    return f"{scan.stream.place(row)}: column {shown(facts.heading)}: {text}"


def _role_problems(scan: Scan) -> Iterator[str]:
    for role, index in scan.roles.items():
        facts = scan.facts[index]
        if role not in ("groups", "times") and facts.kind != "number":
            yield _problem(scan, facts, 0, f"{told_role(role)} must be numbers; the column holds {HOLDS[facts.kind]}")
        elif role == "sample_weight" and (facts.low < 0 or not facts.high > 0):
            yield f"{scan.stream.name}: sample weights must not be negative, and one must be positive"
        elif role == "sigma" and not facts.low > 0:
            yield f"{scan.stream.name}: sigma must be positive in every row; it is {facts.low} in one"


def _text_problems(scan: Scan) -> Iterator[str]:
    for facts in (scan.facts[index] for index in scan.features if scan.facts[index].kind == "text"):
        text, categories, count = facts.text_problem(), scan.reading.categories, len(facts.counts)
        many = f"{'more than ' if count > MOST_TEXTS else ''}{min(count, MOST_TEXTS)} different texts"
        if text is None and count and categories == "error":
            told = "one text" if count == 1 else many
            text = f"holds {told}; data.categories may be one-hot, ordinal or ignore"
        elif text is None and count > MOST_CATEGORIES and categories == "one-hot":
            text = f"{many} are too many for one-hot, which takes {MOST_CATEGORIES}; leave the column out"
        elif text is None and count > MOST_TEXTS and categories == "ordinal":
            text = f"{many} are too many; leave the column out"
        if text is not None:
            yield _problem(scan, facts, 0, text)


MOST_TEXTS = 10_000
"""Most different texts of a column: those of more are names, and no formula has a use for their numbers."""


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
        # Cells, in proportion to how often each text occurs, that tell whether texts are numbers or dates.
        cells = [text for text, count in self.counts.items() for _ in range(max(1, 1000 * count // total))]
        found = recognized(RawColumn(self.heading, np.array(cells, object), self._stream.place), ".")
        if not cells or found.kind == "text":
            return None
        held = HOLDS[found.kind]
        return f"holds {held} as texts, which are not read while streaming; write it as {held}"


def _microseconds(values: NDArray[Any]) -> NDArray[np.int64]:
    """Moments or durations as whole numbers, the least of all where there is none."""
    return values.astype(f"{values.dtype.kind}8[us]").astype(np.int64)
