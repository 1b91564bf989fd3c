"""What users of PySINDy bring: a step in place of times, controls, maps, trajectories of different lengths."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import shine

STEP = 0.01


def lorenz(t, state, u=0.0):
    x, y, z = state
    return [10 * (y - x) + u, x * (28 - z) - y, x * y - 8 / 3 * z]


def trajectory(rates, start, count):
    times = STEP * np.arange(count)
    return solve_ivp(rates, (0, times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-10).y.T


@pytest.mark.slow
def test_lorenz_from_trajectories_of_different_lengths():
    runs = [trajectory(lorenz, [-8, 8, 27], 300), trajectory(lorenz, [5, -5, 15], 170)]
    model = shine.SymbolicDynamics(primitives=["add", "sub", "mul"], max_time=25, random_state=0)
    model.fit(runs, t=STEP)
    state = np.random.default_rng(1).uniform(-10, 10, (5, 3))
    np.testing.assert_allclose(model.predict(state), [lorenz(0.0, each) for each in state], atol=1e-3)


@pytest.mark.slow
def test_a_map():
    x = np.empty((200, 2))
    x[0] = 0.1, 0.3
    for now, following in pairwise(x):
        following[:] = 1 - 1.4 * now[0] ** 2 + now[1], 0.3 * now[0]
    model = shine.SymbolicDynamics(kind="map", primitives=["add", "sub", "mul"], max_time=10, random_state=0)
    model.fit(x)
    following = model.predict(x)
    np.testing.assert_allclose(following[:-1], x[1:], atol=1e-9)
