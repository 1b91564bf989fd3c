"""Sums of states that are constant along the runs, and the equations that are equal there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shine.lang.parse import parse
from shine.search.dynamics.conserved import planes_of
from shine.search.dynamics.system import SystemModel
from shine.search.models.model import Model

RNG = np.random.default_rng(0)
NAMES = ("a", "b", "c", "d")


def states(total=3.0):
    a, b = RNG.uniform(0, 1, (2, 50))
    return np.stack([a, b, (total - a - 2 * b) / 4, np.full(50, 7.0)], axis=1)


def test_a_sum_that_stays_is_a_plane_and_a_fixed_state_is_none():
    (plane,) = planes_of(states(), NAMES)
    assert plane.weights == {"a": 1.0, "b": 2.0, "c": 4.0}
    assert str(plane) == "a + 2*b + 4*c is 3 along these runs"


@pytest.mark.slow
def test_equations_with_a_state_written_by_the_others_are_equal_on_the_plane_alone():
    one = np.ones(len(NAMES))
    models = tuple(Model(parse(text, NAMES), 0.0, 1.0, {}) for text in ("-a*b", "c*exp(-d)", "a - c", "0.5"))
    system = SystemModel(models, NAMES, (), None, one, one, one[None], one, nats=math.inf)
    (plane,) = planes_of(on := states(), NAMES)
    off = on + 0.1
    others = [SystemModel(each, NAMES, (), None, one, one, one[None], one) for each in plane.others(system)]
    assert len(others) == 3
    for other in others:
        np.testing.assert_allclose(other.rates(on), system.rates(on), rtol=1e-7, atol=1e-7)
        assert np.abs(other.rates(off) - system.rates(off)).max() > 0.01
