"""Waves over evenly spaced values: the same values at the rows, and no more than half a turn between them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shine.evaluate.kernels.kernel import Kernel
from shine.lang.parse import parse
from shine.search.finishing.waves import grids_of, with_slow_waves

RNG = np.random.default_rng(0)
NAMES = ("x", "y", "z")


def rows(origin=0.0, step=10.0):
    """An even column, one with gaps, and one of any values."""
    count = 24
    return np.stack([origin + step * np.arange(count), 0.5 * RNG.permutation(3 * count)[:count], RNG.random(count)])


def slowed(text, columns):
    return with_slow_waves(parse(text, NAMES), grids_of(NAMES, columns), list(columns))


def test_grids_are_of_even_values_with_or_without_gaps():
    columns = rows(3.0)
    assert grids_of(NAMES, columns) == {"x": (3.0, 10.0), "y": (columns[1].min(), 0.5)}
    assert grids_of(("a", "b", "c"), np.array([[1.0, 1, 1, 1], [0, 1, 0, 1], [0, 1, 2.7, 3]])) == {}


@settings(max_examples=30)
@given(
    st.sampled_from(
        ["sin(A*x + B)", "cos(A*x)*exp(y)", "tan(A*x - B)", "cos(A*x + z)", "sin(A*y - A*x)", "sin(x*A - z*z)"]
    ),
    st.floats(-50, 50),
    st.floats(-9, 9),
    st.sampled_from([0.0, 3.0, -7.77]),
    st.sampled_from([0.1, 1.0, 10.0]),
)
def test_values_stay_and_no_wave_turns_more_than_half_a_turn_from_row_to_row(text, factor, phase, origin, step):
    columns = rows(origin, step)
    text = text.replace("A", repr(factor)).replace("B", repr(phase)).replace("- -", "+ ")
    tree, slow = parse(text, NAMES), slowed(text, columns)
    values, found = Kernel(tree)(*columns), Kernel(slow)(*columns)
    steady = np.abs(values) < 100  # beside a pole of a tangent, the last digits of an angle count
    np.testing.assert_allclose(
        found[steady], values[steady], rtol=1e-6, atol=1e-6 * np.abs(values[steady]).max(initial=1)
    )
    again = with_slow_waves(slow, grids_of(NAMES, columns), list(columns))
    assert str(again) == str(slow)
    # The factor of x, from angles a quarter of a step apart.
    if text.startswith("sin(") and "y" not in text and "z" not in text:
        angle = parse(str(slow)[4:-1], NAMES) if str(slow).startswith("sin(") else None
        if angle is not None:
            one, other = Kernel(angle)(np.array([0.0, step]), np.zeros(2), np.zeros(2))
            assert abs(other - one) <= math.pi * (1 + 1e-9)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("81*cos(3.124*x)**2", "81*cos(-0.0175926"),
        ("cos((3.3 - 0.01)*x)**2", "cos(0.148407"),
        ("sin(0.54597*x - 1.35 - 0.0066*sin(0.8*x))", "sin(-0.0823485"),
        ("17*cos(447859090.0751*x + 249212836941.885)", "17*cos(-0.0371299"),
    ],
)
def test_squared_nested_and_absurd_waves_are_slowed(text, wanted):
    assert str(slowed(text, rows())).startswith(wanted)


@pytest.mark.parametrize(
    "text", ["sin(0.3*x + 1)", "sin(5*z)", "sin(x*z)", "exp(5*x/1000)", "cos(0.31*x)**3 + cos(0.31*x)"]
)
def test_slow_waves_others_and_odd_powers_stay(text):
    assert str(slowed(text, rows())) == str(parse(text, NAMES))
