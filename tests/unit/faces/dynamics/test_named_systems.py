"""Searches for systems of textbooks: a pendulum with its control, one by noisy positions, a stiff reaction."""

from __future__ import annotations

import numpy as np
import pytest

import shine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def solved(rates, start, times, method="DOP853"):
    integrate = pytest.importorskip("scipy.integrate")
    return integrate.solve_ivp(rates, times[[0, -1]], start, method, times, rtol=1e-10, atol=1e-14).y.T


def test_a_driven_pendulum_is_found_with_its_control():
    def force(time):
        return 1.2 * np.cos(0.7 * time)

    def rates(time, state):
        return [state[1], -2 * np.sin(state[0]) - 0.3 * state[1] + force(time)]

    times = np.linspace(0, 15, 151)
    readings = solved(rates, [1.0, 0.0], times)
    model = shine.SymbolicDynamics(primitives=["add", "sub", "mul", "div", "sin", "cos"], max_time=150, random_state=0)
    model.fit(readings, times, force, states=["a", "w"])
    other = solved(rates, [-0.5, 1.5], times)
    np.testing.assert_allclose(model.simulate([-0.5, 1.5], times, force), other, atol=1e-3)


def test_robertsons_stiff_reaction_is_found():
    def rates(_, y):
        slow, fast, back = 0.04 * y[0], 3e7 * y[1] ** 2, 1e4 * y[1] * y[2]
        return [back - slow, slow - back - fast, fast]

    times = np.concatenate([np.linspace(0, 1, 40), np.geomspace(1.2, 400, 80)])
    readings = solved(rates, [1.0, 0.0, 0.0], times, "Radau")
    model = shine.SymbolicDynamics(primitives=["add", "sub", "mul"], max_time=250, random_state=0)
    model.fit(readings, times)
    other = solved(rates, [0.5, 0.0, 0.5], times, "Radau")
    np.testing.assert_allclose(model.simulate([0.5, 0.0, 0.5], times), other, rtol=1e-4, atol=1e-7)
    assert '"solver": Kvaerno5()' in model.export("jax")


def test_a_function_of_the_time_is_asked_between_the_readings_of_a_fit():
    times = np.linspace(0, 12, 16)  # a swing of the control has 2.6 readings
    states = 1.3 * np.exp(-times) + 0.1 * np.sin(3 * times) - 0.3 * np.cos(3 * times)

    def push(time):
        return np.sin(3 * time)

    model = shine.SymbolicDynamics(template="x' = c*u - k*x", max_time=40, random_state=0)
    model.fit(states, times, push, states=["x"])
    np.testing.assert_allclose(model.best_.constants, 1.0, atol=1e-4)
    assert len(model.trajectories_.runs[0].times) > 50
    assert model.score(states, times, push) > 0.999999
