"""Profile-likelihood intervals: all values of a constant that the rows do not speak against, whatever the others are.

The other constants are fitted anew at each value. The root of twice the fall of the log-likelihood is nearly a line in
the constant (Bates and Watts 1988), so that few values lead to the ends.

`fitted` finds the constants that make a sum of errors least, some of them held, by damped Newton steps (Levenberg
1944).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.evaluate.inference.covariance import Covariance
from shine.evaluate.inference.likelihood import Likelihood, Local

TOLERANCE = 2e-3
"""Error of an end, in standard errors."""

WIDEST = 1e4
"""Standard errors beyond which an interval counts as unbounded."""

MOST_TRIALS = 30
"""Most values of a constant that are tried on one side."""

GROWTH, LEVELS_OFF = 3.0, 0.01
"""Factor by which trials go farther out at most, and the share of the width by which the root must then rise: otherwise
the log-likelihood levels off, and the interval is unbounded."""

_PROFILE_STEPS = 25
"""Most steps of a fit of the other constants."""

_EXACT = 1e-4
"""Twice the log-likelihood that the fit at each value may miss."""


@dataclass(frozen=True, eq=False)
class Point:
    """A value of the constant, the root of twice the fall of the log-likelihood, and the best other constants."""

    value: float
    root: float
    constants: Floats


def profiled(
    likelihood: Likelihood, best: Optimum, given: Optimum, found: Covariance, index: int, width: float
) -> tuple[float, float]:
    """Ends of the interval of a constant; infinite if the rows do not bound it.

    Parameters
    ----------
    likelihood : Likelihood
    best, given : Optimum
        The most likely constants, and those of the formula, from which an end is looked for where they are within the
        interval: the fits of curved formulas are local. An interval without end on one side holds them in any case.
    found : Covariance
    index : int
        Position of the constant, which is determined, or bounded on one side.
    width : float
        Standard errors on each side if the log-likelihood were a parabola.
    """
    free = np.arange(len(best.constants)) != index
    known, factor = found.determined, found.dispersion * float(found.adjusted[index])
    assert known is not None
    variance = float(known.full_inverse[index, index])
    deviation = float(np.sqrt(2 * variance / factor)) if factor > 0 else np.inf
    # A loss may have no curvature in the mean, for which rows bound nothing.
    if not 0 < deviation < np.inf:
        return -np.inf, np.inf
    direction = known.full_inverse[index] / variance

    def point(value: float, near: Floats) -> Point:
        start = near + direction * (value - near[index])
        start[index] = value
        there = fitted(likelihood, start, _EXACT / factor, free, _PROFILE_STEPS)
        if not np.isfinite(there.total):
            there = fitted(likelihood, np.where(free, near, value), _EXACT / factor, free, _PROFILE_STEPS)
        fall = factor * (there.total - best.total)
        return Point(value, float(np.sqrt(max(fall, 0.0))), there.constants)

    centre = Point(float(known.start[index]), 0.0, known.start)
    value, root = float(given.constants[index]), float(np.sqrt(max(factor * (given.total - best.total), 0.0)))
    ends, open_side = [], float(known.levels_off[index])
    for side in (-1.0, 1.0):
        further = root < width and side * (value - centre.value) > 0
        begin = Point(value, root, given.constants) if further else centre
        end = side * np.inf if side == open_side else end_of(point, begin, side * deviation, width)
        ends.append(side * max(side * end, side * value) if open_side else end)
    return ends[0], ends[1]


def end_of(point: Callable[[float, Floats], Point], centre: Point, unit: float, width: float) -> float:
    """The value on one side at which the root is `width`; infinite if there is none.

    Parameters
    ----------
    point : callable
        A value and constants near it -> the point of the profile.
    centre : Point
    unit : float
        A standard error, with the sign of the side.
    width : float
    """
    unbounded = float(np.copysign(np.inf, unit))
    inner, outer, trial = centre, None, width
    for _ in range(MOST_TRIALS):
        found, before = point(centre.value + trial * unit, inner.constants), inner.root
        if found.root >= width:
            outer = found
        else:
            inner = found
        if abs(found.root - width) < TOLERANCE:
            return found.value
        at, root = (inner.value - centre.value) / unit, inner.root
        if outer is None:
            growth = min(width / root if root > 0 else GROWTH, GROWTH)
            if at > WIDEST or (at > GROWTH * width and root - before < LEVELS_OFF * width):
                return unbounded
            trial = at * max(growth, 1.1)
            continue
        until = (outer.value - centre.value) / unit
        if until - at < TOLERANCE:
            return (outer if np.isfinite(outer.root) else inner).value
        share = (width - root) / (outer.root - root) if np.isfinite(outer.root) else 0.5
        trial = at + min(max(share, 0.02), 0.98) * (until - at)
    return unbounded if outer is None else outer.value


STEPS = 60
"""Most steps of a fit."""

ROUNDING = 1e-14
"""Relative change of the sum of errors that is rounding."""

_DAMPING, _LESS, _MORE, _MOST = 1e-6, 0.2, 8.0, 1e12
"""Damping at first, its factors after better and worse trials, and the damping that ends a fit."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """Constants and the sum of errors that they leave; inf if it is not defined."""

    constants: Floats
    total: float


def fitted(
    likelihood: Likelihood, start: Floats, tolerance: float = 0.0, free: Mask | None = None, steps: int = STEPS
) -> Optimum:
    """The best constants near a start.

    Parameters
    ----------
    likelihood : Likelihood
    start : ndarray of shape (n_constants,)
    tolerance : float
        The fit ends once the next step promises to lessen the sum of errors by no more than this.
    free : ndarray of shape (n_constants,), bool, optional
        Constants that may change; all by default.
    steps : int
        Most steps.
    """
    moving = np.arange(len(start)) if free is None else np.flatnonzero(free)
    best, here = start.astype(np.float64), likelihood.local(start)
    if not len(moving) or not np.isfinite(here.total):
        return Optimum(best, here.total)
    damping = _DAMPING
    for _ in range(steps):
        step, promise = _step(here, moving, damping)
        if not promise > max(tolerance, ROUNDING * abs(here.total)):
            break
        trial = best.copy()
        trial[moving] += step
        there = likelihood.local(trial)
        if there.total < here.total:
            best, here, damping = trial, there, max(damping * _LESS, ROUNDING)
            continue
        damping *= _MORE
        if damping > _MOST:
            break
    return Optimum(best, here.total)


def _step(here: Local, moving: Indices, damping: float) -> tuple[Floats, float]:
    """A damped step of the moving constants, and the decrease that it promises."""
    gradient, curvature = here.gradient[moving], here.curvature[np.ix_(moving, moving)]
    known = np.isfinite(gradient) & np.isfinite(np.diagonal(curvature))  # others stay where they are
    gradient, curvature = np.where(known, gradient, 0.0), np.where(known & known[:, None], curvature, 0.0)
    scale = np.sqrt(np.diagonal(curvature))
    scale = np.where(scale > 0, scale, 1.0)
    damped = curvature / scale / scale[:, None] + damping * np.eye(len(moving))
    try:
        step = np.linalg.solve(damped, -gradient / scale) / scale
    except np.linalg.LinAlgError:
        return np.zeros(len(moving)), 0.0
    return step, float(-0.5 * gradient @ step)
