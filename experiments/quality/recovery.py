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
from mpmath import MPContext, mp
from numpy.typing import NDArray

from quality.formulas import Formula, Operation

Array = NDArray[np.float64]

AGREEMENT = 5e-4
"""Largest relative change of a printed constant, or of the values if it is left out."""

DIGITS = 100
IDENTICAL = 30
"""Digits to which identical formulas agree."""

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
        self._candidate, self._operations = candidate, _operations(ctx)
        self._rows = [[ctx.mpf(float(value)) for value in row] for row in X]
        self._truth = [truth.evaluate(row, _numbers(truth, ctx), self._operations) for row in self._rows]
        self._scale = ctx.mpf(scale)
        self.printed = _numbers(candidate, ctx)

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

        found = _root(residuals, [*origin, self._ctx.mpf(start)], limits, units, self._ctx, expired)
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


def _numbers(formula: Formula, ctx: Any) -> list[Any]:
    """Constants as they are written, in the context's precision."""
    return [+ctx.pi if text == "pi" else ctx.mpf(text) for text in formula.constants]


def _agree(printed: Any, found: Any) -> bool:
    """Whether a constant is the printed one."""
    return bool(abs(found - printed) <= AGREEMENT * abs(printed))


def _root(
    residuals: Callable[[list[Any]], list[Any]],
    start: list[Any],
    limits: list[Any],
    units: list[Any],
    ctx: Any,
    expired: Callable[[], bool],
) -> list[Any] | None:
    """Parameters near the start with no residual, by the method of Levenberg and Marquardt; None if it finds none.

    The damping is the squared residual: it converges quadratically even where parameters depend on each
    other (Yamashita and Fukushima 2001), and more where the residual would grow; parameters stop at their limits. It
    gives up if the residual is not halved. `units` are the scales of the parameters.
    """
    enough, parameters, count = ctx.mpf(10) ** -IDENTICAL, start, len(start)
    errors = residuals(parameters)
    size = _norm(errors)
    for _ in range(60):
        if size <= enough:
            return parameters
        jacobian = []
        for position, unit in enumerate(units):
            if expired():
                raise TimeoutError
            step = unit * ctx.mpf(10) ** -50
            moved = [value + step if i == position else value for i, value in enumerate(parameters)]
            jacobian.append([(b - a) * 10**50 for a, b in zip(errors, residuals(moved), strict=True)])
        normal = ctx.matrix([[ctx.fdot(a, b) for b in jacobian] for a in jacobian])
        right = ctx.matrix([-ctx.fdot(column, errors) for column in jacobian])
        if not all(ctx.isfinite(value) for value in normal):
            return None
        damping, before = max(size * size, ctx.mpf(10) ** -80) * max(normal[i, i] for i in range(count)), size
        for _ in range(20):
            free = _moved(parameters, units, normal + damping * ctx.eye(count), right, ctx)
            moved = [min(max(new, old - far), old + far) for new, old, far in zip(free, start, limits, strict=True)]
            errors_there = residuals(moved)
            size = _norm(errors_there)
            if size < before:
                break
            damping *= 100
        if not size <= before * 0.5:  # nor if it is not a number
            return None
        parameters, errors = moved, errors_there
    return None


def _moved(parameters: list[Any], units: list[Any], normal: Any, right: Any, ctx: Any) -> list[Any]:
    """Parameters after the step that solves the normal equations; unchanged if these are singular."""
    try:
        steps = ctx.lu_solve(normal, right)
    except ZeroDivisionError:
        return parameters
    return [value + unit * step for value, unit, step in zip(parameters, units, steps, strict=True)]


def _norm(values: list[Any]) -> Any:
    """The largest absolute value; NaN if any value is."""
    return max(abs(value) for value in values) if all(value == value for value in values) else mp.nan


def _operations(ctx: Any) -> dict[str, Operation]:
    """The functions in high precision; a value that IEEE arithmetic makes infinite or NaN is NaN here."""
    nan = ctx.nan

    def within(function: Operation, allowed: Callable[[Any], bool] = lambda x: True) -> Operation:
        # No float64 is larger, and a larger exponent would fill the memory.
        return lambda x: function(x) if abs(x) < 1e308 and allowed(x) else nan

    def power(base: Any, exponent: Any) -> Any:
        whole = exponent == ctx.floor(exponent) if abs(exponent) < 1e6 else False
        if whole:
            return base ** int(exponent) if base != 0 or exponent >= 0 else nan
        return exponential(exponent * ctx.log(base)) if base > 0 else nan

    exponential = within(ctx.exp, lambda x: x < 710)
    hyperbolic = lambda x: abs(x) < 710  # noqa: E731 - a bound, named
    return {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b if b != 0 else nan,
        "pow": power,
        "neg": lambda a: -a,
        "abs": abs,
        "square": lambda a: a * a,
        "sqrt": within(ctx.sqrt, lambda x: x >= 0),
        "exp": exponential,
        "log": within(ctx.log, lambda x: x > 0),
        "sin": within(ctx.sin),
        "cos": within(ctx.cos),
        "tan": within(ctx.tan),
        "asin": within(ctx.asin, lambda x: abs(x) <= 1),
        "acos": within(ctx.acos, lambda x: abs(x) <= 1),
        "atan": within(ctx.atan),
        "sinh": within(ctx.sinh, hyperbolic),
        "cosh": within(ctx.cosh, hyperbolic),
        "tanh": within(lambda x: ctx.tanh(x) if abs(x) < 710 else ctx.sign(x)),
        "harmonic": within(ctx.harmonic),
        "protected_div": lambda a, b: a / b if abs(b) > 0.001 else ctx.mpf(1),
        "protected_log": within(lambda a: ctx.log(abs(a)) if abs(a) > 0.001 else ctx.mpf(0)),
        "protected_sqrt": within(lambda a: ctx.sqrt(abs(a))),
        "capped_exp": within(lambda a: ctx.exp(min(a, ctx.mpf(100)))),
    }
