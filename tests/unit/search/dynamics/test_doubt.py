"""What no system explains is told from what a law, or nearly a law, explains."""

import math
from dataclasses import replace

import numpy as np
import pytest

from shine.data.trajectories import Trajectories, Trajectory
from shine.lang.parse import parse
from shine.search.dynamics.doubt import doubt_about
from shine.search.dynamics.equations import Equation
from shine.search.dynamics.forms import form_of
from shine.search.dynamics.run import fitted
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.models.model import Model

COUNT, STEP = 120, 0.1
PHASES = np.arange(COUNT)[:, None]


def form(*runs, step=STEP, **settings):
    """Readings with an even step."""
    states = tuple(f"x{number}" for number in range(runs[0].shape[1]))
    given = [Trajectory(step * np.arange(len(own)), own, np.zeros((len(own), 0))) for own in runs]
    return form_of(Trajectories(tuple(given), states), DynamicsSettings(**settings))


def doubt(asked, *rates):
    """What is said of the system of some rates, fitted to readings."""
    states = asked.trajectories.states
    equations = [Equation(Model(parse(rate, states), 0.0, 1.0)) for rate in rates]
    return doubt_about(fitted(equations, asked, lambda: False), asked)


NOISE, WALK, CURVE = "no reading tells anything of the next", "as a random walk does", "do not follow from the states"

UNEXPLAINED = {
    "white": (lambda random: random.standard_normal((COUNT, 2)), NOISE),
    "walk": (lambda random: np.add.accumulate(random.standard_normal((COUNT, 2))), WALK),
    "fast waves": (lambda random: np.sin(PHASES * [2.5, 2.9]) + 0.02 * random.standard_normal((COUNT, 2)), NOISE),
    "two waves": (lambda _: np.sin(0.3 * PHASES) + np.sin(0.47 * PHASES + 1), CURVE),
    "a wave in noise": (lambda random: np.sin(0.3 * PHASES) + 0.2 * random.standard_normal((COUNT, 1)), CURVE),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNEXPLAINED)
def test_nothing_was_found_and_why(kind):
    make, why = UNEXPLAINED[kind]
    readings = make(np.random.default_rng([5, 0]))
    for rate in ("0.1", "0.5 - x0"):
        told = doubt(form(readings), *[rate.replace("x0", f"x{state}") for state in range(readings.shape[1])])
        assert why in told
        assert "What may help: read " in told
        assert "steps of 0.1" in told or why == CURVE


def logistic(noise, start=0.3, count=60):
    states = 5 / (1 + (5 / start - 1) * np.exp(-0.8 * STEP * np.arange(count)))
    return (states + noise * np.random.default_rng(6).standard_normal(count))[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_law_is_an_answer_with_any_noise_and_so_is_a_system_that_is_nearly_right(noise):
    for rate in ("0.81*x0 - 0.15*x0**2", "1.4 - 0.25*abs(x0 - 2.5)**1.9"):
        assert not doubt(form(logistic(noise)), rate)
    assert CURVE in doubt(form(logistic(noise, 0.01, 120)), "-x0")


@pytest.mark.slow
def test_runs_gaps_and_maps_are_judged_too():
    runs = [logistic(0.05, start) for start in (0.1, 0.6, 2.0)]
    runs[0][::3] = np.nan
    assert not doubt(form(*runs), "0.81*x0 - 0.15*x0**2")
    assert doubt(form(*runs), "1.0")
    values = [0.3]
    for _ in range(50):
        values.append(3.7 * values[-1] * (1 - values[-1]))
    chaos = form(np.array(values)[:, None], step=1.0, kind="map")
    assert not doubt(chaos, "3.71*x0*(1 - x0)")
    assert NOISE in doubt(chaos, "0.6")


def test_a_system_that_does_not_reach_the_end_is_no_answer():
    asked = form(logistic(0.0))
    model = fitted([Equation(Model(parse("0.81*x0 - 0.15*x0**2", ("x0",)), 0.0, 1.0))], asked, lambda: False)
    told = doubt_about(replace(model, losses=np.array([math.inf]), nats=math.inf), asked)
    assert told.startswith("the best system does not follow the readings")
