"""Short numbers for fitted constants, and the price of each, in nats.

A number is first of all a decimal, at the price of its digits. Fractions, and multiples of pi, e and roots, are
other kinds of numbers, and so rare in formulas that naming the kind costs as much as some digits. Each further choice
within a kind (which numerator, which unit) costs what choosing among all alternatives costs. So pi stands for 3.1416,
which needs more digits than its name is worth, but not for 3.14 or 3.1, and 1/3 for 0.333, but not for 0.33.

A decimal's power of ten costs nothing: the data give the magnitude of a constant, whatever the units are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from shine.base.typing import Floats
from shine.lang.forms.named_numbers import LARGEST_DENOMINATOR, LARGEST_NUMERATOR, named_numbers

LOG_10 = math.log(10)
"""Cost of a digit."""

MOST_DIGITS = 17
"""Digits that tell every float64 from all others."""

_DECIMAL, _ONE, _FRACTION, _NAMED = math.log(2), math.log(6), math.log(30), math.log(3000)
"""Costs of the kinds: every second constant is a decimal, every sixth 1 or -1, and so on."""

_ZERO = _DECIMAL - 1.5
"""Zero is a decimal without digits, and its term or factor need not be written down either."""

_LARGEST_DIVISOR = 99_999
"""Largest whole number whose inverse is tried: ``x/26``."""

_PI, _RARER = math.log(4), math.log(15)
"""Costs of naming a unit: pi is more common than all others together."""


@dataclass(frozen=True)
class Numerals:
    """Numbers near a constant.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
    costs : ndarray of shape (n,)
        Nats that it costs to write each down.
    """

    numbers: Floats
    costs: Floats


def cost_as_measured(value: float, deviation: float) -> float:
    """Nats that a constant costs as a decimal, up to its deviation."""
    digits = math.log(max(abs(value) / deviation, 1.0)) / LOG_10
    return _DECIMAL + min(digits, MOST_DIGITS) * LOG_10


@lru_cache(maxsize=1 << 14)
def cost_as_written(value: float) -> float:
    """Nats that it costs to write down just this number."""
    found = numerals(value)
    return float(found.costs.min(where=found.numbers == value, initial=_DECIMAL + MOST_DIGITS * LOG_10))


def numerals(value: float) -> Numerals:
    """The numbers that may replace a constant: zero, decimals near it, simple fractions, numbers with names."""
    numbers, costs = [0.0, math.copysign(1.0, value)], [_ZERO, _ONE]
    for digits in range(1, MOST_DIGITS + 1):
        numbers.append(rounded(value, digits))
        costs.append(_DECIMAL + digits * LOG_10)
        if numbers[-1] == value:
            break
    if 1 / _LARGEST_DIVISOR <= abs(value) < 1:
        divisor = round(1 / value)
        numbers.append(1 / divisor)
        costs.append(_FRACTION + _integer_cost(abs(divisor)))
    simple = _fractions()
    return Numerals(
        np.concatenate([np.copysign(simple.numbers, value), numbers]), np.concatenate([simple.costs, costs])
    )


def is_simple(value: float) -> bool:
    """Whether a number is a simple fraction or has a name: rounding it would spoil it."""
    return abs(value) in _by_number() or (1 / _LARGEST_DIVISOR <= abs(value) < 1 and 1 / round(1 / value) == value)


def rounded(value: float, digits: int) -> float:
    """A number, rounded to significant digits."""
    return float(f"{value:.{digits - 1}e}")


def rounded_to(value: float, step: float) -> float:
    """A number, rounded to the digits that are worth at least a step; unchanged if it is no larger than the step."""
    if not 0 < step < abs(value):
        return value
    return rounded(value, min(max(exponent_of(value) - exponent_of(step) + 1, 1), MOST_DIGITS))


def exponent_of(value: float) -> int:
    """The decimal exponent of a number's first digit."""
    return int(f"{value:.0e}".partition("e")[2])


def _integer_cost(number: int) -> float:
    """Cost of a positive whole number; the shares ``1/(n*(n + 1))`` of all add up to 1."""
    return math.log(number) + math.log(number + 1)


@cache
def _fractions() -> Numerals:
    """The simple numbers as arrays, in ascending order."""
    found = _by_number()
    numbers = np.array(sorted(found))
    return Numerals(numbers, np.array([found[number] for number in numbers.tolist()]))


@cache
def _by_number() -> dict[float, float]:
    """The cost of each positive fraction, and of each number with a name."""
    found: dict[float, float] = {}
    for denominator in range(1, LARGEST_DENOMINATOR + 1):
        for numerator in range(1, LARGEST_NUMERATOR + 1):
            if math.gcd(numerator, denominator) == 1:
                found[numerator / denominator] = _FRACTION + _integer_cost(numerator) + _integer_cost(denominator)
    for number, named in named_numbers().items():
        kind = _NAMED + (_PI if named.unit == "pi" and not named.is_below else _RARER)
        found[number] = kind + _integer_cost(named.numerator) + _integer_cost(named.denominator)
    return found
