"""Is a formula found in noisy rows the law? High precision decides on its form, the noise on its constants.

A *law* is a formula with constants that a measurement determines: numbers written with a point, exponents of ``**``,
and a factor of the whole (its unit). Whole numbers elsewhere belong to its form. The constants of a *candidate* are all
its numbers.

    constants   The candidate becomes identical to the law (to 30 digits, at random points within the data) if its
                constants are chosen well. None of them may vanish, and no exponent may become 0 or 1: so `x**2 + c` is
                not the family of `x**2`, nor `x + c*x**2` or `x**c` that of `x`. Nor may the candidate have a constant
                that can be left out, as `c - d` in `x + c - d`.
    identical   In addition, the candidate has no more freedom than the law: a change of a constant that the identity
                moved changes the candidate as some change of the law's constants does. (`a - b*exp(-x)` can become
                `a*(1 - exp(-x))` and passes above, but has an offset of its own.) And the printed constants are within
                what the noise allows: four standard errors of the law's constants, as least squares determines them in
                these rows (`quality.deviations`).
    offset      Neither, but the candidate is identical to the law plus a constant that is 0 within the noise. It is
                wrong, and counted apart: engines that end with linear regression write an offset into every formula.

A constant of the law that the candidate does not have may differ by a fifth: `sqrt(x)` has the family of `1.1*x**0.48`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpmath import MPContext
from numpy.typing import NDArray
from scipy.optimize import least_squares

from quality.deviations import within_noise
from quality.formulas import Formula, Step
from quality.freedom import Freed, as_candidate, as_law
from quality.precision import DIGITS, numbers, operations, root

Array = NDArray[np.float64]

VERDICTS = ("identical", "constants", "offset", "no", "undecided")

VANISHED = 1e-6
"""A constant smaller than this share of its printed value has vanished."""

FREEDOM = 0.2
"""Largest relative change of a constant of the law that the candidate does not have."""

STALLED = 1e-6
"""A fit ends where a step lessens the squared error by a smaller share: it goes to an identity in large steps."""

NEAR = 1e-6
"""Largest error, relative to the law's values, of a fit in float64 that is worth a look in high precision."""

HOPELESS = 0.1
"""Error of a fit that neither other coordinates nor a change of the law's constants will mend."""

FAR = 1e6
"""Error of a value that is not finite, or larger."""

SMALL = 1e-30
"""Smallest factor of a constant."""

POINTS = 100


def judge_law(
    candidate: Formula,
    law: Formula,
    X: Array,
    sigma: Array,
    *,
    seconds: float = 10.0,
    seed: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """The verdict on a formula (see this module), one of `VERDICTS`.

    Parameters
    ----------
    candidate, law : Formula
        Over the same features.
    X : ndarray of shape (n_rows, n_features)
        The rows that the candidate was found in.
    sigma : ndarray of shape (n_rows,)
        Standard deviation of each reading.
    seconds : float
        Limit, after which the answer is "undecided".
    seed : int
        Seed of the points.
    clock : callable
        The time in seconds.
    """
    deadline = clock() + seconds
    points = _points(candidate, law, X, np.random.default_rng(seed))
    if points is None:
        return "no"
    pair = _Pair(as_candidate(candidate), as_law(law), points)
    try:
        form = pair.form(lambda: clock() > deadline)
    except TimeoutError:
        return "undecided"
    if form == "no":
        return "offset" if _only_offset(candidate, law, X, sigma, points, lambda: clock() > deadline) else "no"
    return "identical" if form == "same" and within_noise(candidate, law, X, sigma) else "constants"


def _only_offset(
    candidate: Formula, law: Formula, X: Array, sigma: Array, points: Array, expired: Callable[[], bool]
) -> bool:
    """Whether the candidate is identical to the law plus a constant that is 0 within the noise."""
    off = float(np.median(candidate.predict(X) - law.predict(X)))
    constant, add = Step("constant", len(law.constants)), Step("add", arity=2)
    moved = Formula((*law.steps, constant, add), (*law.constants, repr(off or float(sigma.mean()))))
    if not within_noise(candidate, law, X, sigma, offset=True):
        return False
    try:
        return _Pair(as_candidate(candidate), as_law(moved), points).form(expired) == "same"
    except TimeoutError:
        return False


def _points(candidate: Formula, law: Formula, X: Array, rng: np.random.Generator) -> Array | None:
    """Points within the data where both formulas have values; None if there are few."""
    shares = rng.random((10 * POINTS, X.shape[1]))
    points = np.column_stack([np.quantile(column, share) for column, share in zip(X.T, shares.T, strict=True)])
    defined = np.isfinite(law.predict(points)) & np.isfinite(candidate.predict(points))
    points = points[defined][:POINTS]
    enough = 2 * (len(candidate.constants) + len(law.constants)) + 20
    return points if len(points) >= enough and np.isfinite(candidate.predict(X)).all() else None


class _Pair:
    """A candidate and a law at the same points."""

    def __init__(self, candidate: Freed, law: Freed, points: Array) -> None:
        self._candidate, self._law, self._points = candidate, law, points
        self._values = law.formula.predict(points)
        # Errors are relative, but not to values that are near a zero of the law.
        self._scale = np.maximum(np.abs(self._values), 1e-3 * np.sqrt(np.mean(self._values**2)))

    def form(self, expired: Callable[[], bool]) -> str:
        """How the candidate's form is related to the law's: "same", "wider" or "no"."""
        free, whole = self._candidate.free, self._candidate.formula.values % 1 == 0
        few = tuple(move and not fixed for move, fixed in zip(free, whole.tolist(), strict=True))
        # The law's constants move for a candidate that has too few of its own.
        lacking = sum(free) <= sum(self._law.free) + 1
        for law_too in (False, True)[: 1 + lacking]:
            found = self._identity(free, law_too, expired)
            if found is None:
                continue
            # Where many constants make an identity, few should move: the whole numbers stay, if they can.
            ours, theirs, moved = (few != free and self._identity(few, law_too, expired)) or found
            if self._degenerate(ours, theirs):
                continue
            if self._tangent(ours, theirs, moved):
                return "same"
            if not any(self._superfluous(i, law_too, expired) for i in moved):
                return "wider"
        return "no"

    def _identity(
        self, free: Sequence[bool], law_too: bool, expired: Callable[[], bool], zero: int | None = None
    ) -> tuple[list[Any], list[Any], list[int]] | None:
        """Constants of both that make them identical, and which of the candidate's moved; None if there are none.

        Constants of the candidate that are not free are as printed, but one may be set to zero.
        """
        ours = [i for i, move in enumerate(free) if move]
        theirs = [i for i, move in enumerate(self._law.free) if move] if law_too else []
        start = self._fitted(ours, theirs, zero, expired)
        if start is None:
            return None
        ctx = MPContext()
        ctx.dps = DIGITS
        functions = operations(ctx)
        enough = 2 * (len(ours) + len(theirs)) + 20
        chosen = self._points[:enough]
        rows = [[ctx.mpf(float(value)) for value in row] for row in chosen]
        scale = [ctx.mpf(float(value)) for value in self._scale[:enough]]
        printed, fixed = numbers(self._candidate.formula, ctx), numbers(self._law.formula, ctx)

        def split(parameters: list[Any]) -> tuple[list[Any], list[Any]]:
            constants = [ctx.zero if i == zero else value for i, value in enumerate(printed)]
            for i, value in zip(ours, parameters, strict=False):
                constants[i] = value
            others = list(fixed)
            for i, value in zip(theirs, parameters[len(ours) :], strict=True):
                others[i] = value
            return constants, others

        def residuals(parameters: list[Any]) -> list[Any]:
            constants, others = split(parameters)
            return [
                (self._candidate.formula.evaluate(row, constants, functions)
                 - self._law.formula.evaluate(row, others, functions)) / size
                for row, size in zip(rows, scale, strict=True)
            ]  # fmt: skip

        begin = [ctx.mpf(float(value)) for value in start]
        # Constants that the fit left alone are meant as they are printed.
        begin = [
            printed[i] if abs(value - printed[i]) <= abs(printed[i]) * 1e-9 else value
            for i, value in zip(ours, begin, strict=False)
        ] + begin[len(ours) :]
        limits = [ctx.inf] * len(ours) + [ctx.mpf(FREEDOM) * abs(fixed[i]) for i in theirs]
        units = [abs(value) or ctx.one for value in begin]
        found = root(residuals, begin, limits, units, ctx, expired)
        if found is None:
            return None
        constants, others = split(found)
        moved = [i for i in ours if abs(constants[i] - printed[i]) > abs(printed[i]) * ctx.mpf(10) ** -8]
        return constants, others, moved

    def _fitted(
        self, ours: list[int], theirs: list[int], zero: int | None, expired: Callable[[], bool]
    ) -> Array | None:
        """Constants fitted in float64, starting at the printed ones; None if the candidate does not come near."""
        printed, fixed = self._candidate.formula.values, self._law.formula.values
        if zero is not None:
            printed[zero] = 0.0
        units = np.concatenate([printed[ours], fixed[theirs]])

        def errors(moving: Array) -> Array:
            if expired():
                raise TimeoutError
            constants, others = printed.copy(), fixed.copy()
            constants[ours], others[theirs] = np.split(units * moving, [len(ours)])
            with np.errstate(all="ignore"):
                found = self._candidate.formula.predict(self._points, constants)
                wanted = self._law.formula.predict(self._points, others) if theirs else self._values
                left = (found - wanted) / self._scale
            return np.clip(np.nan_to_num(left, nan=FAR, posinf=FAR, neginf=-FAR), -FAR, FAR)

        if not len(units):
            return np.empty(0) if np.abs(errors(np.empty(0))).max() < NEAR else None
        factors = _least(errors, np.repeat([np.inf, FREEDOM], [len(ours), len(theirs)]))
        return None if factors is None else units * factors

    def _degenerate(self, ours: list[Any], theirs: list[Any]) -> bool:
        """Whether a constant vanished, or an exponent became 0 or 1."""
        for side, constants in ((self._candidate, ours), (self._law, theirs)):
            printed = side.formula.values
            for value, was, power in zip(constants, printed, side.exponents, strict=True):
                if was and abs(value) <= VANISHED * abs(was):
                    return True
                if power and was not in (0, 1) and min(abs(value), abs(value - 1)) < VANISHED:
                    return True
        return False

    def _tangent(self, ours: list[Any], theirs: list[Any], moved: list[int]) -> bool:
        """Whether moved constants change the candidate only as some change of the law's constants changes the law."""
        ctx = MPContext()
        ctx.dps = DIGITS
        functions = operations(ctx)
        count = len(moved) + len(theirs) + 21
        rows = [[ctx.mpf(float(value)) for value in row] for row in self._points[:count]]
        scale = [ctx.mpf(float(value)) for value in self._scale[:count]]

        def column(formula: Formula, constants: list[Any], position: int) -> list[Any]:
            step = abs(constants[position]) * ctx.mpf(10) ** -45
            there = [value + step if i == position else value for i, value in enumerate(constants)]
            changes = [
                (formula.evaluate(row, there, functions) - formula.evaluate(row, constants, functions)) / step / size
                for row, size in zip(rows, scale, strict=True)
            ]
            return changes if all(map(ctx.isfinite, changes)) else []

        law = self._law.formula
        values = [law.evaluate(row, theirs, functions) / size for row, size in zip(rows, scale, strict=True)]
        free = [i for i, move in enumerate(self._law.free) if move]
        basis: list[list[Any]] = []
        for vector in [values, *(column(law, theirs, i) for i in free)]:
            left = _without(vector, basis, ctx)
            if left:
                basis.append(left)
        return not any(_without(column(self._candidate.formula, ours, i), basis, ctx) for i in moved)

    def _superfluous(self, position: int, law_too: bool, expired: Callable[[], bool]) -> bool:
        """Whether the candidate can be identical to the law with this constant zero."""
        free = [move and i != position for i, move in enumerate(self._candidate.free)]
        return self._identity(free, law_too, expired, zero=position) is not None


def _least(errors: Callable[[Array], Array], width: Array) -> Array | None:
    """Factors, up to `width` from 1, with which the errors almost vanish; None if there are none near 1."""
    ones = np.ones(len(width))
    settings = {"ftol": STALLED, "xtol": 1e-14, "gtol": 1e-15, "max_nfev": 200}
    fit = least_squares(errors, ones, bounds=(1 - width, 1 + width), **settings)
    left, factors = np.sqrt(np.mean(fit.fun**2)), fit.x
    if NEAR <= left <= HOPELESS:
        # A factor that has to change by decades, because an exponent is a little off, needs logarithms.
        low, high = np.log(np.maximum(1 - width, SMALL)), np.log(np.minimum(1 + width, 1 / SMALL))
        fit = least_squares(lambda logs: errors(np.exp(logs)), 0 * ones, bounds=(low, high), **settings)
        left, factors = np.sqrt(np.mean(fit.fun**2)), np.exp(fit.x)
    return factors if left < NEAR else None


def _without(vector: list[Any], basis: list[list[Any]], ctx: Any) -> list[Any]:
    """The unit vector of the part that no vector of an orthonormal basis has; empty if there is none."""
    if not vector:
        return []
    size = ctx.sqrt(ctx.fdot(vector, vector))
    if not size:
        return []
    left = [value / size for value in vector]
    for other in basis * 2:  # twice, for precision
        share = ctx.fdot(left, other)
        left = [value - share * part for value, part in zip(left, other, strict=True)]
    rest = ctx.sqrt(ctx.fdot(left, left))
    return [value / rest for value in left] if rest > ctx.mpf(10) ** -12 else []
