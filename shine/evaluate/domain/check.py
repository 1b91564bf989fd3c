"""Whether a formula has a plausible value wherever fresh rows of the same kind may lie.

A formula can fit all rows and still have a pole between two of them, or take the logarithm of a negative number just
beyond the last row. Interval arithmetic checks all points at once (Keijzer 2003): first in one box around the
neighbourhood of the data, which most formulas pass; then along segments through the neighbourhood. Doubtful segments
are halved until their bounds are clear or the values next to a pole reveal it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain.intervals import INTERVALS, Interval
from shine.evaluate.domain.neighbourhood import SPARSE, Column, LineSegments, Reach, neighbourhood
from shine.lang.forms.interpretation import computed
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import evaluate


def bounds(tree: Tree, boxes: Mapping[str, Interval]) -> Interval:
    """Bounds of a formula's value.

    Parameters
    ----------
    tree : Tree
    boxes : mapping of str to Interval
        Bounds of each parameter that the formula reads, in every box.

    Returns
    -------
    Interval
        The bounds are correct, but not always tight: two uses of one value count as two values, unless they are the
        factors of a product. Small boxes have tighter bounds.
    """
    with np.errstate(all="ignore"):
        return _Bounds().run(tree, boxes)


class _Bounds:
    """Bounds of a tree, bottom-up. Equal applications give the same object, so that squares are recognized."""

    def __init__(self) -> None:
        self.functions: Mapping[str, Primitive] = {}
        self.known: dict[tuple[str, tuple[int, ...]], Interval] = {}
        # Intervals are compared by identity, so they must not be freed.
        self.kept: list[tuple[Interval, ...]] = []
        self.constants: dict[float, Interval] = {}

    def run(self, tree: Tree, arguments: Mapping[str, Interval]) -> Interval:
        caller, self.functions = self.functions, tree.functions
        result: Interval = computed(tree, dict(arguments), self._constant, self._apply)
        self.functions = caller
        return result

    def _apply(self, name: str, *arguments: Interval) -> Interval:
        key = name, tuple(map(id, arguments))
        if key not in self.known:
            self.kept.append(arguments)
            self.known[key] = self._applied(name, arguments)
        return self.known[key]

    def _applied(self, name: str, arguments: Sequence[Interval]) -> Interval:
        if name in INTERVALS:
            return INTERVALS[name](*arguments)
        definition = self.functions[name].definition
        assert definition is not None, f"the basic primitive {name!r} lacks a row in INTERVALS"
        return self.run(definition, dict(zip(definition.parameters, arguments, strict=True)))

    def _constant(self, value: float) -> Interval:
        number = np.asarray(value)
        return self.constants.setdefault(value, Interval(number, number, np.asarray(False)))


FAR = 100.0
"""Largest excursion of a formula between two rows, beyond its values at both rows. The unit is the range of its values
on the known rows, or the range of the target if that is larger."""

_HALVINGS = 26
"""Halvings of segments: poles are found down to about 2**-_HALVINGS of their length."""

_ORDERED_ROWS = 10_000
"""Most rows that are sorted: of more rows, any order shows nearly the same."""


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
    _known: dict[tuple[Tree, Reach], bool] = field(default_factory=dict)

    def defines(self, tree: Tree, reach: Reach = "recombined") -> bool:
        """Whether a formula seems to have plausible values throughout the neighbourhood.

        Parameters
        ----------
        tree : Tree
            A formula whose parameters are features of the data set.
        reach : {"between", "beyond", "recombined"}
            Region of fresh rows (see `shine.evaluate.domain.neighbourhood.neighbourhood`).

        Returns
        -------
        bool
            False if the formula is undefined or infinite at some point, or far from the values that it and the target
            have on the known rows.
        """
        key = (tree, reach)
        if key not in self._known:
            with np.errstate(all="ignore"):
                self._known[key] = self._examined(tree, reach)
        return self._known[key]

    def sparse_levels(self, tree: Tree) -> dict[str, int]:
        """Features of a formula with few values, and how many: no row tests what it does between them."""
        columns = {name: self._column(name) for name in tree.used_parameters}
        found = {name: column.distinct for name, column in columns.items() if column.few and column.has_gaps}
        return {name: count for name, count in found.items() if count <= SPARSE}

    def _examined(self, tree: Tree, reach: Reach) -> bool:
        used = tree.used_parameters
        if not used:
            return bool(np.isfinite(evaluate(tree, [np.zeros(1)] * len(tree.parameters), np.float64, COMPILED)).all())
        return _Course(tree, self._along(used, reach), self._target_range).is_plausible()

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
            self._columns[name] = Column.of(self.dataset.columns[self.dataset.features.index(name)][self._order])
        return self._columns[name]

    @cached_property
    def _order(self) -> Indices | slice:
        """The rows of positive weight, unless they are many in an order that depends on their values alone: the same
        rows in another order have the same neighbourhood."""
        columns, weights = self.dataset.columns, self.dataset.weights
        if weights is None and self.dataset.n_rows > _ORDERED_ROWS:
            return slice(None)
        rows = np.arange(self.dataset.n_rows) if weights is None else np.flatnonzero(weights > 0)
        return rows[np.lexsort(columns[:, rows])] if len(rows) <= _ORDERED_ROWS else rows


@dataclass(frozen=True, eq=False)
class _Course:
    """A formula along segments."""

    tree: Tree
    segments: LineSegments
    target_range: float

    def is_plausible(self) -> bool:
        every, count = self.segments.every, self.segments.known.shape[1]
        values = _values(self.tree, every)
        if not np.isfinite(values).all():
            return False
        own, ends = values[:count], values[-self.segments.ends.shape[1] :]
        # Where columns have few values, the segments do not start at the known rows themselves.
        centre, spread = float(np.median(own)), max(float(np.ptp(own)), self.target_range)
        distances = np.abs(ends - centre)
        # At the ends of the neighbourhood, formulas may rightly grow fast.
        if (distances > 1e3 * spread).any():
            return False
        box = _bounds_within(self.tree, every[:, count:].min(axis=1), every[:, count:].max(axis=1))
        if not _in_doubt(box, centre - FAR * spread, centre + FAR * spread).any():
            return True
        return self._is_plausible_between(centre, FAR * np.maximum(distances, spread))

    def _is_plausible_between(self, centre: float, reaches: Floats) -> bool:
        """Whether the values along the segments stay within the distances `reaches` of the centre."""
        segments = np.arange(len(reaches))
        first, last = np.zeros(len(reaches)), np.ones(len(reaches))
        low, high = centre - reaches, centre + reaches
        for _ in range(_HALVINGS):
            begin, end = self.segments.at(segments, first), self.segments.at(segments, last)
            box = _bounds_within(self.tree, np.minimum(begin, end), np.maximum(begin, end))
            doubtful = np.flatnonzero(np.broadcast_to(_in_doubt(box, low[segments], high[segments]), segments.shape))
            if not len(doubtful):
                return True
            doubtful = doubtful[:: len(doubtful) // 2048 + 1]  # most pieces of segments that are checked further
            segments, first, last = segments[doubtful], first[doubtful], last[doubtful]
            # Share of a piece before the cut. The middle of symmetric data may lie exactly on a removable singularity.
            cuts = first + 0.4877 * (last - first)
            values = _values(self.tree, self.segments.at(segments, cuts))
            if not (np.abs(values - centre) <= reaches[segments]).all():
                return False
            segments = np.concatenate([segments, segments])
            first, last = np.concatenate([first, cuts]), np.concatenate([cuts, last])
        return True


def _bounds_within(tree: Tree, low: Floats, high: Floats) -> Interval:
    """Bounds of a formula between two ends of each column that it reads."""
    return bounds(tree, {name: Interval.of(a, b) for name, a, b in zip(tree.used_parameters, low, high, strict=True)})


def _values(tree: Tree, points: Floats) -> Floats:
    """Values of a formula at points in the columns that it reads."""
    by_name = dict(zip(tree.used_parameters, points, strict=True))
    nothing = np.zeros(points.shape[1])
    columns = [by_name.get(name, nothing) for name in tree.parameters]
    return evaluate(tree, columns, np.float64, COMPILED)


def _in_doubt(box: Interval, low: Floats | float, high: Floats | float) -> Mask:
    return np.asarray(box.doubtful | ~(box.lower >= low) | ~(box.upper <= high))
