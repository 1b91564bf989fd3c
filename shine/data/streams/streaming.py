"""Streams -> data sets: one pass that learns what all rows say, and a sample of them in memory.

Headings, dates, texts and missing values mean the same as for a table in memory (see `shine.data.datasets.training`).
Columns of texts that are numbers or dates are refused: their kind would depend on all cells together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.errors import DataError
from shine.base.stages import stage
from shine.base.typing import AnyArray, Floats, Indices, Mask
from shine.data.columns.kinds import Column
from shine.data.datasets.dataset import LEAST_DEVIATION, ORDINARY, AllRows, Dataset, stable_mean
from shine.data.datasets.preparation import Preparation, PreparedColumn, Reading, learned
from shine.data.datasets.training import Loaded, dataset_of, ignored_note, loss_columns_of
from shine.data.files.source import RawColumn
from shine.data.streams.scanning import Facts, Scan, check, taken, without
from shine.data.streams.streams import Stream, Texts, Values
from shine.lang.forms.names import Numbering, distinct_names


def gone(values: Values) -> Mask | None:
    """Rows without a value; None if all have one by their type."""
    if isinstance(values, Texts):
        return values.codes < 0
    if values.dtype.kind in "mM":
        missing: Mask = np.isnat(values)
        return missing
    return np.isnan(values) if values.dtype.kind == "f" else None


def numbers_of(own: PreparedColumn, values: Values) -> list[Floats]:
    """The columns of numbers of some rows."""
    raw = RawColumn(own.heading, np.zeros(0), str)
    if isinstance(values, Texts):
        texts = np.array([*values.texts, None], object)
        return [numbers[values.codes] for numbers in own.numbers(Column(raw, "text", texts))]
    if values.dtype.kind in "mM":
        return own.numbers(Column(raw, own.raw_kind, values.astype(f"{values.dtype.kind}8[us]")))
    return [values.astype(np.float64, copy=False)]


SAMPLE_ROWS = 1 << 20
"""Most rows in memory: a share of a second for a pass of the search's end, and for hundreds of samples of it."""

SAMPLE_NUMBERS = 1 << 25
"""Most numbers of these rows: 256 MiB."""


def streamed(stream: Stream, roles: Mapping[str, int], features: Sequence[int], reading: Reading) -> Loaded:
    """A sample of a stream's rows as a data set that knows the whole.

    Parameters
    ----------
    stream : Stream
    roles : mapping of str to int
        Positions of the target, the weights and so on, by the parameters of `Dataset.from_arrays`; those of columns
        beside the features by `shine.data.datasets.training.LOSS_COLUMN` and their name.
    features : sequence of int
        Positions of the features.
    reading : Reading

    Raises
    ------
    DataError
        With a line for each column that cannot be used.
    """
    columns = len(roles) + len(features)
    most = min(SAMPLE_ROWS, max(SAMPLE_NUMBERS // columns, 100_000))  # rows in memory, however many columns there are
    with stage(f"reading {stream.rows} rows of {stream.name} once, for what they hold"):
        scan = Scan(stream, roles, features, reading, _spread(stream.rows, most))
    check(scan)
    layout, notes = _layout(scan)
    sample = layout.sample(scan.sample)
    names = [name for _, column in layout.features for name in column.names]
    all_rows = AllRows(
        scan.moments.rows,
        scan.moments.weight,
        scan.moments.effective_rows,
        scan.moments.mean,
        scan.moments.square,
        layout.ranges(scan.facts),
        scan.checksum,
        layout.read,
    )
    count = all_rows.n_rows
    if count < stream.rows:
        lost = stream.rows - count
        notes.insert(0, f"{stream.name}: without {lost} of {stream.rows} rows, where values are missing")
    told = f"{stream.name}: {count} rows are read block by block; {sample.n_rows} of them are in memory for the search"
    own = tuple(column for _, column in layout.features)
    preparation = Preparation(own, reading.missing, missing_marks=reading.marks.extra)
    assert sample.features == tuple(names)
    return Loaded(replace(sample, all_rows=all_rows), None if preparation.is_plain else preparation, (told, *notes))


def _spread(rows: int, most: int) -> Indices:
    """A random row of each of `most` equal stretches of the rows; all rows if there are no more."""
    if rows <= most:
        return np.arange(rows)
    ends = np.arange(most + 1) * rows // most
    positions: Indices = ends[:-1] + np.random.default_rng(0).integers(0, np.diff(ends))
    return positions


@dataclass(frozen=True, eq=False)
class _Layout:
    """Layout of data sets made of the blocks of a stream.

    Parameters
    ----------
    stream : Stream
    roles : mapping of str to int
    features : tuple of (int, PreparedColumn)
        Position and preparation of each column of features.
    gaps : tuple of int
        Positions of columns whose missing values drop their rows.
    weights, deviations : int
        Powers of two that weights and standard deviations are divided by.
    """

    stream: Stream
    roles: Mapping[str, int]
    features: tuple[tuple[int, PreparedColumn], ...]
    gaps: tuple[int, ...]
    weights: int
    deviations: int

    def read(self, names: Collection[str]) -> Iterator[Dataset]:
        """The rows with some features, block by block (see `AllRows`)."""
        wanted = set(names)
        own = tuple((index, column) for index, column in self.features if wanted & set(column.names))
        roles = {role: index for role, index in self.roles.items() if role not in ("groups", "times")}
        layout = replace(self, features=own, roles=roles)
        indices = list(dict.fromkeys([*roles.values(), *(index for index, _ in own), *self.gaps]))
        chosen = tuple(name for _, column in own for name in column.names if name in wanted)
        for block in self.stream.blocks(indices):
            found = layout._arrays(dict(zip(indices, block, strict=True)), chosen)
            if len(found[1]["target"]):
                yield layout._dataset(*found, chosen)

    def sample(self, values: Mapping[int, Values]) -> Dataset:
        """The data set of some rows, checked."""
        prepared = [column for _, column in self.features]
        columns, roles = self._arrays(values, [name for column in prepared for name in column.names])
        return dataset_of(columns.T, roles, prepared, self.stream.name)

    def ranges(self, facts: Mapping[int, Facts]) -> dict[str, tuple[float, float]]:
        """Least and largest value of each feature."""
        found = {}
        for index, own in self.features:
            for name, numbers in zip(own.names, own.numbers(facts[index].column()), strict=True):
                found[name] = float(np.min(numbers)), float(np.max(numbers))
        return found

    def _arrays(self, values: Mapping[int, Values], names: Collection[str]) -> tuple[Floats, dict[str, AnyArray]]:
        """Columns of features, shape (n_features, n_rows), and the other columns by their roles."""
        needed = [*self.roles.values(), *self.gaps]
        kept = without([gone(values[index]) for index in dict.fromkeys(needed)])
        roles = {role: _plain(taken(values[index], kept)) for role, index in self.roles.items()}
        columns = np.empty((len(names), len(roles["target"])))
        at = 0
        for index, own in self.features:
            for name, column in own.filled(numbers_of(own, taken(values[index], kept))).items():
                if name in names:
                    columns[at] = column
                    at += 1
        return columns, roles

    def _dataset(self, columns: Floats, roles: Mapping[str, AnyArray], names: tuple[str, ...]) -> Dataset:
        """A block as a data set; its weights and deviations are in units that all blocks share."""
        numbers: dict[str, Floats] = {role: np.ascontiguousarray(v, np.float64) for role, v in roles.items()}
        loss_columns = loss_columns_of(numbers)
        weights = numbers.get("sample_weight")
        weights = None if weights is None else np.ldexp(weights, -self.weights)
        if "sigma" not in numbers:
            return Dataset(columns, numbers["target"], weights, names, loss_columns=loss_columns)
        deviations = np.maximum(np.ldexp(numbers["sigma"], -self.deviations), LEAST_DEVIATION)
        weighed = (1.0 if weights is None else weights) / deviations**2
        loss_columns["sigma"] = numbers["sigma"]
        return Dataset(columns, numbers["target"], weighed, names, deviations, loss_columns=loss_columns)


def _layout(scan: Scan) -> tuple[_Layout, list[str]]:
    """The layout that all rows tell, and notes on it."""
    stream, reading, notes = scan.stream, scan.reading, []
    names = distinct_names(stream.headings)
    taken, features = Numbering(names), []
    for index in scan.features:
        facts = scan.facts[index]
        same = facts.kind == "text" and len(facts.counts) == 1 and reading.categories != "error"
        heading = facts.heading
        numbered = reading.numbers(heading)
        if facts.kind == "text" and not numbered and (same or reading.categories == "ignore"):
            notes.append(ignored_note(heading, same))
            continue
        own = learned(facts.column(), names[index], "ordinal" if numbered else reading.categories, taken)
        own = replace(own, means=_means(own, facts)) if reading.missing == "mean" else own
        features.append((index, own))
        note = own.note()
        notes += [note] if note else []
    if not features:
        raise DataError(f"{stream.name}: no column is left to be a feature")
    gaps = [index for index in scan.features if scan.facts[index].missing] if reading.missing == "drop" else []
    exponents = {role: _exponent(scan.facts[index].high) for role, index in scan.roles.items()}
    heavy = exponents.get("sample_weight", 0)
    weights = heavy if abs(heavy) > ORDINARY else 0
    return _Layout(stream, scan.roles, tuple(features), tuple(gaps), weights, exponents.get("sigma", 0)), notes


def _means(own: PreparedColumn, facts: Facts) -> tuple[float, ...]:
    """Means of the columns of numbers that a column becomes, of all rows that have a value."""
    if facts.kind == "number":
        return (facts.mean,)
    if facts.kind != "text":
        moment = np.array([round(facts.mean)], f"{'M' if facts.kind == 'date' else 'm'}8[us]")
        return (float(own.numbers(Column(facts.column().raw, facts.kind, moment))[0][0]),)
    counts = np.array([facts.counts[text] for text in facts.column().values], np.float64)
    return tuple(stable_mean(part, counts) for part in own.numbers(facts.column()))


def _exponent(value: float) -> int:
    return int(np.frexp(value)[1]) if np.isfinite(value) else 0


def _plain(values: Values) -> AnyArray:
    if isinstance(values, Texts):
        return np.array([*values.texts, ""])[values.codes]
    return values if values.dtype.kind in "mM" else values.astype(np.float64, copy=False)
