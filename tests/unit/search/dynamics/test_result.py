"""The front of systems: what is compared, and what is shown."""

import time
from dataclasses import replace

import numpy as np
import pytest

from shine.base.errors import DataError
from shine.data.trajectories import Trajectories, Trajectory
from shine.lang.parse import parse
from shine.search.dynamics.equations import Equation
from shine.search.dynamics.forms import form_of
from shine.search.dynamics.result import distinct, front_of, next_experiment
from shine.search.dynamics.run import fitted
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.dynamics.system import SystemModel
from shine.search.models.model import Model


def pendulum(*rates):
    """Systems fitted to a pendulum that swings far, with noise."""
    times = np.linspace(0, 30, 120)
    states = np.column_stack([np.cos(times), -np.sin(times)])
    states += 0.05 * np.random.default_rng(0).standard_normal(states.shape)
    form = form_of(Trajectories((Trajectory(times, states, np.zeros((120, 0))),), ("x", "v")), DynamicsSettings())
    began = time.monotonic()
    models = [[Equation(Model(parse(text, ("x", "v")), 0.0, 1.0)) for text in own] for own in rates]
    return [fitted(own, form, lambda: time.monotonic() > began + 30) for own in models]


def test_new_starts_are_counted_and_paid_for():
    law, still = pendulum(("v", "-1.01*x"), ("0.01", "0.01"))
    assert law.restarts == 0
    assert still.restarts > 5
    # Without its restarts it would describe the readings no better than their mean.
    assert still.error < 0.6
    assert still.rest - law.rest > 2 * still.restarts
    front = front_of([law, still])
    assert list(front) == [still, law]
    lines = repr(front).splitlines()
    assert lines[0].split() == ["complexity", "error", "starts", "system"]
    assert lines[1].split()[3] == str(still.restarts + 1)


def test_an_exact_map_is_told_from_the_next_in_nats():
    states = 0.5 ** np.arange(20.0)[:, None]
    runs = (Trajectory(np.arange(20.0), states, np.zeros((20, 0))),)
    form = form_of(Trajectories(runs, ("x",)), DynamicsSettings(kind="map"))
    exact, near = (
        fitted([Equation(Model(parse(f"x*{size}", ("x",)), 0.0, 1.0))], form, lambda: True) for size in (0.5, 0.6)
    )
    assert exact.error == 0
    assert "the shortest description of the trajectories; the next needs" in front_of([near, exact]).reason


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


COLUMNS = {"x": np.linspace(0.1, 2, 20), "y": np.linspace(1, -1, 20)}


@pytest.mark.parametrize("other", ["x - x*y", "-x*(y - 1)", "x - x*y*1.00001"])
def test_the_best_system_written_in_another_way_is_no_rival(other):
    best, same, different = system("x*(1 - y)", "-y"), system(other, "-y", nats=0.5), system("x", "-y", nats=1.0)
    assert distinct([same, different, best], COLUMNS) == [best, different]
    assert distinct([same, different, best]) == [best, same, different]
    reason = front_of(distinct([same, different, best], COLUMNS)).reason
    assert reason.endswith("the next needs 1.0 nats more")  # it is on the front
    hidden = replace(different, losses=2 * different.losses, equations=system("x + 0.001*x*y", "-y").equations)
    assert front_of([best, hidden]).reason.endswith("the next needs 1.0 nats more: x' = x + 0.001*x*y; y' = -y")


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
