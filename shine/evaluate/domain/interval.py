"""Intervals, and the building blocks of rules for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from shine.base.typing import Floats, Mask

_EPSILON, _TINY = float(np.finfo(np.float64).eps), 5e-324
_ULPS = 16
"""Widening of the bounds of functions, in units in the last place; the functions err by a few."""


@dataclass(frozen=True, eq=False)
class Interval:
    """Bounds of a value in many boxes.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_boxes,) or ()
        Wherever the value is defined, it lies between these bounds or on them.
    doubtful : ndarray of shape (n_boxes,) or (), bool
        Whether the value may be undefined, or have a pole, at some point of the box. If False, the value is a number
        at every point, and infinite only by overflow.
    """

    lower: Floats
    upper: Floats
    doubtful: Mask

    @classmethod
    def of(cls, lower: ArrayLike, upper: ArrayLike) -> Interval:
        """Every number between two bounds."""
        return cls(np.asarray(lower, np.float64), np.asarray(upper, np.float64), np.asarray(False))

    @property
    def ends(self) -> tuple[Floats, ...]:
        """Both bounds; one if they are the same object, as those of a constant."""
        return (self.lower,) if self.lower is self.upper else (self.lower, self.upper)


def made(lower: Floats, upper: Floats, doubtful: Mask, undefined: Callable[[], Mask] | None = None) -> Interval:
    """An interval. If a bound is NaN, as for 0 times infinity, nothing is known; nor where `undefined` says so, which
    is asked if some bound is not finite."""
    value = Interval(lower, upper, doubtful)
    if np.isfinite(lower + upper).all():
        return value
    unknown = np.isnan(lower) | np.isnan(upper)
    return undefined_where(unknown if undefined is None else unknown | undefined(), value)


def undefined_where(condition: Mask, value: Interval) -> Interval:
    """The interval, with nothing known where a condition holds."""
    if not condition.any():
        return value
    return Interval(
        np.where(condition, -np.inf, value.lower),
        np.where(condition, np.inf, value.upper),
        value.doubtful | condition,
    )


def outwards(lower: Floats, upper: Floats, least: float = -math.inf, most: float = math.inf) -> tuple[Floats, Floats]:
    """Bounds moved apart by the error of a function, but not below `least` or above `most`."""
    return (
        np.maximum(lower - (np.abs(lower) * (_ULPS * _EPSILON) + _ULPS * _TINY), least),
        np.minimum(upper + (np.abs(upper) * (_ULPS * _EPSILON) + _ULPS * _TINY), most),
    )


def spanned(a: Interval, b: Interval, operation: Callable[[Floats, Floats], Floats]) -> tuple[Floats, Floats, Mask]:
    """Least and greatest value at the corners, and whether either argument is doubtful."""
    corners = [operation(one, other) for one in a.ends for other in b.ends]
    return reduce(np.minimum, corners), reduce(np.maximum, corners), a.doubtful | b.doubtful


def contains_zero(a: Interval) -> Mask:
    """Whether zero lies within an interval."""
    return np.asarray((a.lower <= 0) & (a.upper >= 0))


def magnitude(a: Interval) -> Interval:
    """Bounds of the absolute value."""
    smallest = np.where(contains_zero(a), 0.0, np.minimum(np.abs(a.lower), np.abs(a.upper)))
    return Interval(smallest, np.maximum(np.abs(a.lower), np.abs(a.upper)), a.doubtful)


def endless(a: Interval) -> Mask:
    """Whether a bound is infinite."""
    return np.isinf(a.lower) | np.isinf(a.upper)


def selected(mask: Mask, a: Interval, b: Interval) -> Interval:
    """The first interval where a mask is set, and the second elsewhere."""
    return Interval(
        np.where(mask, a.lower, b.lower), np.where(mask, a.upper, b.upper), np.where(mask, a.doubtful, b.doubtful)
    )
