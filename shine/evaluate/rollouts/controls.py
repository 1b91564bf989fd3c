"""Controls between the times at which they are known: piecewise polynomials of degree 3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Indices

PARTS = 4
"""Pieces of a smooth control between two times."""

SHAPES = ("previous", "linear", "smooth")
"""Interpolation of controls between known times: steps, straight lines, or smooth curves."""


@dataclass(frozen=True, eq=False)
class Controls:
    """Controls as functions of the time; constant before the first break and after the last.

    Parameters
    ----------
    breaks : ndarray of shape (n_pieces + 1,)
    pieces : ndarray of shape (n_pieces, n_controls, 4)
        Coefficients of the powers of the time since the break, from the constant on.
    kinked : bool
        Whether breaks are kinks or jumps, which no step may cross.
    """

    breaks: Floats
    pieces: Floats
    kinked: bool

    def at(self, times: Floats) -> Floats:
        """Values, shape (n_times, n_controls)."""
        within = np.clip(times, self.breaks[0], self.breaks[-1])
        piece = np.clip(np.searchsorted(self.breaks, within, side="right") - 1, 0, len(self.pieces) - 1)
        since, own = (within - self.breaks[piece])[:, None], self.pieces[piece]
        value: Floats = ((own[..., 3] * since + own[..., 2]) * since + own[..., 1]) * since + own[..., 0]
        return value


def controls_of(times: Floats, values: Floats, shape: str | None = None) -> Controls:
    """Controls through known values.

    Parameters
    ----------
    times : ndarray of shape (n_times,)
        Increasing.
    values : ndarray of shape (n_times, n_controls)
    shape : str, optional
        One of `SHAPES`; if None, the one that tells every second value best from the others.
    """
    times, values = np.ascontiguousarray(times, np.float64), np.ascontiguousarray(values, np.float64)
    if shape is not None and shape not in SHAPES:
        raise ValueError(f"controls have no shape {shape!r}; use one of {', '.join(SHAPES)}")
    if len(times) == 1:
        times, values, shape = np.array([times[0], times[0] + 1.0]), np.repeat(values, 2, axis=0), "previous"
    made = _MAKERS[shape or best_shape(times, values)](times, values)
    # Native code reads them where they are.
    return Controls(np.ascontiguousarray(made.breaks), np.ascontiguousarray(made.pieces), made.kinked)


def resolved(
    times: Floats, values_at: Callable[[Floats], Floats], count: int = 256, most: int = 2**14, close: float = 1e-9
) -> tuple[Floats, Indices]:
    """Times close enough that controls, given as a function of the time, are known between them.

    Parameters
    ----------
    times : ndarray of shape (n_times,)
        Increasing.
    values_at : callable
        Controls at some times, shape (n, n_controls).
    count, most : int
        Equal steps that no two times are further apart than: the first that are tried (0 adds no times), and the most.
    close : float
        Error of controls between the times, as a share of their range, that is small enough.

    Returns
    -------
    tuple of ndarray
        The given times and others between them, and the places of the given ones.
    """
    steps = times[1:] - times[:-1]
    while True:
        parts = np.maximum(np.ceil(steps / (times[-1] - times[0]) * count), 1).astype(np.int64)
        places = np.append(0, np.cumsum(parts))
        since = np.arange(places[-1]) - np.repeat(places[:-1], parts)
        grid = np.append(np.repeat(times[:-1], parts) + since * np.repeat(steps / parts, parts), times[-1])
        values, halves = values_at(grid), 0.5 * (grid[1:] + grid[:-1])
        wrong = np.abs(controls_of(grid, values).at(halves) - values_at(halves)).max(axis=0)
        if count >= most or (wrong <= close * (values.max(axis=0) - values.min(axis=0))).all():
            return grid, places
        count = min(max(4 * count, 2 * len(steps)), most)


def best_shape(times: Floats, values: Floats) -> str:
    """The shape of controls that tells every second value best from the others."""
    if len(times) < 5:
        return "linear"
    hidden = slice(1, len(times) - 1, 2)
    kept = np.ones(len(times), np.bool_)
    kept[hidden] = False
    # Rounding must not decide against straight lines.
    size = np.abs(values).max() * 1e-12 * len(times)
    errors = {}
    for shape in ("linear", "smooth", "previous"):
        told = _MAKERS[shape](times[kept], values[kept]).at(times[hidden])
        errors[shape] = size + np.add.reduce(np.abs(told - values[hidden]), axis=None)
    return min(errors, key=lambda shape: errors[shape])


def _previous(times: Floats, values: Floats) -> Controls:
    zeros = np.zeros_like(values)
    # The last value holds from its time on.
    breaks = np.append(times, times[-1] + (times[-1] - times[-2]))
    return Controls(breaks, np.stack([values, zeros, zeros, zeros], axis=-1), True)


def _linear(times: Floats, values: Floats) -> Controls:
    slopes = (values[1:] - values[:-1]) / (times[1:] - times[:-1])[:, None]
    zeros = np.zeros_like(slopes)
    return Controls(times, np.stack([values[:-1], slopes, zeros, zeros], axis=-1), True)


def _smooth(times: Floats, values: Floats) -> Controls:
    """Cubic Hermite pieces of the polynomials through the nearest known values."""
    parts = np.arange(PARTS) / PARTS
    steps = times[1:] - times[:-1]
    breaks = np.append((times[:-1, None] + steps[:, None] * parts).ravel(), times[-1])
    count = min(8, len(times))  # most neighbours whose polynomial a smooth control follows between two times
    owner = np.minimum(np.repeat(np.arange(len(times) - 1), PARTS), len(times) - 2)
    first = np.clip(np.append(owner, len(times) - 2) + 1 - count // 2, 0, len(times) - count)
    known, slopes = _interpolated(times, values, breaks, first[:, None] + np.arange(count))
    width = (breaks[1:] - breaks[:-1])[:, None]
    rise = (known[1:] - known[:-1]) / width
    second = (3 * rise - 2 * slopes[:-1] - slopes[1:]) / width
    third = (slopes[:-1] + slopes[1:] - 2 * rise) / width / width
    return Controls(breaks, np.stack([known[:-1], slopes[:-1], second, third], axis=-1), False)


def _interpolated(times: Floats, values: Floats, at: Floats, points: Indices) -> tuple[Floats, Floats]:
    """Values and slopes of the polynomials through points, shape (n_at, n_points), by Neville's scheme."""
    x, level = times[points], values[points]
    slopes = np.zeros_like(level)
    count = points.shape[1]
    here = at[:, None]
    for order in range(1, count):
        low, high = x[:, : count - order], x[:, order:]
        apart = (high - low)[..., None]
        left, right = (here - low)[..., None], (high - here)[..., None]
        slopes = (level[:, 1:] - level[:, :-1] + left * slopes[:, 1:] + right * slopes[:, :-1]) / apart
        level = (left * level[:, 1:] + right * level[:, :-1]) / apart
    return level[:, 0], slopes[:, 0]


_MAKERS = {"previous": _previous, "linear": _linear, "smooth": _smooth}
