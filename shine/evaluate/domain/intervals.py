"""Interval arithmetic: bounds of each primitive's value by those of its arguments (Moore, *Interval Analysis*, 1966).

These are bounds of the values that Shine computes in float64. Rounding keeps the order of sums, products and quotients,
so their bounds are exact. Bounds of functions are moved outwards by more than the error of the functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from numpy.typing import ArrayLike

from shine.base.typing import Floats, Mask
from shine.compiler.arrays import apply
from shine.lang.forms.library import STANDARD

_ROUNDING, _TINY = float(np.finfo(np.float64).eps), 5e-324
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
        np.maximum(lower - (np.abs(lower) * (_ULPS * _ROUNDING) + _ULPS * _TINY), least),
        np.minimum(upper + (np.abs(upper) * (_ULPS * _ROUNDING) + _ULPS * _TINY), most),
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


_EPSILON = float(np.finfo(np.float64).eps)


def _named(name: str) -> Callable[..., Floats]:
    """One of Shine's primitives, as a function of arrays."""
    return partial(apply, STANDARD[name])


_LOG, _POW, _TAN, _ASIN, _ACOS, _HYPOT = map(_named, ("log", "pow", "tan", "asin", "acos", "hypot"))


def _add(a: Interval, b: Interval) -> Interval:
    # Infinity minus infinity is undefined.
    return made(a.lower + b.lower, a.upper + b.upper, a.doubtful | b.doubtful, lambda: endless(a) & endless(b))


def _neg(a: Interval) -> Interval:
    return Interval(-a.upper, -a.lower, a.doubtful)


def _mul(a: Interval, b: Interval) -> Interval:
    if a is b:
        size = magnitude(a)
        return made(size.lower * size.lower, size.upper * size.upper, a.doubtful)
    return made(*spanned(a, b, np.multiply), lambda: (endless(a) & contains_zero(b)) | (contains_zero(a) & endless(b)))


def _div(a: Interval, b: Interval) -> Interval:
    return undefined_where(contains_zero(b), made(*spanned(a, b, np.divide), lambda: endless(a) & endless(b)))


def _floordiv(a: Interval, b: Interval) -> Interval:
    lower, upper, doubtful = spanned(a, b, np.divide)
    # Rounding may have raised the quotient to a whole number that the exact quotient does not reach.
    value = made(np.floor(np.nextafter(lower, -np.inf)), np.floor(np.nextafter(upper, np.inf)), doubtful)
    return undefined_where(contains_zero(b) | ~np.isfinite(lower) | ~np.isfinite(upper), value)


def _mod(a: Interval, b: Interval) -> Interval:
    value = made(np.minimum(b.lower, 0), np.maximum(b.upper, 0), a.doubtful | b.doubtful)
    value = undefined_where(contains_zero(b) | endless(a) | endless(b), value)
    # If the divisor is one number, the remainder rises with the dividend between two multiples of the divisor.
    quotients = np.floor(a.lower / b.lower), np.floor(a.upper / b.lower)
    sure = (b.lower == b.upper) & (quotients[0] == quotients[1]) & (np.abs(quotients[0]) < 1 / _EPSILON)
    first, last = np.remainder(a.lower, b.lower), np.remainder(a.upper, b.lower)
    sure = sure & (first <= last) & (np.abs(first - (a.lower - quotients[0] * b.lower)) <= np.abs(b.lower) / 2)
    slack = np.abs(b.lower) * (4 * _EPSILON)
    return Interval(
        np.where(sure, np.maximum(first - slack, value.lower), value.lower),
        np.where(sure, np.minimum(last + slack, value.upper), value.upper),
        value.doubtful,
    )


def _pow(a: Interval, b: Interval) -> Interval:
    # For positive bases, powers are monotone in the base and in the exponent: the extremes lie in the corners.
    positive = Interval(np.maximum(a.lower, 0), np.maximum(a.upper, 0), a.doubtful)
    lower, upper, doubtful = spanned(positive, b, _POW)
    value = made(*outwards(lower, upper, 0.0), doubtful)
    value = undefined_where((a.lower <= 0) & (b.lower < 0), value)
    negative = a.lower < 0
    if not negative.any():
        return value
    whole = (b.lower == b.upper) & (np.floor(b.lower) == b.lower) & np.isfinite(b.lower)
    even = np.floor(b.lower / 2) * 2 == b.lower
    size = magnitude(a)
    lower, upper, _ = spanned(size, b, _POW)
    squares = made(*outwards(lower, upper, 0.0), doubtful)
    ends = _POW(a.lower, b.lower), _POW(a.upper, b.lower)
    cubes = made(*outwards(np.minimum(*ends), np.maximum(*ends)), doubtful)
    signed = selected(np.broadcast_to(even, np.broadcast_shapes(even.shape, negative.shape)), squares, cubes)
    signed = undefined_where(contains_zero(a) & (b.lower < 0), signed)
    return selected(negative & whole, signed, undefined_where(negative, value))


def _min(a: Interval, b: Interval) -> Interval:
    return Interval(np.minimum(a.lower, b.lower), np.minimum(a.upper, b.upper), a.doubtful | b.doubtful)


def _max(a: Interval, b: Interval) -> Interval:
    return Interval(np.maximum(a.lower, b.lower), np.maximum(a.upper, b.upper), a.doubtful | b.doubtful)


def _exact(rule: Callable[[Floats], Floats]) -> Callable[[Interval], Interval]:
    """A rising function without rounding."""
    return lambda a: Interval(rule(a.lower), rule(a.upper), a.doubtful)


def _rising(
    rule: Callable[[Floats], Floats], least: float = -math.inf, most: float = math.inf
) -> Callable[[Interval], Interval]:
    """A rising function that is defined everywhere, with values between `least` and `most`."""

    def applied(a: Interval) -> Interval:
        return made(*outwards(rule(a.lower), rule(a.upper), least, most), a.doubtful)

    return applied


def _sqrt(a: Interval) -> Interval:
    value = made(np.sqrt(np.maximum(a.lower, 0)), np.sqrt(np.maximum(a.upper, 0)), a.doubtful)
    return undefined_where(np.asarray(a.lower < 0), value)


def _log(a: Interval, rule: Callable[[Floats], Floats] = _LOG, pole: float = 0.0) -> Interval:
    value = made(*outwards(rule(np.maximum(a.lower, pole)), rule(np.maximum(a.upper, pole))), a.doubtful)
    return undefined_where(np.asarray(a.lower <= pole), value)


def _log1p(a: Interval) -> Interval:
    return _log(a, _named("log1p"), -1.0)


def _reaches(a: Interval, phase: float, period: float) -> Mask:
    """Whether an interval contains, or may contain, ``phase + k * period`` for a whole number k."""
    slack = np.maximum(np.abs(a.lower), np.abs(a.upper)) * (4 * _EPSILON) + 4 * _EPSILON
    first, last = (a.lower - slack - phase) / period, (a.upper + slack - phase) / period
    return np.asarray(~(np.ceil(first) > np.floor(last)))


def _periodic(rule: Callable[[Floats], Floats], crest: float) -> Callable[[Interval], Interval]:
    """Sine or cosine: 1 at the phase `crest`, and -1 half a period later."""

    def applied(a: Interval) -> Interval:
        ends = rule(a.lower), rule(a.upper)
        lower, upper = outwards(np.minimum(*ends), np.maximum(*ends), -1.0, 1.0)
        lower = np.where(_reaches(a, crest + math.pi, 2 * math.pi), -1.0, lower)
        upper = np.where(_reaches(a, crest, 2 * math.pi), 1.0, upper)
        return undefined_where(endless(a), Interval(lower, upper, a.doubtful))

    return applied


def _tan(a: Interval) -> Interval:
    value = made(*outwards(_TAN(a.lower), _TAN(a.upper)), a.doubtful)
    return undefined_where(_reaches(a, math.pi / 2, math.pi) | (value.lower > value.upper), value)


def _asin(a: Interval) -> Interval:
    value = made(*outwards(_ASIN(np.clip(a.lower, -1, 1)), _ASIN(np.clip(a.upper, -1, 1))), a.doubtful)
    return undefined_where((a.lower < -1) | (a.upper > 1), value)


def _acos(a: Interval) -> Interval:
    ends = _ACOS(np.clip(a.upper, -1, 1)), _ACOS(np.clip(a.lower, -1, 1))
    return undefined_where((a.lower < -1) | (a.upper > 1), made(*outwards(*ends, 0.0), a.doubtful))


def _cosh(a: Interval) -> Interval:
    return _rising(_named("cosh"), 1.0)(magnitude(a))


def _hypot(a: Interval, b: Interval) -> Interval:
    a, b = magnitude(a), magnitude(b)
    return made(*outwards(_HYPOT(a.lower, b.lower), _HYPOT(a.upper, b.upper), 0.0), a.doubtful | b.doubtful)


def _truth(surely: Mask, possibly: Mask, doubtful: Mask) -> Interval:
    # A comparison with an undefined value may be 0 or 1.
    return Interval(np.where(surely & ~doubtful, 1.0, 0.0), np.where(possibly | doubtful, 1.0, 0.0), doubtful)


def _lt(a: Interval, b: Interval) -> Interval:
    return _truth(a.upper < b.lower, a.lower < b.upper, a.doubtful | b.doubtful)


def _le(a: Interval, b: Interval) -> Interval:
    return _truth(a.upper <= b.lower, a.lower <= b.upper, a.doubtful | b.doubtful)


def _eq(a: Interval, b: Interval) -> Interval:
    meeting = (a.lower <= b.upper) & (b.lower <= a.upper)
    alike = (a.lower == a.upper) & (b.lower == b.upper) & (a.lower == b.lower)
    return _truth(alike, meeting, a.doubtful | b.doubtful)


def _not(a: Interval) -> Interval:
    zero = np.asarray(0.0)
    return _eq(a, Interval(zero, zero, np.asarray(False)))


def _where(condition: Interval, a: Interval, b: Interval) -> Interval:
    either = Interval(np.minimum(a.lower, b.lower), np.maximum(a.upper, b.upper), a.doubtful | b.doubtful)
    true = ~condition.doubtful & ((condition.lower > 0) | (condition.upper < 0))
    false = ~condition.doubtful & (condition.lower == 0) & (condition.upper == 0)
    value = selected(true, a, selected(false, b, either))
    return Interval(value.lower, value.upper, value.doubtful | condition.doubtful)


INTERVALS: dict[str, Callable[..., Interval]] = {
    "add": _add,
    "sub": lambda a, b: _add(a, _neg(b)),
    "mul": _mul,
    "div": _div,
    "floordiv": _floordiv,
    "mod": _mod,
    "pow": _pow,
    "min": _min,
    "max": _max,
    "neg": _neg,
    "abs": magnitude,
    "sqrt": _sqrt,
    "exp": _rising(_named("exp"), 0.0),
    "log": _log,
    "floor": _exact(np.floor),
    "ceil": _exact(np.ceil),
    "sign": _exact(np.sign),
    "sin": _periodic(_named("sin"), math.pi / 2),
    "cos": _periodic(_named("cos"), 0.0),
    "tan": _tan,
    "asin": _asin,
    "acos": _acos,
    "atan": _rising(_named("atan")),
    "sinh": _rising(_named("sinh")),
    "cosh": _cosh,
    "tanh": _rising(_named("tanh"), -1.0, 1.0),
    "lt": _lt,
    "le": _le,
    "gt": lambda a, b: _lt(b, a),
    "ge": lambda a, b: _le(b, a),
    "eq": _eq,
    "ne": lambda a, b: _not(_eq(a, b)),
    "logical_and": lambda a, b: _where(a, b, a),
    "logical_or": lambda a, b: _where(a, a, b),
    "logical_not": _not,
    "where": _where,
    # Composites that are defined or rising, which the bounds of their definitions do not show.
    "cube": _rising(lambda a: a * a * a),
    "sigmoid": _rising(_named("sigmoid"), 0.0, 1.0),
    "hypot": _hypot,
    "log1p": _log1p,
    "expm1": _rising(_named("expm1"), -1.0),
    "cbrt": _rising(_named("cbrt")),
}
"""Bounds of each primitive's value by those of its arguments.

Every basic primitive has a row. A composite without a row is bounded by its definition.
"""
