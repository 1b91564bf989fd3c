"""Unknowns of a fit: constants that are one number, that are known, and that have bounds."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.rollouts.fitting import fit_rollouts
from shine.evaluate.rollouts.system import CompiledSystem
from shine.evaluate.rollouts.unknowns import Unknowns
from shine.lang.parse import parse


def test_constants_may_be_multiples_of_an_unknown():
    tied = Unknowns(np.array([0, 1, 0]), np.full(2, -np.inf), np.array([2.0, np.inf]), np.array([1.0, 1.0, 3.0]))
    assert tied.added(np.array([[1.0, 10.0, 100.0]]), 1).tolist() == [[301.0, 10.0]]
    assert tied.added(np.array([[1.0], [10.0], [100.0]]), 0).tolist() == [[301.0], [10.0]]
    assert tied.moved(np.array([1.0, 5.0, 3.0]), np.array([0.5, 1.0])).tolist() == [1.5, 6.0, 4.5]
    assert tied.moved(np.array([1.0, 5.0, 3.0]), np.array([8.0, 0.0])).tolist() == [2.0, 5.0, 6.0]
    assert tied.of_constants(np.array([[4.0, 1.0], [1.0, 9.0]])).tolist() == [[4, 1, 12], [1, 9, 3], [12, 3, 36]]


@pytest.fixture(scope="module")
def epidemic():
    """Susceptible, ill and recovered people, with noise; and the system with the rates 0.4 and 0.1."""
    times = np.linspace(0, 60, 61)

    def rates(t, y):
        return [-0.4 * y[0] * y[1], 0.4 * y[0] * y[1] - 0.1 * y[1], 0.1 * y[1]]

    exact = solve_ivp(rates, (0, 60), [0.99, 0.01, 0], t_eval=times, rtol=1e-9, atol=1e-12).y.T
    states = exact + 0.01 * np.random.default_rng(0).standard_normal(exact.shape)
    names = ("S", "I", "R")
    data = Trajectories((Trajectory(times, states, np.zeros((61, 0))),), names)
    texts = ("-S*I*0.5", "0.5*S*I - 0.2*I", "0.2*I")
    return data, CompiledSystem([parse(text, names) for text in texts], names)


def test_what_leaves_a_state_enters_another_to_the_last_bit(epidemic):
    data, system = epidemic
    fit = fit_rollouts(system, data, unknowns=Unknowns.of(np.array([0, 0, 1, 1])))
    assert fit.constants[0] == fit.constants[1] == pytest.approx(0.4, abs=0.01)
    assert fit.constants[2] == fit.constants[3] == pytest.approx(0.1, abs=0.003)
    apart = fit_rollouts(system, data)
    assert apart.constants[0] != apart.constants[1]
    # One number is known better from all of its places.
    assert fit.covariance[0, 0] < min(apart.covariance[0, 0], apart.covariance[1, 1])
    assert fit.covariance[0, 0] == fit.covariance[0, 1] == fit.covariance[1, 1]


def test_a_bound_that_the_readings_speak_against_is_reached_and_the_others_are_the_best_there(epidemic):
    data, system = epidemic
    numbers = np.array([0, 0, 1, 1])
    bounded = fit_rollouts(system, data, unknowns=Unknowns(numbers, np.array([0.42, 0.0]), np.array([9.0, 1.0])))
    assert bounded.constants[0] == 0.42
    known = fit_rollouts(system, data, np.array([0.42, 0.42, 0.2, 0.2]), unknowns=Unknowns.of(np.array([-1, -1, 0, 0])))
    assert bounded.constants[2] == pytest.approx(known.constants[2], rel=1e-3)
