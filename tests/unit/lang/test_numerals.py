"""Prices of numbers: what is short is cheap, and names cost what they are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.lang.numerals import cost_as_measured, exponent_of, numerals, rounded, rounded_to


def best(value, deviation):
    """The number of least cost, the loss of likelihood included."""
    found = numerals(value)
    losses = found.costs + ((found.numbers - value) / deviation) ** 2
    return float(found.numbers[losses.argmin()])


@pytest.mark.parametrize(
    ("value", "deviation", "expected"),
    [
        (5 * math.pi, 0.03, 15.7),
        (3 / math.pi, 0.004, 0.95),
        (2.003, 0.01, 2.0),
        (math.sqrt(3), 0.005, 1.73),
        (math.pi, 0.005, 3.14),
        (1.02, 0.03, 1.0),
        (1 / 26, 0.0003, 0.0385),
        (0.33, 0.02, 0.3),
    ],
)
def test_a_number_with_few_digits_is_a_decimal(value, deviation, expected):
    assert best(value, deviation) == expected


@pytest.mark.parametrize(
    "number", [math.pi, 5 * math.pi, 3 / math.pi, math.sqrt(2), 1 / 3, 5 / 12, 1 / 26, 6.674e-11, 0.0821, -7.0, 1e30]
)
def test_a_number_with_many_digits_is_what_it_was_written_as(number):
    assert best(number * (1 + 3e-16), 1e-14 * abs(number)) == number


@given(st.floats(1e-250, 1e250), st.floats(1e-15, 0.3))
def test_some_decimal_is_about_as_short_as_the_digits_that_are_determined(value, relative):
    found = numerals(value)
    losses = found.costs + 0.5 * np.minimum(abs(found.numbers / value - 1) / relative, 1e9) ** 2
    assert losses.min() <= cost_as_measured(value, relative * value) + math.log(10) + 1.0


@given(st.floats(-1e300, 1e300).filter(lambda value: abs(value) > 1e-300), st.integers(1, 17))
def test_rounding_leaves_half_a_unit_of_the_last_digit(value, digits):
    assert abs(rounded(value, digits) - value) <= (0.5 + 1e-16 * 10.0**digits) * 10.0 ** (
        exponent_of(value) - digits + 1
    )
    step = 10.0 ** exponent_of(value)
    assert abs(rounded_to(value, 0.01 * step) - value) <= 0.0051 * step
