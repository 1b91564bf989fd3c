"""Plausible rows: mixtures of known rows that are near each other, as fresh rows of the same kind might be.

A formula may be tame on every known row and enormous beside them: `exp(exp(cos(a)*cos(b))**2)` at the few whole numbers
a and b that make both cosines large. A mixture takes columns from another row that is near in all others, or values in
between. Each column stays within its range and keeps its kind: few values, multiples of a step, the order with other
columns. Columns that rise and fall together move together, and a pair of values far from all known pairs is not
plausible: columns along a curve stay near the curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.evaluate.domain.neighbourhood import NEARER, TOGETHER, Column, linked, multiples, ordered, ranks_of

KNOWN, POINTS = 512, 2048
"""Most known rows that are mixed, and number of plausible rows after each step."""

STEPS = 3
"""Steps from a known row to a plausible one: each moves one column, or columns that move together."""

NEAR = 5
"""Known rows near a point, about: its partner is the nearest of every fifth row, drawn at random."""

NEAREST, TRIES = 16, 8
"""Points nearest to what is looked for, by each guide, and how often each of them takes a step."""

MISSED = 3.0
"""A pair of values is not plausible if so many known pairs would be near it if the columns were independent, and there
is none: by chance that happens in 5 % of all data sets."""

RARE = 0.1
"""Neither is a pair of extreme values that so few rows would have, in as many rows as are known, if the columns were
independent: heavy tails of two columns seldom meet."""

_SEED = 1


Probe = Callable[[Floats], tuple[bool, Floats]]
"""Points, shape (n_columns, n_points) -> whether some of them are what is looked for; and guides, shape (n_guides,
n_points), each least at the points that are nearest to that."""


@dataclass(frozen=True, eq=False)
class PlausibleRows:
    """Plausible rows near the known ones.

    Parameters
    ----------
    rows : _Rows
        The rows that they are mixed from.
    steps : tuple of ndarray of shape (2, n_columns, n_points)
        Known rows, and the points after each step from them: values and ranks.
    """

    rows: _Rows
    steps: tuple[Floats, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Self:
        """Plausible rows of at least one column."""
        rng = np.random.default_rng(_SEED)
        drawn = rng.permutation(len(columns[0].values))[:KNOWN].tolist()
        chosen = list(dict.fromkeys([*(row for column in columns for row in column.ends), *drawn]))[:KNOWN]
        rows = _Rows.of(columns, np.array([column.values[chosen] for column in columns]), rng)
        steps = [np.array([rows.known, rows.ranks])[..., np.resize(np.arange(len(chosen)), POINTS)]]
        for _ in range(STEPS):
            steps.append(rows.stepped(steps[-1], rng))
        return cls(rows, tuple(steps))

    def any(self, probe: Probe) -> bool:
        """Whether some plausible row is what is looked for.

        Among the points after each step, those nearest to it by some guide take the next step several times.
        """
        guided = []
        for points in self.steps:
            found, guides = probe(points[0])
            if found:
                return True
            guided.append((points, guides))
        rng = np.random.default_rng(_SEED)
        points, guides = guided[1]
        for others in guided[2:]:
            nearest = np.unique(np.argsort(guides, axis=1, kind="stable")[:, :NEAREST])
            points = self.rows.stepped(np.repeat(points[..., nearest], TRIES, axis=-1), rng)
            found, guides = probe(points[0])
            if found:
                return True
            both = zip((points, guides), others, strict=True)
            points, guides = (np.concatenate(each, axis=-1) for each in both)
        return False


@dataclass(frozen=True, eq=False)
class _Rows:
    """Known rows, and how their columns may be combined.

    Parameters
    ----------
    known, ranks : ndarray of shape (n_columns, n_rows)
        Values, and their ranks from 0 to 1: distances of ranks do not depend on tails.
    few : ndarray of shape (n_columns, 1), bool
    steps : ndarray of shape (n_columns, 1)
    groups : list of list of int
        Columns that move together.
    spread : ndarray of shape (n_columns, n_rows)
        Ranks of which no two are equal.
    sorted : ndarray of shape (n_columns, n_rows)
        The rows of each column in ascending order.
    gaps : list of (int, int, float)
        Pairs of columns of which the first is smaller, and how much it has to be.
    """

    known: Floats
    ranks: Floats
    few: Mask
    steps: Floats
    groups: list[list[int]]
    spread: Floats
    sorted: Indices
    gaps: list[tuple[int, int, float]]

    @classmethod
    def of(cls, columns: Sequence[Column], known: Floats, rng: np.random.Generator) -> Self:
        ranks, ties = ranks_of(known, known), rng.random(known.shape)
        order = np.lexsort((ties, known), axis=1)
        return cls(
            known,
            ranks,
            np.array([[column.few] for column in columns]),
            np.array([[column.coarse_step] for column in columns]),
            linked(ranks, TOGETHER),
            (np.argsort(order, axis=1) + 0.5) / known.shape[1],
            order,
            [(a, b, NEARER * float((known[b] - known[a]).min())) for a, b in ordered(columns, known, 1.0)],
        )

    def stepped(self, points: Floats, rng: np.random.Generator) -> Floats:
        """Points after a step: each moves one column, or columns that move together, towards a near row."""
        count, known = points.shape[-1], self.known.shape[1]
        moving = rng.integers(0, len(self.groups), count)
        near = rng.integers(0, known, (count, -(-known // NEAR)))
        share = np.where(rng.random(count) < 0.5, 1.0, rng.random(count))
        moved = points.copy()
        for number, group in enumerate(self.groups):
            own = np.flatnonzero(moving == number)
            moved[..., own] = self.moved(points[..., own], group, near[own], share[own])
        return moved

    def moved(self, points: Floats, group: list[int], candidates: Indices, share: Floats) -> Floats:
        """Points with some columns moved a share of the way to the nearest candidate, or as they are."""
        others = [at for at in range(len(self.known)) if at not in group]
        donors = self._nearest(points[1], others or group, candidates)
        # Columns of few values have no values in between.
        share = np.where(self.few[group], 1.0, share)
        ends = self.known[group][:, donors]
        between = multiples((1 - share) * points[0, group] + share * ends, self.steps[group], np.rint)
        values, ranks = moved = points.copy()
        values[group] = np.where(share == 1, ends, between)
        ranks[group] = ranks_of(self.known[group], values[group])
        fine = self._occur(ranks, group, others)
        for small, large, gap in self.gaps:
            fine &= values[large] - values[small] >= gap
        return np.where(fine, moved, points)

    def _nearest(self, ranks: Floats, columns: list[int], candidates: Indices) -> Indices:
        """The nearest of the candidates of each point in some columns, shape (n_points,)."""
        distances = np.zeros(candidates.shape)
        for column in columns:
            # In place: fresh memory for so many numbers takes as long as the sums.
            apart = self.ranks[column].take(candidates)
            apart -= ranks[column][:, None]
            apart *= apart
            distances += apart
        return candidates[np.arange(len(candidates)), distances.argmin(axis=1)]

    def _occur(self, ranks: Floats, group: list[int], others: list[int]) -> Mask:
        """Whether pairs of values of moved columns and others may occur (see `MISSED` and `RARE`)."""
        found, count = np.ones(ranks.shape[1], np.bool_), self.known.shape[1]
        outer = 2 * np.minimum(ranks, 1 - ranks)
        reach = math.sqrt(MISSED / count) / 2
        most = np.arange(math.ceil(2 * reach * count) + 2)[:, None]
        for one in group:
            # Of the rows in the order of a column, those that may be near are neighbours.
            first = np.floor((ranks[one] - reach) * count).astype(np.int64)
            rows = self.sorted[one].take(first + most, mode="clip")
            near = np.abs(ranks[one] - self.spread[one].take(rows)) <= reach
            for other in others:
                both = near & (np.abs(ranks[other] - self.spread[other].take(rows)) <= reach)
                found &= both.any(axis=0) & (count * outer[one] * outer[other] >= RARE)
        return found
