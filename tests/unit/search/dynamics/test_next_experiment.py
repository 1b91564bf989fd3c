from dataclasses import replace

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.lang.parse import parse
from shine.search.dynamics.next_experiment import next_experiment
from shine.search.dynamics.system import SystemModel
from shine.search.models.model import Model


def system(*rates, nats=0.0, start=(0.5, 0.5)):
    states = ("x", "y")[: len(rates)]
    equations = tuple(Model(parse(rate, states), 0.0, 1.0) for rate in rates)
    width = len(states)
    return SystemModel(
        equations=equations,
        states=states,
        controls=(),
        time=None,
        losses=np.full(width, 1e-4),
        variances=np.ones(width),
        starts=np.array([start[:width]]),
        noise=np.full(width, 0.01),
        nats=nats,
    )


TIMES = np.linspace(0, 4, 41)


def test_deviations_of_a_simulation_are_those_of_the_constants_that_matter():
    plain = replace(system("y", "-x"), covariance=np.zeros((0, 0)))
    states, deviations = plain.simulate([1.0, 0.0], TIMES, return_std=True)
    np.testing.assert_allclose(states[:, 0], np.cos(TIMES), atol=1e-7)
    assert not deviations.any()
    decay = replace(system("-0.5*x", "-0.25*y"), covariance=np.diag([0.01, np.inf]))
    _, deviations = decay.simulate([1.0, 0.0], TIMES, return_std=True)
    np.testing.assert_allclose(deviations[:, 0], 0.1 * TIMES * np.exp(-0.5 * TIMES), atol=1e-7)
    assert not deviations[:, 1].any()
    assert np.isinf(decay.simulate([1.0, 1.0], TIMES, return_std=True)[1][1:, 1]).all()


def test_rivals_that_agree_on_a_line_are_told_apart_away_from_it():
    """On x = y, x*y and x**2 are the same."""
    rivals = [system("-x*y", "-x*y"), system("-x**2", "-y**2", nats=0.5)]
    found = next_experiment(rivals, {"x": (0, 2), "y": (0, 2)}, TIMES, np.ones(2))
    x, y = found.start.values()
    assert abs(x - y) > 1
    assert found.before < 1e-6 < 10 < found.distance
    assert found.weights[0] > found.weights[1]


def test_fixed_values_and_states_outside_of_the_box_stay():
    rivals = [system("-x*y", "-y"), system("-x", "-y")]
    found = next_experiment(rivals, {"x": 1.5}, TIMES, np.ones(2))
    assert found.start == {"x": 1.5, "y": 0.5}


def test_an_explosion_counts_as_a_difference():
    rivals = [system("-x"), system("x**2 - x - 0.25")]
    found = next_experiment(rivals, {"x": (0.0, 3.0)}, TIMES, np.ones(1))
    assert found.start["x"] > 1.2
    assert np.isnan(found.trajectories[1]).any()


@pytest.mark.parametrize(
    "box, message",
    [
        ({"z": (0, 1)}, "the box names 'z'; the states are x, y"),
        ({"x": (1, 0)}, r"the box has \(1, 0\) for 'x'; give a value, or \(lowest, highest\)"),
        ({"x": (0, float("inf"))}, "give a value"),
    ],
)
def test_a_wrong_box_is_refused(box, message):
    rivals = [system("-x*y", "-y"), system("-x", "-y")]
    with pytest.raises(DataError, match=message):
        next_experiment(rivals, box, TIMES, np.ones(2))


def test_one_system_has_no_rival():
    with pytest.raises(DataError, match="the data leave one system"):
        next_experiment([system("-x", "-y")], {}, TIMES, np.ones(2))
