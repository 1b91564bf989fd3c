"""What a formula does between the values of a column that has few: no row tests it there.

A sine with fewer than two values a period, a pole or a needle gives each value of the column any number, so that such a
formula is a table in disguise, and wrong everywhere else. Its way from one value to the next goes up and down much
further than that of a curve through the nearest values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Mask
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.domain.neighbourhood import FEWEST_LEVELS, SPARSE, Column

FEWEST_ROWS, MOST_ROWS, MOST_NUMBERS = 2, 16, 1 << 16
"""Rows whose other columns the points have: as many as leave that many numbers in the points of a wide table."""

NEAREST = 4
"""Values that the curve between two of them goes through: two on either side, where there are."""

SHARES = np.array([0.07, 0.23, 0.31, 0.5, 0.62, 0.71, 0.88])
"""Places between two values, as shares of their distance: no short period has all of them at one phase."""

DETOUR = 0.5
"""Largest mean square of half the detours that a formula makes between the values, as a share of the variance at them.
It is at most 0.2 for powers, exponentials, kinks and sines of three values a period, and at least 1.9 for needles; of
sines of fewer than two values a period, 95 % have more than 5."""

ALIKE = 0.9
"""Least share of the squared distances that has the same course in all rows: where other columns move it, rows test
it."""

VISIBLE = 1e-4
"""Least such square that matters, as a share of the target's variance."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The values of one column that has few, and the places between them.

    Parameters
    ----------
    at : int
        Number of the column.
    values : ndarray of shape (n_values,)
    places : ndarray of shape (n_places,)
    curve : ndarray of shape (n_places, n_values)
        Weights of the values in the curve through them at the places.
    """

    at: int
    values: Floats
    places: Floats
    curve: Floats

    @classmethod
    def of(cls, rows: Dataset, groups: str | None = None) -> tuple[Levels, ...]:
        """Those of each column that has few, but for a column of groups."""
        found = []
        for at, values in enumerate(rows.columns):
            column = Column.of(values)
            if rows.features[at] != groups and column.few and FEWEST_LEVELS <= column.distinct <= SPARSE:
                own = np.unique(values)
                places = (own[:-1, None] + np.multiply.outer(np.diff(own), SHARES)).reshape(-1)
                found.append(cls(at, own, places, _curve(own, places)))
        return tuple(found)

    def points(self, rows: Dataset) -> Dataset:
        """Some rows with all values of the column, then the same rows with the places between."""
        count = MOST_NUMBERS // (len(rows.columns) * sum(self.curve.shape))
        some = rows.columns[:, :: -(-rows.n_rows // min(max(count, FEWEST_ROWS), MOST_ROWS))]
        parts = []
        for own in (self.values, self.places):
            part = np.repeat(some[:, :, None], len(own), axis=2)
            part[self.at] = own
            parts.append(part.reshape(len(some), -1))
        points = np.concatenate(parts, axis=1)
        return Dataset(points, np.zeros(points.shape[1]), None, rows.features)

    def test(self, values: Floats, least: float = 0.0) -> Mask:
        """Whether formulas do between the values what rows test.

        Parameters
        ----------
        values : ndarray of shape (n_formulas, n_points)
            Their values at the points.
        least : float
            Mean square of half the detours that do not matter.

        Returns
        -------
        ndarray of shape (n_formulas,), bool
        """
        cut = values.shape[1] * len(self.values) // sum(self.curve.shape)
        own = values[:, :cut].reshape(len(values), -1, len(self.values))
        between = values[:, cut:].reshape(*own.shape[:2], -1)
        with np.errstate(all="ignore"):
            through = (own[:, :, None, :] * self.curve).sum(axis=3)
            detours = np.maximum(_ways(own, between) - _ways(own, through), 0) / 2
            variance = ((own - own.mean(axis=2, keepdims=True)) ** 2).mean(axis=(1, 2))
            far = ~((detours**2).mean(axis=(1, 2)) <= np.maximum(DETOUR * variance, least))
            return ~(far & _is_alike(between - through))


def visible_square(rows: Dataset) -> float:
    """Mean square of half the detours that does not matter (see `VISIBLE`)."""
    weights = rows.row_weights / stable_sum(rows.row_weights)
    return VISIBLE * float(stable_sum(weights * (rows.target - stable_sum(weights * rows.target)) ** 2))


def _ways(own: Floats, between: Floats) -> Floats:
    """Lengths of the ways from each value to the next, up and down; shape (n_formulas, n_rows, n_values - 1)."""
    places = between.reshape(*own.shape[:2], -1, len(SHARES))
    ways: Floats = np.abs(np.diff(np.concatenate([own[:, :, :-1, None], places, own[:, :, 1:, None]], axis=3))).sum(
        axis=3
    )
    return ways


def _is_alike(stray: Floats) -> Mask:
    """Whether distances, of shape (n_formulas, n_rows, n_between), have the course of the largest ones in all rows."""
    sizes = (stray**2).sum(axis=2)
    largest = stray[np.arange(len(stray)), sizes.argmax(axis=1)]
    along = ((stray * largest[:, None, :]).sum(axis=2) ** 2).sum(axis=1)
    # Where a value is not finite, there is a pole.
    return ~(along < ALIKE * sizes.max(axis=1) * sizes.sum(axis=1))


def _curve(levels: Floats, places: Floats) -> Floats:
    """Weights of levels in the polynomials through the nearest of them, at places between."""
    weights, count = np.zeros((len(places), len(levels))), min(NEAREST, len(levels))
    for at, place in enumerate(places.tolist()):
        first = min(max(int(np.searchsorted(levels, place)) - count // 2, 0), len(levels) - count)
        near = levels[first : first + count]
        for one, level in enumerate(near.tolist()):
            others = np.delete(near, one)
            weights[at, first + one] = np.prod((place - others) / (level - others))
    return weights
