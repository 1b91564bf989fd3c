"""The search for the end of a profile, on profiles whose ends are known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shine.evaluate.inference.profiles import MOST_TRIALS, TOLERANCE, Point, end_of

WIDTH = 2.0


def searched(root, unit=1.0, centre=0.0):
    """The end in standard errors from the centre, and the distances that were tried."""
    tried = []

    def point(value, near):
        tried.append((value - centre) / unit)
        return Point(value, float(root(tried[-1])), near)

    found = end_of(point, Point(centre, 0.0, np.zeros(1)), unit, WIDTH)
    return (found - centre) / unit, tried


# The root of twice the fall of a log-likelihood at t standard errors, and the t at which it is 2.
PROFILES = {
    "bends down": (lambda t: 2 * math.log1p(t), math.e - 1),
    "bends down far out": (lambda t: 0.5 * math.log1p(t), math.exp(4) - 1),
    "levels off a little above": (lambda t: 2.01 * math.tanh(t / 2), 2 * math.atanh(2 / 2.01)),
    "square root": (lambda t: math.sqrt(t) / 10, 400.0),
    "nearly level, 8000 standard errors out": (lambda t: WIDTH * (t / 8000) ** 0.2, 8000.0),
    "bends up": (lambda t: WIDTH * (t / 3) ** 3, 3.0),
    "bends up near": (lambda t: math.sinh(3 * t), math.asinh(2) / 3),
    "flat, then steep": (lambda t: WIDTH * (t / 5) ** 9, 5.0),
    "flat, then very steep": (lambda t: WIDTH * (t / 0.3) ** 9, 0.3),
    "zero at first": (lambda t: max(0.0, t - 3), 5.0),
}


@pytest.mark.parametrize(("unit", "centre"), [(1.0, 0.0), (-0.7, 3.0)])
@pytest.mark.parametrize("profile", PROFILES)
def test_an_end_is_where_the_root_is_the_width(profile, unit, centre):
    root, expected = PROFILES[profile]
    found, tried = searched(root, unit, centre)
    assert min(abs(found - expected), abs(root(found) - WIDTH)) < TOLERANCE * (1 + 1e-9)
    assert len(tried) < 25


@pytest.mark.parametrize("wall", [1.3, 7.0])
def test_at_the_end_of_a_domain_it_is_the_last_value_inside(wall):
    found, tried = searched(lambda t: 0.1 * t if t < wall else math.inf)
    assert wall - TOLERANCE < found < wall
    assert len(tried) < 20


@pytest.mark.parametrize(("where", "before", "after"), [(5.5, 1.0, 3.0), (6.05, 0.2, 1e6), (17.5, 0.1, WIDTH + 0.003)])
def test_of_a_jump_it_is_the_far_side(where, before, after):
    # The line through two roots says little about a jump between them.
    found, _ = searched(lambda t: before if t < where else after)
    assert where <= found < where + TOLERANCE


@pytest.mark.parametrize("unit", [1.0, -1.0])
@pytest.mark.parametrize("root", [lambda t: min(t, 1.0), lambda t: 1.9 * math.tanh(t)], ids=["edge", "tanh"])
def test_a_likelihood_that_levels_off_has_no_end_and_few_fits_tell(root, unit):
    found, tried = searched(root, unit)
    assert found == math.inf
    assert len(tried) <= 13
    assert max(tried) < 50


def test_a_search_that_does_not_arrive_ends_without_an_end():
    count = iter(range(1000))
    found, tried = searched(lambda t: WIDTH * (0.6 + 0.011 * next(count)))
    assert found == math.inf
    assert len(tried) == MOST_TRIALS
