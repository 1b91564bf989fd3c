"""Comparisons of a column with a number, as equal ones in the column's own type.

The number may have any size and any fraction: the comparison holds for the same values as in exact arithmetic, which
is Python's meaning of ``<`` between int and float. A comparison in a small type reads as many values at a time as fit.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from shine.frames.language.types import INTEGERS
from shine.lang.conditions.reading import HOLDS

Bound = tuple[str, int | float]
"""A comparison and the number to compare with."""


def integer_bound(comparison: str, number: int | float | Fraction, storage: str) -> Bound:
    """A comparison of integers of a type with any number.

    Examples
    --------
    >>> integer_bound("<", 2.5, "int8")
    ('<=', 2)
    >>> integer_bound("<", 1000, "int8")
    ('<=', 127)
    """
    least, most = INTEGERS[storage]
    always, never = (">=", least), ("<", least)
    if isinstance(number, float) and not math.isfinite(number):
        holds = HOLDS[comparison](0.0, number)  # each integer stands to an infinity and to NaN as 0 does
        return always if holds else never
    if comparison in ("==", "!="):
        whole = math.floor(number)
        if whole == number and least <= whole <= most:
            return comparison, whole
        return always if comparison == "!=" else never
    # x < c is x <= ceil(c) - 1, and so on.
    if comparison in ("<", "<="):
        bound = math.ceil(number) - 1 if comparison == "<" else math.floor(number)
        return never if bound < least else ("<=", min(bound, most))
    bound = math.floor(number) + 1 if comparison == ">" else math.ceil(number)
    return ("<", least) if bound > most else (">=", max(bound, least))


def float_bound(comparison: str, number: int | float, storage: str) -> Bound:
    """A comparison of floats of a type with any number.

    Examples
    --------
    >>> float_bound("<", 2**53 + 1, "float64")
    ('<=', 9007199254740992.0)
    """
    with np.errstate(over="ignore"):
        near = _nearest(number, storage)
    if math.isnan(near) or near == number:
        return comparison, near
    if comparison in ("==", "!="):
        # Nothing is below -inf; everything is unequal to NaN.
        return ("<", -math.inf) if comparison == "==" else ("!=", math.nan)
    if comparison in ("<", "<="):
        return ("<" if near > number else "<="), near
    return (">=" if near > number else ">"), near


def _nearest(number: int | float, storage: str) -> float:
    try:
        return float(np.dtype(storage).type(float(number)))
    except OverflowError:
        return math.inf if number > 0 else -math.inf
