"""The neighbourhood of the rows of a data set, where fresh rows may lie, as segments of straight lines.

Fresh rows of the same kind combine the values of the columns anew, lie between the known rows, and reach a little
beyond them: further if fewer rows are known, and further along the longer tails of a column. Columns keep their kind: a
column of few values has no other values, whole numbers stay whole, and columns without negative values get none. They
keep their order, too: if an inner radius is smaller than the outer one in every row, it is so in fresh rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices
from shine.compiler.arrays import apply, exp, log
from shine.data.datasets.dataset import stable_sum
from shine.lang.forms.library import STANDARD

ROWS = 192
"""Largest number of rows that segments begin at."""

_SHORT_TAIL, _LONG_TAIL = 2.0, 2.5
"""Distance from the median to the end of a column, in units of the distance to the quartile. It is 2 for uniform
values, where fresh values reach no further, 2.8 for 20 normal values, and 3.7 for 100."""

_END = 4, 0.1
"""A column ends at its extreme value if at least this number and this share of its rows have that value."""

NEARER = 0.25
"""Share of the smallest value of a positive column that fresh values may have. At an eighth and less, x**-4 would be a
thousand times the known range away, and count as a pole."""

FEWEST_LEVELS, SPARSE = 3, 12
"""Least values of a column that have something between them, and most that leave wide gaps."""

Reach = Literal["between", "beyond", "recombined"]
"""Kinds of neighbourhoods: see `neighbourhood`."""

_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class LineSegments:
    """Straight lines from known rows to places where fresh rows may lie.

    Parameters
    ----------
    known : ndarray of shape (n_columns, n_rows)
        The rows that the segments begin at.
    starts, ends : ndarray of shape (n_columns, n_segments)
        Columns of few values have the value of the end on the whole segment.
    steps : ndarray of shape (n_columns,)
        The step of each column: all its numbers are multiples of it, also along the segments; 0 if there is none, or
        if it is a rounding.
    """

    known: Floats
    starts: Floats
    ends: Floats
    steps: Floats

    @cached_property
    def every(self) -> Floats:
        """The known rows, and both ends of all segments."""
        return np.concatenate([self.known, self.starts, self.ends], axis=1)

    def at(self, segments: Indices, shares: Floats) -> Floats:
        """Points at shares of the way along some segments, shape (n_columns, n_points)."""
        starts, ends = self.starts[:, segments], self.ends[:, segments]
        # The difference of large ends must not overflow, and columns of few values must not be rounded.
        points = np.where(starts == ends, ends, (1 - shares) * starts + shares * ends)
        return multiples(points, self.steps[:, None], np.rint)


def neighbourhood(columns: Sequence[Column], reach: Reach = "recombined") -> LineSegments:
    """Segments from rows to other rows, to new combinations of the columns, and to the margins.

    Visibly correlated columns stay together: a new combination has their values from one row.

    Parameters
    ----------
    columns : sequence of Column
        At least one.
    reach : {"between", "beyond", "recombined"}
        Only between rows, or also in the margins, or also at new combinations. Unless these are asked for, columns keep
        any order that they have in all known rows, even if it may be due to chance.

    Returns
    -------
    LineSegments
    """
    with np.errstate(all="ignore"):
        return _neighbourhood(columns, np.random.default_rng(0), reach)


def _neighbourhood(columns: Sequence[Column], rng: np.random.Generator, reach: Reach) -> LineSegments:
    rows = _rows(columns, rng)
    known = np.array([column.values[rows] for column in columns])
    few = np.array([column.few for column in columns])
    steps = np.array([column.coarse_step for column in columns])
    partners = known[:, rng.permutation(known.shape[1])]
    mixed = known.copy()
    # Smallest correlation that counts, in standard errors.
    visible = 3.0 / math.sqrt(min(len(columns[0].values), known.shape[1]))
    for group in linked(known, visible):
        mixed[group] = known[group][:, rng.integers(0, known.shape[1], known.shape[1])]
    pulled = np.array([column.pulled(values) for column, values in zip(columns, known, strict=True)])
    places = {
        "between": [partners],
        "beyond": [partners, pulled],
        "recombined": [partners, mixed, pulled],
    }[reach]
    ends, starts = np.concatenate(places, axis=1), np.tile(known, len(places))
    # Largest probability that a pair of columns has the same order in all rows by chance.
    for small, large in ordered(columns, known, 1e-3 if reach == "recombined" else 1.0):
        gaps = columns[large].values - columns[small].values
        # A line between two rows with the order has it everywhere. Rows without it are no rows of this kind.
        ends = np.where(ends[large] - ends[small] >= NEARER * gaps.min(), ends, starts)
    return LineSegments(known, np.where(few[:, None], ends, starts), ends, steps)


def _rows(columns: Sequence[Column], rng: np.random.Generator) -> Indices:
    """Rows that segments begin at, including rows with the ends of columns."""
    count = len(columns[0].values)
    if count <= ROWS:
        # Smallest number of starting points; fewer rows are repeated
        return np.resize(np.arange(count), max(count, 96))
    outer = [row for column in columns for row in column.ends][: ROWS // 2]
    return np.concatenate([np.array(outer), rng.integers(0, count, ROWS - len(outer))])


def linked(known: Floats, visible: float) -> list[list[int]]:
    """Groups of columns whose correlation is above some size, directly or through others."""
    largest = np.abs(known).max(axis=1, keepdims=True)
    deviations = known / np.where(largest > 0, largest, 1.0)
    deviations = deviations - stable_sum(deviations)[:, None] / known.shape[1]
    spreads = np.sqrt(stable_sum(deviations**2))
    scaled = deviations / np.where(spreads > 0, spreads, 1.0)[:, None]
    groups: list[list[int]] = []
    for column in range(len(known)):
        correlations = np.abs(stable_sum(scaled * scaled[column]))
        linked = [group for group in groups if (correlations[group] > visible).any()]
        groups = [group for group in groups if not any(group is other for other in linked)]
        groups.append([*(member for group in linked for member in group), column])
    return groups


def ordered(columns: Sequence[Column], known: Floats, chance: float) -> list[tuple[int, int]]:
    """Pairs of columns, the first smaller in every row, though its values alone do not make it so."""
    if len(columns) > 64:  # largest number of columns whose order is examined, as every pair is
        return []
    pairs = []
    for small, large in permutations(range(len(columns)), 2):
        if not (known[small] < known[large]).all() or columns[small].high < columns[large].low:
            continue
        above = np.searchsorted(np.sort(known[small]), known[large], side="left")
        by_chance = int(np.add.reduce(above)) / (above.size * above.size)
        likely = math.log(by_chance) * len(columns[small].values) > math.log(chance)
        if not likely and (columns[small].values < columns[large].values).all():
            pairs.append((small, large))
    return pairs


def _step(sample: Floats) -> float:
    """The step of sorted values: 1 for whole numbers, otherwise their smallest distance or size; 0 if there is none."""
    largest = max(abs(float(sample[0])), abs(float(sample[-1])))
    # Least size at which every float64 is a whole number.
    if largest < 2.0**53 and (sample == np.floor(sample)).all():
        return 1.0
    sizes = np.concatenate([np.diff(sample), np.abs(sample)])
    # Smallest step as a share of the largest value; smaller differences are rounding errors.
    step = float(sizes.min(where=sizes > 1e-9 * largest, initial=np.inf))
    if not math.isfinite(step):
        return 0.0
    multiples = sample / step
    return step if (np.abs(multiples - np.rint(multiples)) < 1e-6).all() else 0.0


def _next_below(levels: Floats, step: float) -> float:
    """The value that may precede ascending values which are chosen by ratio; otherwise the smallest one."""
    low = float(levels[0])
    # Fewest positive values that show whether somebody chose them by ratio, such as ages of 3, 7, 14, 28 and 90 days.
    if len(levels) < 4 or low <= max(step, 0.0):
        return low
    ratios = log(levels[1:] / levels[:-1])
    if not _unevenness(ratios) < _unevenness(np.diff(levels)):
        return low
    below = low * max(NEARER, float(exp(-ratios.max())))
    return max(step * math.floor(below / step), step) if step else below


def _unevenness(gaps: Floats) -> float:
    """Coefficient of variation."""
    shares = gaps * (len(gaps) / float(stable_sum(gaps)))
    return math.sqrt(float(stable_sum((shares - 1) ** 2)) / len(gaps))


def multiples(values: Floats, steps: Floats | float, rounded: Callable[[Floats], Floats]) -> Floats:
    """Values rounded to multiples of steps; unchanged where the step is 0."""
    own = np.where(np.asarray(steps) > 0, steps, 1.0)
    return np.where(np.asarray(steps) > 0, own * rounded(values / own), values)


def _may_be_none(sizes: Floats, step: float) -> bool:
    """Whether a column of such multiples of a step may have smaller ones, which are missing by chance.

    For Poisson's counts, the frequencies of the smallest value, k steps, and the next one say how many rows to expect
    one step below. Trials that are numbered from 1 have each number as often as the next; days 1, 3, 7 and 14 have no
    next one. In both, 0 would have been seen.
    """
    least = float(sizes.min())
    own, following = (float(np.count_nonzero(np.abs(sizes - size) < step / 2)) for size in (least, least + step))
    k = least / step
    # Expected number of rows of a value that are missing by chance in 5 % of all data sets.
    return own * own * k < 3.0 * (k + 1) * following


@dataclass(frozen=True)
class Tail:
    """One side of a column.

    Parameters
    ----------
    further : float
        Factor by which fresh values may be further from the median than known values.
    by_ratio : bool
        Whether the factor applies to logarithms.
    """

    further: float
    by_ratio: bool

    @classmethod
    def of(cls, values: Floats, end: float, median: float, quartile: float, other: float, one_sign: bool) -> Tail:
        """The side of the median with this quartile and this end; the other quartile shows the usual distance, too."""
        rows = len(values)
        least, share = _END
        if np.count_nonzero(values == end) >= max(least, share * rows):
            return cls(1.0, False)
        short = 1 + 4 / rows
        # The extremes of normal values grow like the root of the logarithm of their number.
        # Number of fresh rows that the margins allow for: of this many normal values, about none lies outside
        long = max(math.sqrt(math.log(1e5) / math.log(max(rows, 5))), short)
        way, length = abs(end / 2 - median / 2), abs(quartile / 2 - median / 2)
        excess = (way / length if length > 0 else math.inf) - _SHORT_TAIL
        longness = min(max(excess / (_LONG_TAIL - _SHORT_TAIL), 0.0), 1.0)
        usual = max(length, abs(other / 2 - median / 2))
        unusual = way / usual if usual > 0 else math.inf
        # The distance beyond which values are not normal: fresh values may then lie further out by a factor equal to
        # that distance. Then the largest such factor.
        if unusual > 10.0 and not one_sign:
            return cls(max(long, min(unusual, 100.0)), False)
        return cls(short + longness * (long - short), longness > 0 and one_sign)


@dataclass(frozen=True, eq=False)
class Column:
    """Known values of a column, and where its fresh values may lie.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Finite numbers, at least one.
    ends : tuple of (int, int)
        Rows of the smallest and the greatest value.
    median : float
    down, up : Tail
        The sides below and above the median.
    step : float
        All values are multiples of it: 1 for whole numbers; 0 if there is none.
    few, sparse, counts : bool
        Whether the column has few values; whether nearly all values are the same, and the others too few to tell their
        sign; whether it seems to count something, so that there may be none. Counts repeat; multiples of a step that
        are all different are ranks or settings of an instrument, where laws such as 1/x hold.
    below : float
        A smaller value that may have been chosen elsewhere, if few positive values are chosen by ratio; otherwise the
        smallest one.
    """

    values: Floats
    ends: tuple[int, int]
    median: float
    down: Tail
    up: Tail
    step: float
    few: bool
    sparse: bool
    counts: bool
    below: float

    @classmethod
    def of(cls, values: Floats) -> Column:
        """The column of some values."""
        ends = int(values.argmin()), int(values.argmax())
        low, high = float(values[ends[0]]), float(values[ends[1]])
        sample = np.sort(values[:: len(values) // 5000 + 1])  # largest number of values of a column that are examined
        first, median, third = (float(sample[int(share * (len(sample) - 1) + 0.5)]) for share in (0.25, 0.5, 0.75))
        one_sign = low > 0 or high < 0
        distinct = 1 + int(np.count_nonzero(sample[1:] != sample[:-1]))
        # A column has few values if each occurs in at least this many rows on average.
        few, step = distinct * 5 <= len(sample), _step(sample)
        with np.errstate(all="ignore"):
            down = Tail.of(sample, low, median, first, third, one_sign)
            up = Tail.of(sample, high, median, third, first, one_sign)
            below = _next_below(np.unique(sample), step) if few else low
        others = int(np.count_nonzero(sample != median))
        # Least number of values different from the median that tell the sign of fresh values.
        sparse = 0 < others < min(10, len(sample) / 2) and not (few and step)
        multiples = step == 1 or 0 < min(abs(low), abs(high)) <= step
        counts = multiples and distinct < len(sample) and _may_be_none(np.abs(sample), step)
        return cls(values, ends, median, down, up, step, few, sparse, counts, below)

    @property
    def distinct(self) -> int:
        """Number of different values."""
        return len(np.unique(self.values))

    @property
    def has_gaps(self) -> bool:
        """Whether values are possible between those of the column: not between adjacent whole numbers, nor of two."""
        if self.distinct < FEWEST_LEVELS or self.step == 1:
            return False
        dense = self.step > 0 and self.distinct > (self.high - self.low) / self.step / 2
        return not (dense and self.coarse_step)

    @property
    def low(self) -> float:
        """The smallest value."""
        return float(self.values[self.ends[0]])

    @property
    def high(self) -> float:
        """The greatest value."""
        return float(self.values[self.ends[1]])

    @property
    def coarse_step(self) -> float:
        """The step; 0 if it is a mere rounding of a quantity that may have any value."""
        # With more steps than this between its ends, a column is a rounded quantity, such as lengths to the millimetre:
        # its fresh values may be rounded elsewhere, or not at all.
        return self.step if self.high / 2 - self.low / 2 <= 50 * (self.step / 2) else 0.0

    def pulled(self, values: Floats) -> Floats:
        """Known values, moved as far from the median as fresh values may lie."""
        if self.sparse:
            # Alternate between both sides.
            signs = np.where(np.arange(len(values)) % 2, 1.0, -1.0)
            return np.clip(self.median + 2 * signs * (values - self.median), -_LARGEST, _LARGEST)
        if self.few and self.step != 1:
            return np.where(values == self.low, self.below, values)
        up = values > self.median
        further = np.where(up, self.up.further, self.down.further)
        by_ratio = np.where(up, self.up.by_ratio, self.down.by_ratio)
        moved = self.median + further * (values - self.median)
        # A column of one sign keeps it. Its values come nearer to zero by a factor of at most four, unless by ratio.
        # Only positive counts may become zero.
        nearer = 0.0 if self.counts else NEARER
        if self.low >= 0:
            moved = np.maximum(np.where(values == self.low, np.minimum(moved, self.below), moved), nearer * self.low)
        elif self.high <= 0:
            moved = np.minimum(moved, nearer * self.high)
        if by_ratio.any():
            ratios = apply(STANDARD["pow"], values / self.median, further)
            moved = np.where(by_ratio, self.median * ratios, moved)
        moved = np.where(up, multiples(moved, self.step, np.ceil), multiples(moved, self.step, np.floor))
        moved = np.clip(moved, -_LARGEST, _LARGEST)
        # Values that underflow or are rounded to zero keep their sign, too.
        vanished = (moved == 0) & (not self.counts) & ((self.low > 0) | (self.high < 0))
        return np.where(vanished, np.copysign(self.step, values) if self.step else values, moved)
