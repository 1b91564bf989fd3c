"""Streams -> data sets: one pass that learns what all rows say, and a sample of them in memory.

Headings, dates, texts and missing values mean the same as for a table in memory (see `shine.data.training`). Columns of
texts that are numbers or dates are refused: their kind would depend on all cells together.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.data.columns import HOLDS, Column
from shine.data.dataset import LEAST_DEVIATION, ORDINARY, Dataset, Whole, stable_sum
from shine.data.facts import MOST_TEXTS, Facts
from shine.data.moments import Moments
from shine.data.preparation import MOST_CATEGORIES, Preparation, PreparedColumn, Reading, learned
from shine.data.streamed_columns import gone, numbers_of
from shine.data.streams import Stream, Texts, Values, joined
from shine.data.training import BESIDE, Loaded
from shine.errors import DataError
from shine.lang.names import Numbering, distinct_names, identifier, shown
from shine.stages import stage
from shine.typing import AnyArray, Floats, Indices, Mask

SAMPLE_ROWS = 1 << 20
"""Most rows in memory: a share of a second for a pass of the search's end, and for hundreds of samples of it."""

SAMPLE_NUMBERS = 1 << 25
"""Most numbers of these rows: 256 MiB."""

FEWEST_ROWS = 100_000
"""Rows in memory, however many columns there are."""

_SPELLED = {"target": "the target", "sample_weight": "the weights", "sigma": "sigma", "groups": "the groups"}


def streamed(
    stream: Stream, given: Mapping[str, int], features: Sequence[int], reading: Reading, sample_rows: int | None = None
) -> Loaded:
    """A sample of a stream's rows as a data set that knows the whole.

    Parameters
    ----------
    stream : Stream
    given : mapping of str to int
        Positions of the target, the weights and so on, by the parameters of `Dataset.from_arrays`; those of columns
        beside the features by `shine.data.training.BESIDE` and their name.
    features : sequence of int
        Positions of the features.
    reading : Reading
    sample_rows : int, optional
        Most rows in memory.

    Raises
    ------
    DataError
        With a line for each column that cannot be used.
    """
    columns = len(given) + len(features)
    most = min(SAMPLE_ROWS, max(SAMPLE_NUMBERS // columns, FEWEST_ROWS)) if sample_rows is None else sample_rows
    with stage(f"reading {stream.rows} rows of {stream.name} once, for what they hold"):
        scan = _Scan(stream, given, features, reading, _spread(stream.rows, most))
    _check(scan)
    layout, notes = _layout(scan)
    sample = layout.sample(scan.sample)
    names = [name for _, column in layout.features for name in column.names]
    whole = Whole(
        scan.moments.rows,
        scan.moments.weight,
        scan.moments.effective_rows,
        scan.moments.mean,
        scan.moments.square,
        layout.ranges(scan.facts),
        scan.checksum,
        layout.read,
    )
    count = whole.n_rows
    if count < stream.rows:
        lost = stream.rows - count
        notes.insert(0, f"{stream.name}: without {lost} of {stream.rows} rows, where values are missing")
    told = f"{stream.name}: {count} rows are read block by block; {sample.n_rows} of them are in memory for the search"
    preparation = Preparation(tuple(column for _, column in layout.features), reading.missing)
    labels = {own.names[0]: own.categories for _, own in layout.features if own.kind == "ordinal"}
    assert sample.features == tuple(names)
    return Loaded(
        replace(sample, labels=labels, whole=whole), None if preparation.is_plain else preparation, (told, *notes)
    )


def _spread(rows: int, most: int) -> Indices:
    """A random row of each of `most` equal stretches of the rows; all rows if there are no more."""
    if rows <= most:
        return np.arange(rows)
    ends = np.arange(most + 1) * rows // most
    positions: Indices = ends[:-1] + np.random.default_rng(0).integers(0, np.diff(ends))
    return positions


class _Scan:
    """One pass over the rows."""

    def __init__(
        self, stream: Stream, given: Mapping[str, int], features: Sequence[int], reading: Reading, positions: Indices
    ) -> None:
        self.stream, self.given, self.features, self.reading = stream, given, features, reading
        indices = [*given.values(), *features]
        self.facts = {index: Facts(stream, index, reading.missing == "mean") for index in indices}
        self._needed = indices if reading.missing == "drop" else list(given.values())
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
        lost = {index: self.facts[index].looked(column) for index, column in values.items()}
        kept = _without([lost[index] for index in self._needed])
        for index, column in values.items():
            rows = _without([None if kept is None else ~kept, lost[index]])
            self.facts[index].add(column if rows is None else column[rows])
        target = _taken(values[self.given["target"]], kept)
        if not isinstance(target, Texts) and target.dtype.kind in "biuf" and len(target):
            weights = _taken(values[self.given["sample_weight"]], kept) if "sample_weight" in self.given else None
            if not isinstance(weights, Texts) and (weights is None or weights.dtype.kind in "biuf"):
                weights = np.ones(len(target)) if weights is None else weights.astype(np.float64)
                self.moments.add(target.astype(np.float64), weights)

    @property
    def checksum(self) -> int:
        """Of the values of all columns."""
        return zlib.crc32(repr([facts.identity for facts in self.facts.values()]).encode())


def _taken(values: Values, kept: Mask | None) -> Values:
    return values if kept is None else values[kept]


def _without(masks: Sequence[Mask | None]) -> Mask | None:
    """The rows that are in none of the masks; None if these are all."""
    given = [mask for mask in masks if mask is not None]
    return ~np.logical_or.reduce(given) if given else None


def _check(scan: _Scan) -> None:
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


def _problem(scan: _Scan, facts: Facts, row: int, text: str) -> str:
    return f"{scan.stream.place(row)}: column {shown(facts.heading)}: {text}"


def _role_problems(scan: _Scan) -> Iterator[str]:
    for role, index in scan.given.items():
        facts = scan.facts[index]
        told = _SPELLED.get(role, f"the column {role.removeprefix(BESIDE)}")
        if role != "groups" and facts.kind != "number":
            yield _problem(scan, facts, 0, f"{told} must be numbers; the column holds {HOLDS[facts.kind]}")
        elif role == "sample_weight" and (facts.low < 0 or not facts.high > 0):
            yield f"{scan.stream.name}: sample weights must not be negative, and one must be positive"
        elif role == "sigma" and not facts.low > 0:
            yield f"{scan.stream.name}: sigma must be positive in every row; it is {facts.low} in one"


def _text_problems(scan: _Scan) -> Iterator[str]:
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


@dataclass(frozen=True, eq=False)
class _Layout:
    """How blocks of a stream become data sets.

    Parameters
    ----------
    stream : Stream
    given : mapping of str to int
    features : tuple of (int, PreparedColumn)
        Position and preparation of each column of features.
    gaps : tuple of int
        Positions of columns whose missing values drop their rows.
    weights, deviations : int
        Powers of two that weights and standard deviations are divided by.
    """

    stream: Stream
    given: Mapping[str, int]
    features: tuple[tuple[int, PreparedColumn], ...]
    gaps: tuple[int, ...]
    weights: int
    deviations: int

    def read(self, names: Collection[str]) -> Iterator[Dataset]:
        """The rows with some features, block by block (see `Whole`)."""
        wanted = set(names)
        own = tuple((index, column) for index, column in self.features if wanted & set(column.names))
        given = {role: index for role, index in self.given.items() if role != "groups"}
        layout = replace(self, features=own, given=given)
        indices = list(dict.fromkeys([*given.values(), *(index for index, _ in own), *self.gaps]))
        chosen = tuple(name for _, column in own for name in column.names if name in wanted)
        for block in self.stream.blocks(indices):
            found = layout._arrays(dict(zip(indices, block, strict=True)), chosen)
            if len(found[1]["target"]):
                yield layout._dataset(*found, chosen)

    def sample(self, values: Mapping[int, Values]) -> Dataset:
        """The data set of some rows, checked."""
        names = [name for _, column in self.features for name in column.names]
        headings = [heading for _, column in self.features for heading in column.headings]
        columns, given = self._arrays(values, names)
        beside = {role.removeprefix(BESIDE): given.pop(role) for role in list(given) if role.startswith(BESIDE)}
        try:
            return Dataset.from_arrays(
                columns.T, given.pop("target"), features=names, headings=headings, beside=beside, **given
            )
        except DataError as error:
            raise DataError(f"{self.stream.name}: {error}") from None

    def ranges(self, facts: Mapping[int, Facts]) -> dict[str, tuple[float, float]]:
        """Least and largest value of each feature."""
        found = {}
        for index, own in self.features:
            for name, numbers in zip(own.names, own.numbers(facts[index].column()), strict=True):
                found[name] = float(np.min(numbers)), float(np.max(numbers))
        return found

    def _arrays(self, values: Mapping[int, Values], names: Collection[str]) -> tuple[Floats, dict[str, AnyArray]]:
        """Columns of features, shape (n_features, n_rows), and the other columns by their roles."""
        needed = [*self.given.values(), *self.gaps]
        kept = _without([gone(values[index]) for index in dict.fromkeys(needed)])
        given = {role: _plain(_taken(values[index], kept)) for role, index in self.given.items()}
        columns = np.empty((len(names), len(given["target"])))
        at = 0
        for index, own in self.features:
            numbers = numbers_of(own, _taken(values[index], kept))
            means = own.means or (np.nan,) * len(own.names)
            for name, column, mean in zip(own.names, numbers, means, strict=True):
                if name in names:
                    columns[at] = np.where(np.isnan(column), mean, column) if own.means else column
                    at += 1
        return columns, given

    def _dataset(self, columns: Floats, given: Mapping[str, AnyArray], names: tuple[str, ...]) -> Dataset:
        """A block as a data set; its weights and deviations are in units that all blocks share."""
        numbers: dict[str, Floats] = {role: np.ascontiguousarray(v, np.float64) for role, v in given.items()}
        beside = {role.removeprefix(BESIDE): column for role, column in numbers.items() if role.startswith(BESIDE)}
        weights = numbers.get("sample_weight")
        weights = None if weights is None else np.ldexp(weights, -self.weights)
        if "sigma" not in numbers:
            return Dataset(columns, numbers["target"], weights, names, beside=beside)
        deviations = np.maximum(np.ldexp(numbers["sigma"], -self.deviations), LEAST_DEVIATION)
        weighed = (1.0 if weights is None else weights) / deviations**2
        beside["sigma"] = numbers["sigma"]
        return Dataset(columns, numbers["target"], weighed, names, deviations, beside=beside)


def _layout(scan: _Scan) -> tuple[_Layout, list[str]]:
    """The layout that all rows tell, and notes on it."""
    stream, reading, notes = scan.stream, scan.reading, []
    names = distinct_names(stream.headings)
    taken, features = Numbering(names), []
    for index in scan.features:
        facts = scan.facts[index]
        same = facts.kind == "text" and len(facts.counts) == 1 and reading.categories != "error"
        heading = facts.heading
        numbered = heading in reading.numbered or identifier(heading) in reading.numbered
        if facts.kind == "text" and not numbered and (same or reading.categories == "ignore"):
            held = "the same text in every row" if same else "text"
            notes.append(f"column {heading!r} holds {held}; it is left out")
            continue
        own = learned(facts.column(), names[index], "ordinal" if numbered else reading.categories, taken)
        own = replace(own, means=_means(own, facts)) if reading.missing == "mean" else own
        features.append((index, own))
        note = own.note()
        notes += [note] if note else []
    if not features:
        raise DataError(f"{stream.name}: no column is left to be a feature")
    gaps = [index for index in scan.features if scan.facts[index].missing] if reading.missing == "drop" else []
    exponents = {role: _exponent(scan.facts[index].high) for role, index in scan.given.items()}
    heavy = exponents.get("sample_weight", 0)
    weights = heavy if abs(heavy) > ORDINARY else 0
    return _Layout(stream, scan.given, tuple(features), tuple(gaps), weights, exponents.get("sigma", 0)), notes


def _means(own: PreparedColumn, facts: Facts) -> tuple[float, ...]:
    """Means of the columns of numbers that a column becomes, of all rows that have a value."""
    if facts.kind == "number":
        return (facts.mean,)
    if facts.kind != "text":
        moment = np.array([round(facts.mean)], f"{'M' if facts.kind == 'date' else 'm'}8[us]")
        return (float(own.numbers(Column(facts.column().raw, facts.kind, moment))[0][0]),)
    counts = np.array([facts.counts[text] for text in facts.column().values], np.float64)
    return tuple(float(stable_sum(counts * part) / stable_sum(counts)) for part in own.numbers(facts.column()))


def _exponent(value: float) -> int:
    return int(np.frexp(value)[1]) if np.isfinite(value) else 0


def _plain(values: Values) -> AnyArray:
    if isinstance(values, Texts):
        return np.array([*values.texts, ""])[values.codes]
    return values if values.dtype.kind in "mM" else values.astype(np.float64, copy=False)
