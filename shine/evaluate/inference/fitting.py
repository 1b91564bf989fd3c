"""The constants that make a sum of errors least, some of them held: damped Newton steps (Levenberg 1944)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.evaluate.inference.likelihood import Likelihood, Local

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
    scale = np.sqrt(np.diagonal(curvature))
    scale = np.where(scale > 0, scale, 1.0)
    damped = curvature / scale / scale[:, None] + damping * np.eye(len(moving))
    try:
        step = np.linalg.solve(damped, -gradient / scale) / scale
    except np.linalg.LinAlgError:
        return np.zeros(len(moving)), 0.0
    return step, float(-0.5 * gradient @ step)
