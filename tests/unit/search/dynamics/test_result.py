"""The front of systems: what is compared, and what is shown."""

import math
import time
from dataclasses import replace

import numpy as np

from shine.data.trajectories import Trajectories, Trajectory
from shine.lang.parse import parse
from shine.search.dynamics.equations import Equation
from shine.search.dynamics.forms import form_of
from shine.search.dynamics.result import front_of
from shine.search.dynamics.run import fitted
from shine.search.dynamics.settings import DynamicsSettings
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


def test_a_simple_system_that_starts_anew_at_each_reading_does_not_drive_the_others_off_the_front():
    law, still = pendulum(("v", "-1.01*x"), ("0.01", "0.01"))
    flattered = replace(still, losses=law.losses / 2, restarts=59, rest=law.rest + 100)
    assert flattered.error < law.error
    assert list(front_of([law, flattered], flattered)) == [flattered, law]
    assert math.isclose(replace(law, rest=None).misfit, law.error)
