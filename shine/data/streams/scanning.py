"""The first pass over a stream: what its columns hold, the moments of the target, and a sample of the rows."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats, Indices, Mask
from shine.data.columns.kinds import HOLDS
from shine.data.datasets.dataset import MOST_SEEN, stable_sum
from shine.data.datasets.preparation import MOST_CATEGORIES, Reading
from shine.data.datasets.training import LOSS_COLUMN
from shine.data.streams.facts import MOST_TEXTS, Facts
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


_SPELLED = {"target": "the target", "sample_weight": "the weights", "sigma": "sigma", "groups": "the groups"}


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
        told = _SPELLED.get(role, f"the column {role.removeprefix(LOSS_COLUMN)}")
        if role != "groups" and facts.kind != "number":
            yield _problem(scan, facts, 0, f"{told} must be numbers; the column holds {HOLDS[facts.kind]}")
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
