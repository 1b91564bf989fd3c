"""Is a formula the true one? Decided by an identity of numbers in high precision, not by rewriting symbols.

SRBench (La Cava et al. 2021) counts a formula as recovered when, its constants rounded to three decimals and both
simplified by a computer algebra system, it differs from the truth by a constant or by a constant factor. Two things
make that unreliable: simplification often cannot prove that equal formulas are equal, and rounding to decimals spoils
constants that are right (0.0796 for 1/(4 pi) becomes 0.08). The rule here says the same without either:

    A formula is recovered if constants exist that agree with the printed ones to three digits, and with which the
    formula is identical to the truth up to an added constant or a constant factor. To agree is a relative difference of
    at most 5e-4. A constant may also become zero if that changes the values by at most 5e-4 of their spread, both
    measured by medians.

Identical means: at random points within the ranges of the data, more of them than constants, to 30 digits. Analytic
functions that agree there are practically certain to be the same. The method of Levenberg and Marquardt looks for the
constants in 100 digits, starting at the printed ones. It converges quadratically to an identity; an approximation,
however good, keeps a residual and is given up.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import MPContext
from numpy.typing import NDArray

from quality.formulas import Formula
from quality.precision import DIGITS, numbers, operations, root

Array = NDArray[np.float64]

AGREEMENT = 5e-4
"""Largest relative change of a printed constant, or of the values if it is left out."""

PROMISING = 0.99
"""A formula with a lower squared correlation with the truth is rejected at once; both are noise-free."""


@dataclass(frozen=True)
class Verdict:
    """Whether a formula is the true one.

    Parameters
    ----------
    recovered : bool
    reason : {"factor", "difference", "no", "undecided"}
        How it differs from the truth: by a constant factor (1 included) or an added constant. "undecided" if
        time ran out; that counts as not recovered.
    """

    recovered: bool
    reason: str


def judge(
    candidate: Formula,
    truth: Formula,
    bounds: Sequence[tuple[float, float]],
    *,
    seconds: float = 20.0,
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Whether a formula is the true one, by the rule of this module.

    Parameters
    ----------
    candidate, truth : Formula
        Over the same features.
    bounds : sequence of (low, high)
        Range of each feature, in which points are drawn.
    seconds : float
        Limit, after which the answer is "undecided".
    seed : int
        Seed of the points.
    clock : callable
        The time in seconds.
    """
    deadline = clock() + seconds
    points = _points(candidate, truth, bounds, np.random.default_rng(seed))
    if points is None:
        return Verdict(False, "no")
    X, f, g = points
    relation = _Relation(candidate, truth, X, float(np.abs(f).max()))
    starts = {"factor": float(f @ g / (g @ g)), "difference": float(np.mean(f - g))}
    # First leave out all constants that change nothing: zeros that are free to move turn many roots into multiple ones.
    # Then leave out fewer, because a constant that changes little may be part of the truth.
    relevant, size = _relevant(candidate, X, f), np.abs(candidate.values)
    choices = dict.fromkeys(tuple(free.tolist()) for free in (relevant, relevant | (size > AGREEMENT), size > 0))
    for free, reason in itertools.product(choices, starts):
        try:
            if relation.holds(reason, starts[reason], free, lambda: clock() > deadline):
                return Verdict(True, reason)
        except TimeoutError:
            return Verdict(False, "undecided")
    return Verdict(False, "no")


def _relevant(formula: Formula, X: Array, values: Array) -> NDArray[np.bool_]:
    """Which constants cannot be set to zero without a change of the values."""
    constants, enough = formula.values, AGREEMENT * np.median(np.abs(values - np.median(values)))
    changes = []
    for position in range(len(constants)):
        without = np.where(np.arange(len(constants)) == position, 0.0, constants)
        with np.errstate(all="ignore"):
            changes.append(np.median(np.abs(formula.predict(X, without) - values)))
    return ~(np.array(changes) <= enough)


class _Relation:
    """A formula and the truth at the same points, in high precision; errors are relative to the formula's `scale`."""

    def __init__(self, candidate: Formula, truth: Formula, X: Array, scale: float) -> None:
        self._ctx = ctx = MPContext()
        ctx.dps = DIGITS
        self._candidate, self._operations = candidate, operations(ctx)
        self._rows = [[ctx.mpf(float(value)) for value in row] for row in X]
        self._truth = [truth.evaluate(row, numbers(truth, ctx), self._operations) for row in self._rows]
        self._scale = ctx.mpf(scale)
        self.printed = numbers(candidate, ctx)

    def holds(self, reason: str, start: float, free: Sequence[bool], expired: Callable[[], bool]) -> bool:
        """Whether the truth differs by a factor or a difference near `start` if the free constants are chosen well.

        The others are zero.
        """
        origin = list(itertools.compress(self.printed, free))
        limits = [2 * AGREEMENT * abs(value) for value in origin]
        # With all constants and the factor zero, both sides would be equal, too.
        limits.append(abs(start) / 10 if reason == "factor" else self._ctx.inf)
        units = [*map(abs, origin), abs(start) if reason == "factor" else self._scale]

        def residuals(parameters: list[Any]) -> list[Any]:
            *moving, last = parameters
            given = iter(moving)
            constants = [next(given) if move else self._ctx.zero for move in free]
            values = (self._candidate.evaluate(row, constants, self._operations) for row in self._rows)
            related = (g * last if reason == "factor" else g + last for g in self._truth)
            return [(f - g) / self._scale for f, g in zip(values, related, strict=True)]

        found = root(residuals, [*origin, self._ctx.mpf(start)], limits, units, self._ctx, expired)
        return found is not None and all(map(_agree, origin, found[:-1]))


def _points(
    candidate: Formula, truth: Formula, bounds: Sequence[tuple[float, float]], rng: np.random.Generator
) -> tuple[Array, Array, Array] | None:
    """Points with the values of both formulas; None if the values already show that the formulas differ."""
    low, high = np.array(bounds, dtype=np.float64).T
    X = low + (high - low) * rng.random((1000, len(bounds)))
    if any(step.kind == "harmonic" for step in truth.steps):
        X = np.unique(np.round(X), axis=0)
    g = truth.predict(X)
    X, g = X[np.isfinite(g)], g[np.isfinite(g)]
    f = candidate.predict(X)
    count = 2 * len(candidate.constants) + 20
    if len(X) < count or not np.isfinite(f).all() or np.ptp(f) == 0 or np.ptp(g) == 0:
        return None
    with np.errstate(all="ignore"):
        if not np.corrcoef(f / np.abs(f).max(), g / np.abs(g).max())[0, 1] ** 2 >= PROMISING:
            return None
    return X[:count], f[:count], g[:count]


def _agree(printed: Any, found: Any) -> bool:
    """Whether a constant is the printed one."""
    return bool(abs(found - printed) <= AGREEMENT * abs(printed))
