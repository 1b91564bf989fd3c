"""Numbers with few figures, equal to others up to rounding."""

from __future__ import annotations

import math

from shine.lang.forms.named_numbers import named_number, nearest_named

MOST_FIGURES = 12
"""Most figures of a decimal that replaces a number which differs from it by rounding only."""

DIGITS_OF_FUNCTIONS = 14
"""Digits that are right in the exponential or the logarithm of a rounded number."""

_FIGURES_OF_A_NAME = 3
"""Figures of a number with a name."""


def short(number: float, digits: int = 15) -> float:
    """The decimal of few figures, or the number with a name, that a number is up to rounding; itself if there is none.

    Parameters
    ----------
    number : float
    digits : int
        Digits of the number that are right.

    Examples
    --------
    >>> short(0.1 + 0.2), short(1 / 3)
    (0.3, 0.3333333333333333)
    """
    rounded = float(f"{number:.{digits}g}")
    if math.isfinite(rounded) and _decimal_figures(rounded) <= MOST_FIGURES:
        return rounded
    named = nearest_named(number)
    return number if named is None else named


def figures(number: float) -> int:
    """Length of a number for a reader: its significant figures, and its minus. All long numbers are alike."""
    own = _FIGURES_OF_A_NAME if named_number(abs(number)) is not None else _decimal_figures(number)
    own = min(own, MOST_FIGURES + 1)
    return own + (number < 0)


def _decimal_figures(number: float) -> int:
    return len(repr(abs(number)).partition("e")[0].replace(".", "").strip("0"))
