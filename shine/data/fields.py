"""Fields on regular grids, as partial differential equations are found from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.headings import check_features
from shine.data.columns.numbers import floats, numbers
from shine.lang.forms.names import is_list, listed, shown, value_text

AXES = ("x", "y")
"""Names of the coordinates."""

LEAST_POINTS = 32
"""Fewest times, and points along an axis: smoothing loses a dozen of them at the edges."""

LARGEST = 1e100
"""Values above it have squares and cubes beyond float64."""

UNEVEN = 0.01
"""Share of a step by which a point may lie beside its place: files have rounded coordinates."""


@dataclass(frozen=True, eq=False)
class Field:
    """Fields that were read together.

    Parameters
    ----------
    values : ndarray of shape (n_fields, n_times, n_points) or (n_fields, n_times, n_points, n_points2), float64
    states : tuple of str
        Names of the fields.
    steps : tuple of float
        Steps of the time and of each axis.
    periodic : bool
        Whether the last point of an axis is followed by the first.
    firsts : tuple of float
        First time, and first coordinate of each axis.
    """

    values: Floats
    states: tuple[str, ...]
    steps: tuple[float, ...]
    periodic: bool
    firsts: tuple[float, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return AXES[: self.values.ndim - 2]

    @property
    def size(self) -> str:
        """Names and numbers of what was read, for people."""
        points = " x ".join(map(str, self.values.shape[2:]))
        return f"{listed(self.states)} at {self.values.shape[1]} times and {points} points"

    @property
    def places(self) -> list[Floats]:
        """The times, and the coordinates along each axis."""
        firsts = self.firsts or (0.0,) * len(self.steps)
        grids = zip(firsts, self.steps, self.values.shape[1:], strict=True)
        return [first + step * np.arange(count) for first, step, count in grids]


def field_of(x: Any, t: Any, space: Any, states: Sequence[str] | None, periodic: bool) -> Field:
    """Check fields as a user gives them.

    Parameters
    ----------
    x : array-like of shape (n_times, n_points[, n_points2]), or mapping of them by name
    t : float or array-like of shape (n_times,)
        Step of the time, or equally spaced times.
    space : float, array-like, or sequence of them
        Step, or equally spaced coordinates, of all axes or of each.
    states : sequence of str, optional
        Name of the field, if `x` is an array; ``u`` by default.
    periodic : bool

    Raises
    ------
    DataError
        If shapes do not fit, a grid is not regular or too small, a value is missing, or a field never changes.
    """
    if states is not None and (isinstance(x, Mapping) or isinstance(states, str) or len(states) != 1):
        raise DataError("states has the name of one field; give several fields as a mapping: x={'u': ..., 'v': ...}")
    given = dict(x) if isinstance(x, Mapping) else {(states or ["u"])[0]: x}
    if not given:
        raise DataError("x has no field")
    fields: list[Floats] = []
    for name, field in given.items():
        what, dimensions = f"field {shown(str(name))}", np.ndim(field)
        if dimensions not in (2, 3):
            raise DataError(
                f"{what} has shape {np.shape(field)}; (n_times, n_points) or (n_times, n_points, n_points2)"
            )
        values = floats(field, what, dimensions)
        if fields and values.shape != fields[0].shape:
            raise DataError(f"{what} has shape {values.shape}, and the first field {fields[0].shape}")
        if not np.isfinite(values).all():
            place = np.argwhere(~np.isfinite(values))[0].tolist()
            raise DataError(f"{what} is not finite at {place}; a field needs a value at each time and point")
        if min(values.shape) < LEAST_POINTS:
            raise DataError(f"{what} has shape {values.shape}; at least {LEAST_POINTS} times and points, in this order")
        if not np.abs(values).max() < LARGEST:
            raise DataError(f"{what} has values above {LARGEST:g}; give it in other units")
        if values.min() == values.max():
            raise DataError(f"{what} is {values.flat[0]:.6g} everywhere; leave it out")
        fields.append(values)
    names = tuple(map(str, given))
    shape = fields[0].shape
    check_features(list(names), "name")
    each = (
        list(space) if is_list(space) and len(space) == len(shape) - 1 and len(shape) > 2 else [space] * len(shape[1:])
    )
    grids = [_grid(t, shape[0], "t", "times")]
    grids += [_grid(own, count, "space", "points") for own, count in zip(each, shape[1:], strict=True)]
    firsts, steps = zip(*grids, strict=True)
    return Field(np.stack(fields), names, steps, periodic, firsts)


def _grid(given: Any, count: int, name: str, what: str) -> tuple[float, float]:
    """First value and step, given by the step or by equally spaced values."""
    if not is_list(given):
        if isinstance(given, int | float | np.number) and not isinstance(given, bool) and 0 < given < np.inf:
            return 0.0, float(given)
        raise DataError(f"{name} must be a step above 0, or {what}, is {value_text(given)}")
    values = numbers(given, name, 1)
    if len(values) != count:
        raise DataError(f"{name} has {len(values)} {what}, and the field {count}; its first axis is the time")
    return grid_of(values, name)


def grid_of(values: Floats, name: str) -> tuple[float, float]:
    """First value and step of equally spaced values, of which there are two at least; a `DataError` if they are not."""
    first, step = float(values[0]), float(values[-1] - values[0]) / (len(values) - 1)
    if not step > 0 or np.abs(values - first - step * np.arange(len(values))).max() > UNEVEN * step:
        raise DataError(f"{name} must have equal steps; interpolate the field to a regular grid")
    return first, step


def on_grid(axes: Mapping[str, Floats], columns: Mapping[str, Floats]) -> tuple[list[Floats], dict[str, Floats]]:
    """A long table, with a row for each point, as arrays; a `DataError` if a point lacks or repeats.

    Parameters
    ----------
    axes : mapping of str to ndarray of shape (n_rows,)
        Columns of the coordinates, slowest first; rows may have any order.
    columns : mapping of str to ndarray of shape (n_rows,)

    Returns
    -------
    tuple of list of ndarray, dict of ndarray
        The coordinates along each axis, and the columns with an axis for each.
    """
    for name, values in axes.items():
        if not np.isfinite(values).all():
            raise DataError(f"column {shown(name)} is not finite in row {int(np.argmin(np.isfinite(values)))}")
    pairs = [np.unique(values, return_inverse=True) for values in axes.values()]
    ends, shape = [own for own, _ in pairs], tuple(len(own) for own, _ in pairs)
    places = tuple(place for _, place in pairs)
    rows, size = len(places[0]), math.prod(shape)
    # Points of a grid, for each row of a table, up to which the first that lacks is named.
    counts = np.zeros(shape if size <= 4 * rows else (0,) * len(shape), np.int64)
    if counts.size:
        np.add.at(counts, places, 1)
    if (counts != 1).any() or counts.size != rows:
        wrong = np.argwhere(counts != 1)[:1].tolist()
        where = [f"{name} = {own[at]:.6g}" for name, own, at in zip(axes, ends, wrong[0], strict=True)] if wrong else []
        fault = f"; at {', '.join(where)} there are {counts[tuple(wrong[0])]}" if wrong else ""
        raise DataError(
            f"a field needs a row for each of {' x '.join(map(str, shape))} values of {listed(axes)}, and the table "
            f"has {rows} rows{fault}"
        )
    found = {}
    for name, values in columns.items():
        found[name] = np.empty(shape)
        found[name][places] = values
    return ends, found
