"""Coefficients of sums and products: quotients of two floats, so that ``x/3`` stays a division by 3."""

from __future__ import annotations

import math

from shine.lang.forms.grammar import LARGEST_EXACT

Coefficient = tuple[float, float]
"""Numerator and positive denominator. The denominator is 1 if the quotient is exact."""

ZERO: Coefficient = (0.0, 1.0)
ONE: Coefficient = (1.0, 1.0)
MINUS_ONE: Coefficient = (-1.0, 1.0)

_LARGEST = 2.0**500
"""Coefficients beyond this, or below its inverse, are not merged: their products could overflow or underflow."""


class Unfit(Exception):
    """No such formula exists: a constant leaves its range, or a function is not allowed. Never escapes this package."""


def coefficient(numerator: float, denominator: float = 1.0) -> Coefficient:
    """A quotient in lowest terms, within the precision of floats.

    Raises
    ------
    Unfit
        If it leaves the range in which coefficients are merged.
    """
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    if not (1 / _LARGEST < denominator < _LARGEST and abs(numerator) < _LARGEST):
        raise Unfit
    if numerator != 0 and abs(numerator) < 1 / _LARGEST:
        raise Unfit
    if denominator == 1.0:
        return numerator, denominator
    if math.frexp(denominator)[0] == 0.5 or math.fmod(numerator, denominator) == 0:
        return numerator / denominator, 1.0
    if numerator.is_integer() and denominator.is_integer() and max(abs(numerator), denominator) < LARGEST_EXACT:
        common = math.gcd(int(numerator), int(denominator))
        return numerator / common, denominator / common
    return numerator, denominator


def times(a: Coefficient, b: Coefficient) -> Coefficient:
    """The product of two coefficients."""
    if a == ONE:
        return b
    return a if b == ONE else coefficient(a[0] * b[0], a[1] * b[1])


def plus(a: Coefficient, b: Coefficient) -> Coefficient:
    """The sum of two coefficients."""
    if a[1] == b[1]:
        return coefficient(a[0] + b[0], a[1])
    exact = coefficient(a[0] * b[1] + b[0] * a[1], a[1] * b[1])
    whole = all(part.is_integer() for part in (*a, *b)) and max(map(abs, exact)) < LARGEST_EXACT
    return exact if whole else coefficient(value(a) + value(b))


def to_the_power(a: Coefficient, exponent: int) -> Coefficient:
    """A coefficient to an integer power."""
    if a == ONE:
        return a
    if exponent < 0:
        if a[0] == 0:
            raise Unfit
        a = a[1], a[0]
    numerator, denominator = a
    for _ in range(abs(exponent) - 1):
        # The last bits of Python's power depend on the processor.
        numerator, denominator = numerator * a[0], denominator * a[1]
    return coefficient(numerator, denominator)


def negative(a: Coefficient) -> Coefficient:
    """The negative of a coefficient."""
    return -a[0], a[1]


def value(a: Coefficient) -> float:
    """A coefficient as one number."""
    return a[0] / a[1]
