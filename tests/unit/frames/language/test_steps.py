"""Comparisons with numbers of any size hold for the same values as in Python."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from shine.frames.language.steps import float_bound, integer_bound
from shine.frames.language.types import INTEGERS
from shine.lang.conditions.reading import FLIPPED, HOLDS

NUMBERS = [0, 1, -1, 0.5, -0.5, 127, 128, -128, -129, 255, 256, 2.5, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1,
           2**64, -(2**63) - 1, 2.0**63, 1e300, -1e300, 0.1, math.inf, -math.inf, math.nan, 10**400]  # fmt: skip


@pytest.mark.parametrize("storage", INTEGERS)
def test_bounds_of_integers(storage):
    least, most = INTEGERS[storage]
    values = {least, least + 1, most, most - 1, 0, 1, 2, 3, 127 if most >= 127 else 0}
    for comparison, number in itertools.product(HOLDS, [*NUMBERS, Fraction(1, 3), Fraction(7, 2)]):
        new, bound = integer_bound(comparison, number, storage)
        assert least <= bound <= most
        for value in values:
            assert HOLDS[new](value, bound) == HOLDS[comparison](value, number), (comparison, number, value)


@pytest.mark.parametrize("storage", ["float32", "float64"])
def test_bounds_of_floats(storage):
    kind = np.dtype(storage).type
    with np.errstate(over="ignore"):
        near = [kind(float(number)) for number in NUMBERS if not (isinstance(number, int) and number > 10**300)]
    values = {
        *near,
        *(np.nextafter(value, kind(np.inf)) for value in near),
        *(np.nextafter(v, kind(-np.inf)) for v in near),
    }
    for comparison, number in itertools.product(HOLDS, NUMBERS):
        new, bound = float_bound(comparison, number, storage)
        assert math.isnan(bound) or float(kind(bound)) == bound
        for value in values:
            assert HOLDS[new](float(value), bound) == HOLDS[comparison](float(value), number), (
                comparison,
                number,
                value,
            )


def test_a_flipped_comparison_is_that_of_the_exchanged_sides():
    for comparison, (a, b) in itertools.product(HOLDS, [(1, 2), (2, 1), (1, 1)]):
        assert HOLDS[FLIPPED[comparison]](b, a) == HOLDS[comparison](a, b)
