"""Behaviour of a formula between neighbouring rows, where no row tests it.

A formula may fit every row and oscillate faster than the rows can show, rise to a peak between two of them, or have a
needle at one. So it is asked between each row and the neighbouring levels of each feature: does it leave the interval
of its values at both ends? Smooth formulas hardly do, nor do steps. An oscillation with ten rows a period turns between
few of them; one that is faster than the rows leaves the interval by as much as the ends differ, wherever it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices, Mask
from shine.data.datasets.dataset import stable_sum
from shine.evaluate.domain.neighbourhood import NEARER, TOGETHER, Column, Levels, linked, multiples, ordered

ROWS = 1000
"""Most rows that are asked beside, for each feature."""

FEWEST_LEVELS = 3
"""Columns of fewer levels have nothing between them."""

BESIDE, MIDDLE = 0.2113, 0.5
"""Shares of the way to the next level where a formula is asked: next to both ends, and in the middle."""

FASTER, TURN = 0.13, 0.3
"""A formula changes faster than the rows show if, in the mean, this share of its way from one level to the next is
beyond both ends. An oscillation with ten rows a period has 0.05, with four 0.13, and a faster one 0.3 to 0.5. One turn
between two levels is allowed: this share of one way, as a parabola over a few levels may have it."""

BENT = 0.38
"""Nor may it leave the parabola through three levels by more than this share of what it leaves their chord by, in the
mean: so are oscillations found that ride on a slope. One with eight rows a period has at most 0.28, most faster ones
0.5."""

FLAT = 1e-3
"""Shorter ways do not count, as a share of the spread of the target."""

PEAK = 1.0
"""A peak between two levels rises above both by more than this share of the range of the target and the formula."""

NEEDLE, SHARP = 0.1, 0.5
"""A needle at a row rises above the points beside it by more than this share of the target's spread, and by more than
this share of what it rises above the neighbouring levels: a smooth maximum does so by a twentieth of that."""

EVEN = 1e-6
"""Relative difference of steps that is rounding."""

NEXT, HALF_WAY = 0.13, 0.6
"""On an equally spaced grid, levels say nothing for an oscillation of more than half a turn a step: a slower one has
the same values. Of the square of what they bend over a step, slower ones bend next to a row by at most 0.106, and half
way by at most 0.5."""

_SEED = 2


@dataclass(frozen=True, eq=False)
class Gaps:
    """Rows and points on the ways from them to the neighbouring levels of a feature.

    Columns that rise and fall together move together; the others stay as they are.

    Parameters
    ----------
    feature : ndarray of shape (n_ways,), int64
        The column whose levels each way joins.
    points : ndarray of shape (5, n_columns, n_ways)
        The row, points on the way up, and the next level. Whole numbers stay whole.
    pairs : ndarray of shape (2, n_pairs), int64
        Ways up and down that begin at the same row.
    levels : list of Levels
        The levels of each column.
    """

    feature: Indices
    points: Floats
    pairs: Indices
    levels: list[Levels]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Self:
        """The ways between the rows of at least one column."""
        rng = np.random.default_rng(_SEED)
        levels = [column.levels for column in columns]
        known = np.array([each.values for each in levels])
        ranks = np.array([each.ranks for each in levels])
        rows = _Rows(
            known,
            ranks,
            np.array([_step(column) for column in columns]),
            levels,
            [(a, b, NEARER * float((known[b] - known[a]).min())) for a, b in ordered(columns, known, 1.0)],
        )
        feature, points, pairs = [np.zeros(0, np.int64)], [np.zeros((5, len(known), 0))], [np.zeros((2, 0), np.int64)]
        for group in linked(ranks, TOGETHER):
            for each in group:
                # Columns of more levels have ways of their own.
                moving = [other for other in group if len(levels[other]) <= len(levels[each])]
                if len(levels[each]) >= FEWEST_LEVELS:
                    found, both = rows.ways(each, moving, rng.permutation(known.shape[1])[:ROWS])
                    pairs.append(both + sum(map(len, feature)))
                    points.append(found)
                    feature.append(np.full(found.shape[2], each))
        return cls(np.concatenate(feature), np.concatenate(points, axis=2), np.concatenate(pairs, axis=1), levels)

    def untested(self, values: Callable[[Floats], Floats], target: tuple[float, float]) -> int | None:
        """The column between whose levels a formula does what no row tests; of several, that of the fewest levels.

        Parameters
        ----------
        values : callable
            Points, shape (n_columns, n_points) -> values of the formula.
        target : (float, float)
            Range and standard deviation of the target.

        Returns
        -------
        int or None
            None if the rows test what it does.
        """
        with np.errstate(all="ignore"):
            every = self._every
            own, found = np.split(np.broadcast_to(values(every), every.shape[1:]), [len(self.levels[0].values)])
            found = found.reshape(len(self.points), -1)
            wild = [*self._faster(found, target, float(np.ptp(own))), *self._needles(found, target[1])]
            wild += self._bent(found, target[1])
        return min(wild, key=lambda column: len(self.levels[column]), default=None)

    def is_alias(self, values: Callable[[Floats], Floats], column: int) -> bool:
        """Whether a formula turns more than half from each level of a column to the next, as far away as the others."""
        ours = self.feature[self.pairs[0]] == column
        if not ours.any():
            return False
        (up, down), (right, left, _) = self.pairs[:, ours], self._places
        step = float(right[ours].min())
        even = np.maximum(right[ours], -left[ours]) < (1 + EVEN) * step
        if 2 * np.count_nonzero(even) < len(even):
            return False
        up, down = up[even], down[even]
        with np.errstate(all="ignore"):
            row = values(self.points[0][:, up])
            bends = [values(at[:, up]) + values(at[:, down]) - 2 * row for at in self.points[[1, 2, 4]]]
            near, half, whole = (float(stable_sum(bend[np.isfinite(bends).all(axis=0)] ** 2)) for bend in bends)
        return near > NEXT * whole or half > HALF_WAY * whole

    def _faster(self, found: Floats, target: tuple[float, float], own: float) -> Iterator[int]:
        """Columns along which a formula turns between the levels, or has a peak there."""
        first, inner, last = found[0], found[1:-1], found[-1]
        # A way may leave the region where there is a value, as beyond the edge of a circle.
        there = np.isfinite(first) & np.isfinite(last)
        beyond = np.where(there, _beyond(first, last, inner).max(axis=0), 0.0)
        ways = np.abs(first - last) + beyond
        shares = np.where(there & (ways > FLAT * target[1]), beyond / ways, 0.0)
        for each, along in self._ways:
            ours = there & along
            fast = float(stable_sum(shares[ours])) > (FASTER + TURN / (len(self.levels[each]) - 1)) * np.count_nonzero(
                ours
            )
            if fast or not (beyond[ours] <= PEAK * max(target[0], own)).all():
                yield each

    @cached_property
    def _every(self) -> Floats:
        """The known rows, and the points on all ways."""
        return np.concatenate([np.array([each.values for each in self.levels]), *self.points], axis=1)

    @cached_property
    def _ways(self) -> list[tuple[int, Mask]]:
        """The ways along each column that has some."""
        return [(each, self.feature == each) for each in np.unique(self.feature).tolist()]

    @cached_property
    def _pairs(self) -> list[tuple[int, Mask]]:
        """The pairs of ways along each column that has some."""
        own = self.feature[self.pairs[0]]
        return [(each, own == each) for each in np.unique(own).tolist()]

    @cached_property
    def _places(self) -> tuple[Floats, Floats, list[Floats]]:
        """Distances from the row of a pair to the next levels, and to the points on the ways up and down."""
        up, down = self.pairs
        places = self.points[:, self.feature, np.arange(len(self.feature))]
        middle = places[0, up]
        return places[-1, up] - middle, places[-1, down] - middle, [places[1:-1, way] - middle for way in (up, down)]

    def _bent(self, found: Floats, spread: float) -> Iterator[int]:
        """Columns along which a formula is far from smooth over three levels."""
        up, down = self.pairs
        right, left, inner = self._places
        rise, fall = (found[-1, way] - found[0, up] for way in (up, down))
        curve = (rise / right - fall / left) / (right - left)
        slope = rise / right - curve * right
        away = np.zeros(len(up))
        for way, places in zip((up, down), inner, strict=True):
            for values, at in zip(found[1:-1, way], places, strict=True):
                away = np.maximum(away, np.abs(values - found[0, up] - slope * at - curve * at * at))
        sag = np.abs(curve) * (right - left) ** 2 / 4
        there = np.isfinite(away) & np.isfinite(sag)
        for each, along in self._pairs:
            ours = there & along
            if not ours.any():
                continue
            scale = np.maximum(sag[ours], np.median(sag[ours]))
            shares = np.where(away[ours] > FLAT * spread, away[ours] / (away[ours] + scale), 0.0)
            if float(stable_sum(shares)) > (BENT + TURN / (len(self.levels[each]) - 1)) * len(shares):
                yield each

    def _needles(self, found: Floats, spread: float) -> Iterator[int]:
        """Columns along which a formula has a needle at a row."""
        up, down = self.pairs
        row, high = found[0, up], _beyond(found[1, up], found[1, down], found[0, up])
        rises = np.maximum(np.abs(found[-1, up] - row), np.abs(found[-1, down] - row))
        needles = (high > NEEDLE * spread) & (high > SHARP * rises)
        yield from np.unique(self.feature[up[needles]]).tolist()


def _beyond(one: Floats, other: Floats, between: Floats) -> Floats:
    """Distances of values from the intervals between two others; 0 inside."""
    beyond: Floats = np.abs(between - one / 2 - other / 2) - np.abs(one / 2 - other / 2)
    return np.maximum(beyond, 0.0)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Known rows, and which points may lie between them.

    Parameters
    ----------
    known, ranks : ndarray of shape (n_columns, n_rows)
    steps : ndarray of shape (n_columns,)
        All values of a column are multiples of its step; 0 if it may have any value.
    levels : list of Levels
        The different values of each column.
    orders : list of (int, int, float)
        Pairs of columns of which the first is smaller, and how much it has to be.
    """

    known: Floats
    ranks: Floats
    steps: Floats
    levels: list[Levels]
    orders: list[tuple[int, int, float]]

    def ways(self, feature: int, moving: list[int], rows: Indices) -> tuple[Floats, Indices]:
        """Points on the ways from some rows up and down, and the ways of the same rows (see `Gaps`)."""
        points = np.concatenate([self._points(feature, moving, rows, step) for step in (1, -1)], axis=2)
        inner, ends = points[1:-1, feature], points[[0, -1], feature]
        kept = ((inner != ends[0]) & (inner != ends[1])).all(axis=0)
        kept &= (points == multiples(points, self.steps[:, None], np.rint)).all(axis=(0, 1))
        for small, large, gap in self.orders:
            kept &= points[-1, large] - points[-1, small] >= gap
        place = (np.cumsum(kept) - 1).reshape(2, -1)
        return points[:, :, kept], place[:, kept.reshape(2, -1).all(axis=0)]

    def _points(self, feature: int, moving: list[int], rows: Indices, step: int) -> Floats:
        """Points on the ways from some rows to the next level, shape (5, n_columns, n_rows)."""
        starts, ends = self.known[:, rows], self._ends(feature, moving, rows, step)
        first, last = starts[feature], ends[feature]
        points = [starts]
        for share in (BESIDE, MIDDLE, 1 - BESIDE):
            own = multiples((1 - share) * first + share * last, self.steps[feature], np.rint)
            shares = (own - first) / np.where(first == last, 1.0, last - first)
            inner = np.where(starts == ends, ends, (1 - shares) * starts + shares * ends)
            inner[feature] = own
            points.append(inner)
        return np.array([*points, ends])

    def _ends(self, feature: int, moving: list[int], rows: Indices, step: int) -> Floats:
        """Ends of the ways: the nearest row of the next level, in the columns that move; the row itself if
        there is none."""
        levels, ranks = self.levels[feature], self.ranks[moving]
        ends, following = self.known[:, rows].copy(), levels.at[rows] + step
        there = np.flatnonzero((following >= 0) & (following < len(levels)))
        if len(moving) == 1:
            ends[feature, there] = levels.value(following[there])
            return ends
        for place in there.tolist():
            first, last = levels.first[following[place] : following[place] + 2]
            others = levels.rows[first:last]
            distances = stable_sum(((ranks[:, others] - ranks[:, rows[place]][:, None]) ** 2).T)
            ends[moving, place] = self.known[moving, others[np.argmin(distances)]]
        return ends


def has_gaps(column: Column) -> bool:
    """Whether values are possible between those of a column: not between whole numbers without gaps, nor of two."""
    return len(column.levels) >= FEWEST_LEVELS and _step(column) == 0


def _step(column: Column) -> float:
    """The step of whole numbers, or of a column that has most multiples of it between its ends; otherwise 0."""
    if column.step == 1 or column.step == 0:
        return column.step
    places = (column.high - column.low) / column.step
    return column.coarse_step if len(column.levels) > places / 2 else 0.0
