"""Sums and products as tables.

A sum is a constant and a coefficient for each part. A product is a coefficient and an integer exponent for each factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from shine.lang.simplify.coefficients import ONE, ZERO, Coefficient, plus, times


class Product(NamedTuple):
    """A coefficient, and a nonzero exponent for each factor."""

    coefficient: Coefficient
    factors: Mapping[int, int]


class Sum(NamedTuple):
    """A constant, and a nonzero coefficient for each part. Parts themselves have no coefficients."""

    constant: Coefficient
    parts: Mapping[int, Coefficient]


def combined(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """The factors of the product of two products."""
    result = dict(one)
    for base, exponent in other.items():
        total = result.pop(base, 0) + exponent
        if total:
            result[base] = total
    return result


def raised(factors: Mapping[int, int], exponent: int) -> dict[int, int]:
    """The factors of a power of a product."""
    return {base: own * exponent for base, own in factors.items()}


def times_sum(factor: Coefficient, total: Sum) -> Sum:
    """A multiple of a sum."""
    if factor == ONE:
        return total
    return Sum(times(factor, total.constant), {part: times(factor, own) for part, own in total.parts.items()})


def plus_sum(one: Sum, other: Sum) -> Sum:
    """The sum of two sums."""
    parts = dict(one.parts)
    for part, factor in other.parts.items():
        parts[part] = plus(parts.get(part, ZERO), factor)
    return Sum(plus(one.constant, other.constant), {part: factor for part, factor in parts.items() if factor[0] != 0})
