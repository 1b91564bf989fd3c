"""Behaviour of a formula: dimensions, limits, monotonicity, dependence on features, poles.

All is said of the rows that are given: features have their range there, and their median where they are held still.
What interval arithmetic proves is called proved; all else is what points show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.errors import ShineError, placed
from shine.base.lazy import cached_property
from shine.base.typing import Floats, Mask
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.evaluate.domain.check import bounds
from shine.evaluate.domain.intervals import Interval
from shine.evaluate.kernels.kernel import Kernel
from shine.lang.derivative import gradient
from shine.lang.forms.names import listed, shown
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.search.constraints.dimensional_analysis import DimensionalAnalysis
from shine.search.constraints.units import parse_unit

CELLS = 512
"""Cells of a feature's range, and as much on both sides, in which poles are looked for."""

SAME = 0.01
"""Difference of exponents that count as one power."""


@dataclass(frozen=True, eq=False)
class Behaviour:
    """A formula on some rows.

    Parameters
    ----------
    tree : Tree
    columns : mapping of str to ndarray of shape (n_rows,), float64
        Every feature that the formula uses.
    """

    tree: Tree
    columns: Mapping[str, Floats]

    @cached_property
    def used(self) -> tuple[str, ...]:
        """The features that the formula uses."""
        return tuple(self.tree.used_parameters)

    @cached_property
    def medians(self) -> dict[str, float]:
        """The median of each feature."""
        return {name: float(np.median(self.columns[name])) for name in self.used}

    @cached_property
    def value(self) -> Callable[[Mapping[str, Floats]], Floats]:
        """The formula, of columns by name."""
        return self._compiled(self.tree)

    @cached_property
    def slopes(self) -> dict[str, Tree]:
        """Derivative by each feature; empty if the formula has none."""
        try:
            return dict(zip(self.used, gradient(self.tree, self.used), strict=True))
        except (ShineError, ValueError):
            return {}

    def _compiled(self, tree: Tree) -> Callable[[Mapping[str, Floats]], Floats]:
        kernel = Kernel(tree, opt_level="O0")

        def value(columns: Mapping[str, Floats]) -> Floats:
            count = max((np.size(each) for each in columns.values()), default=1)
            given = [np.broadcast_to(columns.get(name, np.zeros(1)), count).copy() for name in tree.parameters]
            with np.errstate(all="ignore"):
                found: Floats = np.broadcast_to(np.asarray(kernel(*given), np.float64), count)
            return found

        return value

    def along(self, name: str, points: Floats) -> Floats:
        """Values at points of a feature, the others at their medians."""
        return self.value({**{each: np.array([median]) for each, median in self.medians.items()}, name: points})

    def range_of(self, name: str) -> tuple[float, float]:
        """Least and greatest value of a feature."""
        return float(self.columns[name].min()), float(self.columns[name].max())

    def direction(self, name: str) -> str:
        """Whether the formula rises or falls with a feature."""
        if name not in self.slopes:
            return "has no derivative"
        slope = self.slopes[name]
        for sign, told in ((1, "rises"), (-1, "falls")):
            if self._keeps_sign(slope, sign):
                return f"{told} everywhere in the box of the rows (proved)"
        values = self._compiled(slope)(self.columns)
        up, down = float((values > 0).mean()), float((values < 0).mean())
        if up == 1 or down == 1:
            return f"{'rises' if up == 1 else 'falls'} at every row (not proved between them)"
        return f"rises at {up:.0%} of the rows, falls at {down:.0%}"

    def _keeps_sign(self, slope: Tree, sign: int) -> bool:
        """Whether a derivative surely has a sign, or is zero, in the box around the rows."""
        low, high = np.array([self.range_of(name) for name in self.used]).T
        boxes_low, boxes_high = low[:, None], high[:, None]
        while boxes_low.shape[1]:
            box = {name: Interval.of(a, b) for name, a, b in zip(self.used, boxes_low, boxes_high, strict=True)}
            found = bounds(slope, box)
            least, most = sign * found.lower, sign * found.upper
            surely = ~found.doubtful & (np.minimum(least, most) >= 0)
            if (~found.doubtful & (np.maximum(least, most) < 0)).any():
                return False
            open_boxes = np.flatnonzero(~np.broadcast_to(surely, boxes_low.shape[1]))
            if 2 * len(open_boxes) > 4096:  # most boxes that a proof looks at
                return False
            a, b = boxes_low[:, open_boxes], boxes_high[:, open_boxes]
            widths = (b - a) / np.where(high > low, high - low, 1.0)[:, None]
            if not len(open_boxes):
                return True
            if (widths.max(axis=0) < 1e-3).any():
                return False  # a zero of the derivative: smaller boxes would not decide
            longest, at = widths.argmax(axis=0), np.arange(len(open_boxes))
            middle = a[longest, at] + (b[longest, at] - a[longest, at]) / 2
            left_end, right_begin = b.copy(), a.copy()
            left_end[longest, at] = right_begin[longest, at] = middle
            boxes_low, boxes_high = np.hstack([a, right_begin]), np.hstack([left_end, b])
        return True

    def sensitivity(self, name: str) -> dict[str, Any]:
        """Change of the formula with a feature."""
        low, high = np.quantile(self.columns[name], [0.05, 0.95])
        first, last = self.along(name, np.array([low, high])).tolist()
        told: dict[str, Any] = {"change_from_5_to_95_percent": last - first}
        here = float(self.along(name, np.array([self.medians[name]]))[0])
        if name in self.slopes and here:
            slope = self._compiled(self.slopes[name])({each: np.array([x]) for each, x in self.medians.items()})
            told["elasticity_at_medians"] = float(slope[0]) * self.medians[name] / here
        return told

    def limits(self, name: str) -> dict[str, str]:
        """Limits of the formula as a feature grows, falls or goes to zero."""
        low, high = self.range_of(name)
        size = max(abs(low), abs(high)) or 1.0
        # Powers of ten beyond the range, or towards zero, at which limits are looked for
        powers: Floats = np.array([10.0**power for power in range(1, 12 + 1)])
        towards: dict[str, Floats] = {"+infinity": size * powers, "0 from above": size / powers}
        if low < 0:
            towards |= {"-infinity": -size * powers, "0 from below": -size / powers}
        return {end: limit_of(self.along(name, points), np.abs(points)) for end, points in towards.items()}

    def poles(self, name: str) -> list[str]:
        """Poles and undefined stretches of the formula along a feature, the others at their medians."""
        low, high = self.range_of(name)
        width = (high - low) or abs(low) or 1.0
        # An odd number of cells, and ends that are no round numbers: a pole is in a cell, not between two.
        edges = np.linspace(low - 1.0037 * width, high + 1.0071 * width, CELLS)
        values = self.along(name, edges)
        gaps = [f"no value from {edges[begin]:.4g} to {edges[end]:.4g}" for begin, end in _runs(~np.isfinite(values))]
        both = np.isfinite(values[:-1]) & np.isfinite(values[1:])
        a, b = edges[:-1][both], edges[1:][both]
        for _ in range(40):  # halvings of a cell that may hold a pole
            held = {each: Interval.of(x, x) for each, x in self.medians.items()}
            found = bounds(self.tree, {**held, name: Interval.of(a, b)})
            doubtful = np.flatnonzero(
                np.broadcast_to(found.doubtful | ~np.isfinite(found.upper - found.lower), a.shape)
            )
            if not len(doubtful) or len(doubtful) > CELLS:
                break
            a, b = a[doubtful], b[doubtful]
            middle = a + (b - a) / 2
            a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        else:
            # Halving leaves rounding errors of the edges: a place that near to zero is zero.
            places = np.where(np.abs(a + b) < width * 1e-12, 0.0, (a + b) / 2)
            gaps += [self._pole(name, x) for x in _apart(np.sort(places), width * 1e-6)]
        return gaps

    def _pole(self, name: str, x: float) -> str:
        """Values around a point where interval arithmetic bounds nothing."""
        near, far = (self.along(name, x + np.array([-1, 1]) * step * max(abs(x), 1e-6)) for step in (1e-7, 1e-5))
        if (np.abs(near) > 3 * np.abs(far)).any():
            return f"pole at {x:.6g}"
        return f"undefined at {x:.6g}, with values around it"


def limit_of(values: Floats, distances: Floats) -> str:
    """Limit of values at ever further points.

    Parameters
    ----------
    values : ndarray of shape (n_points,)
    distances : ndarray of shape (n_points,)
        Of the points from zero, growing or shrinking by factors of ten.

    Returns
    -------
    str
        By differences that shrink like a geometric series (Aitken), or by the power with which the values grow.
    """
    if np.isnan(values[-3:]).any():
        return "no value"
    sign = "-" if values[-1] < 0 else ""
    with np.errstate(all="ignore"):
        powers = np.diff(np.log10(np.abs(values))) / np.diff(np.log10(distances))
        steps = np.diff(values)
        ratios = np.abs(steps[1:] / steps[:-1])
    power = f"like the power {round(float(powers[-1]), 2):g} of the distance"
    is_power = bool(np.isfinite(powers[-3:]).all() and np.ptp(powers[-3:]) < SAME)
    if np.isinf(values[-1]):
        finite = powers[np.isfinite(powers)][-3:]
        return (
            f"{sign}infinity" if len(finite) == 3 and np.ptp(finite) < SAME else f"{sign}infinity, faster than powers"
        )
    if abs(steps[-1]) <= 1e-9 * abs(values[-1]):
        return f"{values[-1]:.6g}"
    if values[-1] == 0:
        return "0, faster than powers"
    # Ratio of differences, from one power of ten to the next, below which values converge.
    if (ratios[-3:] < 0.9).all():
        rest = steps[-1] * ratios[-1] / (1 - ratios[-1])
        limit = float(values[-1] + rest)
        if abs(limit) > 1e-3 * abs(values[-1]):
            return f"{limit:.6g}"
        return f"0, {power}" if is_power else "0"
    if (np.diff(np.abs(values[-4:])) > 0).all():
        if ratios[-1] < 1.05:  # the ratio below which values that grow do so like a logarithm, whose ratio is 1
            return f"{sign}infinity, slower than powers"
        return f"{sign}infinity, {power if is_power else 'faster than powers'}"
    return "no limit is seen"


def dimensions(tree: Tree, units: Mapping[str, str]) -> dict[str, Any]:
    """Whether a formula is consistent in its units: those of features by name, and that of ``target`` if it is known.

    A `ValueError` if a unit cannot be read.
    """
    read = {}
    for name, unit in units.items():
        with placed(f"units: {shown(name)}", ValueError):
            read[name] = parse_unit(unit)
    unknown = [name for name in tree.used_parameters if name not in units]
    if unknown:
        return {"verdict": f"not known without the units of {listed(unknown)}"}
    known = PrimitiveSet(tuple(tree.functions[name] for name in sorted(functions_of(tree))), tree.parameters)
    individual = Population.from_trees([tree], known)
    plain_constants, any_constants = (
        bool(DimensionalAnalysis(known, read, free).consistent(individual, read.get("target"))[0])
        for free in (False, True)
    )
    told = (
        "consistent" if plain_constants else "consistent if constants have units" if any_constants else "inconsistent"
    )
    return {"verdict": told}


def compared(target: Floats, predictions: Mapping[str, Floats]) -> dict[str, Any]:
    """Errors of two formulas on the same rows, and whether the difference of their squares is more than chance.

    Parameters
    ----------
    target : ndarray of shape (n_rows,), float64
    predictions : mapping of str to ndarray of shape (n_rows,), float64
        Of two formulas by name. Rows where a value is missing are left out.

    Raises
    ------
    ValueError
        If fewer than two rows are left.
    """
    rows: Mask = np.logical_and.reduce([np.isfinite(each) for each in (target, *predictions.values())])
    count = int(rows.sum())
    if count < 2:
        raise ValueError("fewer than two rows have a target and a prediction of both formulas")
    goal = target[rows]
    spread = float(((goal - goal.mean()) ** 2).mean())
    errors = {name: np.abs(values[rows] - goal) for name, values in predictions.items()}
    told: dict[str, Any] = {"rows": count, "rows_left_out": len(rows) - count}
    for name, error in errors.items():
        told[name] = {
            "root_mean_squared_error": math.sqrt(float((error**2).mean())),
            "mean_absolute_error": float(error.mean()),
            "largest_error": float(error.max()),
            "r2": 1 - float((error**2).mean()) / spread if spread else float(not error.any()),
        }
    first, second = predictions
    differences = errors[first] ** 2 - errors[second] ** 2
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(count)
    better = second if mean > 0 else first
    if abs(mean) > 2.0 * deviation:  # standard errors from which on a difference is more than chance
        verdict = f"the {better} formula has the smaller squared errors"
    else:
        verdict = "the rows do not tell which has the smaller squared errors" if mean else "equal on these rows"
    difference = {"mean": mean, "standard_error": deviation}
    return {**told, "difference_of_squared_errors": difference, "verdict": verdict}


def explained(tree: Tree, columns: Mapping[str, Floats], target: Floats | None = None) -> dict[str, Any]:
    """Behaviour of a formula on some rows.

    Parameters
    ----------
    tree : Tree
    columns : mapping of str to ndarray of shape (n_rows,), float64
        Every feature that the formula uses; rows with missing values are left out.
    target : ndarray of shape (n_rows,), optional
    """
    names = tree.used_parameters
    if not names:
        return {"value": "the same everywhere: it uses no feature"}
    table = np.array([columns[name] for name in names])
    kept = np.isfinite(table).all(axis=0) & (True if target is None else np.isfinite(target))
    if kept.sum() < 2:
        raise ValueError("fewer than two rows have values of all features that the formula uses")
    behaviour = Behaviour(tree, dict(zip(names, table[:, kept], strict=True)))
    values = behaviour.value(behaviour.columns)
    features = {
        name: {
            "range": behaviour.range_of(name),
            "direction": behaviour.direction(name),
            **behaviour.sensitivity(name),
            "limits": behaviour.limits(name),
            "poles": behaviour.poles(name) or "none found within one width of the range on both sides",
        }
        for name in names
    }
    told: dict[str, Any] = {"rows": int(kept.sum()), "features": features}
    if not np.isfinite(values).all():
        return {**told, "rows_without_value": int((~np.isfinite(values)).sum())}
    goal = values if target is None else target[kept]
    rows = np.column_stack(
        [columns[name][kept] if name in columns else np.zeros(kept.sum()) for name in tree.parameters]
    )
    domain = Domain(Dataset.from_arrays(rows, goal, features=tree.parameters))
    told["defined_and_plausible"] = {
        "between the rows": domain.defines(tree, "between"),
        "a little beyond them": domain.defines(tree, "beyond"),
        "where their features are combined anew": domain.defines(tree, "recombined"),
    }
    return told


def _runs(mask: Any) -> list[tuple[int, int]]:
    """First and last position of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(begin), int(end) - 1) for begin, end in edges.reshape(-1, 2)]


def _apart(points: Floats, distance: float) -> list[float]:
    """Points of which none is near the one before."""
    kept: list[float] = []
    for point in points.tolist():
        if not kept or point - kept[-1] > distance or math.isnan(point):
            kept.append(point)
    return kept
