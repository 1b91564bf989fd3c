"""Whether a formula has a plausible value wherever fresh rows of the same kind may lie.

A formula can fit all rows and still have a pole between two of them, or take the logarithm of a negative number just
beyond the last row. Interval arithmetic checks all points at once (Keijzer 2003): first in one box around the
neighbourhood of the data, which most formulas pass; then along segments through the neighbourhood. Doubtful segments
are halved until their bounds are clear or the values next to a pole reveal it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shine.arrays import COMPILED
from shine.data.dataset import Dataset
from shine.domain.bounds import bounds
from shine.domain.interval import Interval
from shine.domain.neighbourhood import Column, LineSegments, Reach, neighbourhood
from shine.lang.interpret import evaluate
from shine.lang.lazy import cached_property
from shine.lang.tree import Tree
from shine.typing import Floats, Mask

FAR = 100.0
"""How far a formula may move away between two rows, beyond its values at both rows. The unit is the range of its values
on the known rows, or the range of the target if that is larger."""

TOO_FAR = 1e3
"""The same for the ends of the neighbourhood, where formulas may rightly grow fast."""

STEADY = 2.0
"""The same for formulas that are steady between the rows."""

_HALVINGS = 26
"""How often segments are halved: poles are found down to about 2**-_HALVINGS of their length."""

_MOST_PIECES = 2048
"""Most pieces of segments that are checked further."""

_CUT = 0.4877
"""Where pieces are cut. The middle of symmetric data may lie exactly on a removable singularity."""


@dataclass(frozen=True, eq=False)
class Domain:
    """The neighbourhood of a data set's rows.

    Parameters
    ----------
    dataset : Dataset
        Rows of weight 0 are ignored.
    """

    dataset: Dataset
    _columns: dict[str, Column] = field(default_factory=dict)
    _segments: dict[tuple[tuple[str, ...], Reach], LineSegments] = field(default_factory=dict)
    _known: dict[tuple[Tree, Reach, bool], bool] = field(default_factory=dict)

    def defines(self, tree: Tree, reach: Reach = "recombined") -> bool:
        """Whether a formula seems to have plausible values throughout the neighbourhood.

        Parameters
        ----------
        tree : Tree
            A formula whose parameters are features of the data set.
        reach : {"between", "beyond", "recombined"}
            Where fresh rows may lie (see `shine.domain.neighbourhood.neighbourhood`).

        Returns
        -------
        bool
            False if the formula is undefined or infinite at some point, or far from the values that it and the target
            have on the known rows.
        """
        return self._is_plausible(tree, reach, steady=False)

    def is_steady(self, tree: Tree) -> bool:
        """Whether a formula surely stays near its values on the rows everywhere between them.

        Parameters
        ----------
        tree : Tree
            A formula whose parameters are features of the data set.

        Returns
        -------
        bool
            False if there is a pole or a needle, or if that is in doubt, be it where columns of few values or whole
            numbers have no values.
        """
        return self._is_plausible(tree, "within", steady=True)

    def _is_plausible(self, tree: Tree, reach: Reach, steady: bool) -> bool:
        key = (tree, reach, steady)
        if key not in self._known:
            with np.errstate(all="ignore"):
                self._known[key] = self._examined(tree, reach, steady)
        return self._known[key]

    def _examined(self, tree: Tree, reach: Reach, steady: bool) -> bool:
        tokens = set(tree.tokens[1:])
        used = tuple(name for name in tree.parameters if ("name", name) in tokens)
        if not used:
            return bool(np.isfinite(evaluate(tree, [np.zeros(1)] * len(tree.parameters), np.float64, COMPILED)).all())
        return _Course(tree, used, self._along(used, reach), self._target_range, steady).is_plausible()

    @cached_property
    def _target_range(self) -> float:
        target = self.dataset.target
        return float(target.max() - target.min())

    def _along(self, used: tuple[str, ...], reach: Reach) -> LineSegments:
        """Segments in the columns that a formula reads; the other columns have no influence."""
        key = (used, reach)
        if key not in self._segments:
            self._segments[key] = neighbourhood([self._column(name) for name in used], reach)
        return self._segments[key]

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            values, weights = self.dataset.columns[self.dataset.features.index(name)], self.dataset.weights
            self._columns[name] = Column.of(values if weights is None else values[weights > 0])
        return self._columns[name]


@dataclass(frozen=True, eq=False)
class _Course:
    """A formula along segments."""

    tree: Tree
    used: tuple[str, ...]
    segments: LineSegments
    target_range: float
    steady: bool

    def is_plausible(self) -> bool:
        starts, ends = self._values(self.segments.starts), self._values(self.segments.ends)
        if not (np.isfinite(starts).all() and np.isfinite(ends).all()):
            return False
        centre, spread = float(np.median(starts)), max(float(np.ptp(starts)), self.target_range)
        distances = np.abs(ends - centre)
        if (distances > TOO_FAR * spread).any():
            return False
        low = np.minimum(self.segments.starts.min(axis=1), self.segments.ends.min(axis=1))
        high = np.maximum(self.segments.starts.max(axis=1), self.segments.ends.max(axis=1))
        far = STEADY if self.steady else FAR
        if not _in_doubt(self._bounds(low, high), centre, far * spread).any():
            return True
        return self._is_plausible_between(centre, far * np.maximum(distances, spread))

    def _is_plausible_between(self, centre: float, reaches: Floats) -> bool:
        """Whether the values along the segments stay within the distances `reaches` of the centre."""
        segments = np.arange(len(reaches))
        first, last = np.zeros(len(reaches)), np.ones(len(reaches))
        for _ in range(_HALVINGS):
            begin, end = self.segments.at(segments, first), self.segments.at(segments, last)
            box = self._bounds(np.minimum(begin, end), np.maximum(begin, end))
            doubtful = np.flatnonzero(np.broadcast_to(_in_doubt(box, centre, reaches[segments]), segments.shape))
            if not len(doubtful):
                return True
            doubtful = doubtful[:: len(doubtful) // _MOST_PIECES + 1]
            segments, first, last = segments[doubtful], first[doubtful], last[doubtful]
            cuts = first + _CUT * (last - first)
            values = self._values(self.segments.at(segments, cuts))
            if not (np.abs(values - centre) <= reaches[segments]).all():
                return False
            segments = np.concatenate([segments, segments])
            first, last = np.concatenate([first, cuts]), np.concatenate([cuts, last])
        return not self.steady

    def _bounds(self, low: Floats, high: Floats) -> Interval:
        boxes = {name: Interval.of(a, b) for name, a, b in zip(self.used, low, high, strict=True)}
        return bounds(self.tree, boxes)

    def _values(self, points: Floats) -> Floats:
        by_name = dict(zip(self.used, points, strict=True))
        nothing = np.zeros(points.shape[1])
        columns = [by_name.get(name, nothing) for name in self.tree.parameters]
        return evaluate(self.tree, columns, np.float64, COMPILED)


def _in_doubt(box: Interval, centre: float, reach: Floats | float) -> Mask:
    return np.asarray(box.doubtful | ~(box.lower >= centre - reach) | ~(box.upper <= centre + reach))
