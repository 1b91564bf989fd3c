"""Where fresh rows may lie: the neighbourhood of the rows of a data set, as segments of straight lines.

Fresh rows of the same kind combine the values of the columns anew, lie between the known rows, and reach a little
beyond them: the fewer rows are known and the longer the tails of a column, the further. Columns keep their kind. One
of few values has no others, whole numbers stay whole, and what is never negative stays so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shine.data import stable_sum

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROWS = 192
"""Most rows that segments begin at; fewer rows are repeated until there are `LEAST_ROWS`."""

LEAST_ROWS = 96

_FRESH = 1e5
"""Rows among which the margins expect none outside."""

_SHORT_TAIL = 2.4
"""Up to this ratio, of the way from the median to the end of a column and that to the quartile, a column ends there: it
is 2 for uniform values, and 3.7 for 100 normal ones."""

_REPEATS = 5
"""How often a value of a column of few values is found, on average."""

_VISIBLE = 3.0
"""Standard errors from which on a correlation counts."""

_SEED = 0


@dataclass(frozen=True, eq=False)
class Segments:
    """Straight lines from known rows to where fresh ones may lie, column by column.

    Parameters
    ----------
    starts, ends : ndarray of shape (n_columns, n_segments)
        Columns of few values have that of the end on the whole segment.
    """

    starts: Array
    ends: Array

    def at(self, segments: NDArray[np.int64], shares: Array) -> Array:
        """Points at shares of the way along some segments, shape (n_columns, n_points)."""
        starts, ends = self.starts[:, segments], self.ends[:, segments]
        return starts + shares * (ends - starts)


def neighbourhood(columns: Sequence[Array]) -> Segments:
    """Segments from rows to other rows, to new combinations of the columns, and to the margins.

    Columns that are visibly correlated stay together: a new combination has their values from one row.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n_rows,)
        Finite numbers; at least one column, and one row.

    Returns
    -------
    Segments
    """
    rng = np.random.default_rng(_SEED)
    kinds = [Column.of(column) for column in columns]
    rows = _rows(columns, rng)
    known = np.array([column[rows] for column in columns])
    few = np.array([kind.few for kind in kinds])
    partners = known[:, rng.permutation(known.shape[1])]
    mixed = known.copy()
    for group in _groups(known, len(columns[0])):
        mixed[group] = known[group][:, rng.integers(0, known.shape[1], known.shape[1])]
    pulled = np.array([kind.pulled(values) for kind, values in zip(kinds, known, strict=True)])
    ends = np.concatenate([partners, mixed, pulled], axis=1)
    starts = np.concatenate([known, known, known], axis=1)
    return Segments(np.where(few[:, None], ends, starts), ends)


def _rows(columns: Sequence[Array], rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows to begin at; those with the ends of columns are among them."""
    count = len(columns[0])
    if count <= ROWS:
        return np.resize(np.arange(count), max(count, LEAST_ROWS))
    outer = [position for column in columns for position in (int(column.argmin()), int(column.argmax()))]
    return np.concatenate([np.array(outer[: ROWS // 2]), rng.choice(count, ROWS - min(len(outer), ROWS // 2), False)])


def _groups(known: Array, rows: int) -> list[list[int]]:
    """Columns that are correlated, directly or through others."""
    deviations = known - known.mean(axis=1, keepdims=True)
    spreads = np.sqrt(stable_sum(deviations**2))
    scaled = deviations / np.where(spreads > 0, spreads, 1.0)[:, None]
    visible = _VISIBLE / math.sqrt(min(rows, known.shape[1]))
    groups: list[list[int]] = []
    for column in range(len(known)):
        correlations = np.abs(stable_sum(scaled * scaled[column]))
        linked = [group for group in groups if (correlations[group] > visible).any()]
        groups = [group for group in groups if not any(group is other for other in linked)]
        groups.append([*(member for group in linked for member in group), column])
    return groups


@dataclass(frozen=True)
class Column:
    """What is kept in mind of a column to say where its fresh values may lie.

    Parameters
    ----------
    median, low, high : float
    further_down, further_up : float
        How many times as far from the median as the known values fresh ones may lie, on either side.
    by_ratio_down, by_ratio_up : bool
        Whether that holds for the logarithms.
    few, whole : bool
        Whether the column has few values; whether all are whole numbers.
    """

    median: float
    low: float
    high: float
    further_down: float
    further_up: float
    by_ratio_down: bool
    by_ratio_up: bool
    few: bool
    whole: bool

    @classmethod
    def of(cls, values: Array) -> Column:
        """That of some values, of a sample of them if there are very many."""
        low, high = float(values.min()), float(values.max())
        sample = values[:: max(len(values) // 10_000, 1)]
        quartiles = np.quantile(sample, (0.25, 0.5, 0.75)).tolist()
        median = quartiles[1]
        distinct = len(np.unique(sample))
        short = 1 + 4 / len(values)
        long = max(math.sqrt(math.log(_FRESH) / math.log(max(len(values), 5))), short)
        long_down = median - low > _SHORT_TAIL * (median - quartiles[0])
        long_up = high - median > _SHORT_TAIL * (quartiles[2] - median)
        one_sign = low > 0 or high < 0
        return cls(
            median, low, high,
            long if long_down else short, long if long_up else short,
            long_down and one_sign, long_up and one_sign,
            distinct * _REPEATS <= len(sample), bool((sample == np.floor(sample)).all()) and distinct > 2,
        )  # fmt: skip

    def pulled(self, values: Array) -> Array:
        """Known values, moved away from the median as far as fresh ones may lie from it."""
        if self.few and not self.whole:
            return values
        up = values > self.median
        further = np.where(up, self.further_up, self.further_down)
        moved = self.median + further * (values - self.median)
        if self.low > 0 or self.high < 0:
            by_ratio = np.where(up, self.by_ratio_up, self.by_ratio_down)
            moved = np.where(by_ratio, self.median * (values / self.median) ** further, moved)
        # A column of one sign keeps it, and comes nearer to zero by a factor of at most ten.
        if self.low >= 0:
            moved = np.where(self.by_ratio_down, moved, np.maximum(moved, self.low / 10))
        elif self.high <= 0:
            moved = np.where(self.by_ratio_up, moved, np.minimum(moved, self.high / 10))
        return np.rint(moved) if self.few else moved
