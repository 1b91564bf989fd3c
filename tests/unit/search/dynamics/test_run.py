"""Systems of known solutions are found from their trajectories, and integrated from other initial values."""

import pickle
import time
from dataclasses import replace

import numpy as np
import pytest

from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.rollouts.system import CompiledSystem
from shine.lang.parse import parse
from shine.search.dynamics.run import find_dynamics
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.evolution.observers import Observers
from shine.search.problem.settings import SearchSettings

OMEGA, DAMPING = 1.3, 0.2

WORK = Observers(clock=time.process_time)
"""Seconds of the processor: other processes take none of them."""


def settings(seconds=6.0, **options):
    search = SearchSettings()
    stop = replace(search.stop, seconds=seconds)
    return DynamicsSettings(replace(search, stop=stop, fitness=replace(search.fitness, threads=1)), **options)


def oscillation(times, start=1.0):
    """A damped oscillator: x' = v, v' = -(OMEGA**2 + DAMPING**2)*x - 2*DAMPING*v."""
    decay = start * np.exp(-DAMPING * times)
    x = decay * np.cos(OMEGA * times)
    v = decay * (-DAMPING * np.cos(OMEGA * times) - OMEGA * np.sin(OMEGA * times))
    return np.stack([x, v], axis=1)


def together(*runs, states=("x", "v")):
    return Trajectories(tuple(Trajectory(t, x, np.empty((len(t), 0))) for t, x in runs), states)


@pytest.mark.slow
def test_the_clock_ends_the_fits_of_equal_systems():
    """Six chaotic maps, of which pairs are equal up to a factor, read as rates: nothing is found, much is equal."""
    states = np.empty((35, 6))
    states[0] = 0.1 + 0.1 * np.arange(6)
    for step in range(34):
        states[step + 1] = 3.8 * states[step] * (1 - states[step])
    states *= 10.0 ** np.array([3, -9, -2, -14, 12, 1])
    times = np.arange(35.0)
    find_dynamics(together((times, states[:, :1]), states=("a",)), settings(0.5), WORK)  # compiles the integrator
    began = time.process_time()
    found = find_dynamics(together((times, states), states=tuple("abcdef")), settings(2.0), WORK)
    assert time.process_time() - began < 4.0
    assert len(found.front.others) > 1


@pytest.mark.slow
def test_several_noisy_runs_with_irregular_times_and_gaps():
    rng, runs = np.random.default_rng(1), []
    for start in (1.0, -2.0, 0.5):
        times = np.sort(rng.uniform(0, 9, 50))
        states = oscillation(times, start) + 0.02 * rng.standard_normal((50, 2))
        states[rng.random((50, 2)) < 0.1] = np.nan
        runs.append((times - times[0], states))
    chosen = find_dynamics(together(*runs), settings(20.0), WORK).chosen
    times = np.linspace(0, 9, 50)
    truth = oscillation(times, 3.0)
    assert ((chosen.simulate(truth[0], times) - truth) ** 2).mean() < 0.02 * truth.var()
    assert chosen.equations[0].formula() == "v"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ode", "map"])
def test_noisy_states_have_functions_of_the_user(kind):
    times = np.arange(120.0)
    states = np.column_stack([np.cos(times / 10), np.sin(times / 10), np.exp(-times / 10)])
    states += 0.02 * np.random.default_rng(0).standard_normal(states.shape)
    wanted = settings(4.0, kind=kind)
    functions = ("add", "sub", "mul", "def hill(x): return x/(1 + x)", "def both(x, y): return x*y + 1")
    wanted = replace(wanted, search=replace(wanted.search, primitives=functions))
    found = find_dynamics(together((times, states), states=("x", "v", "w")), wanted, WORK)
    assert found.chosen.error < 0.02


@pytest.mark.slow
def test_the_same_seed_finds_the_same_system():
    times = np.linspace(0, 8, 40)
    data = together((times, oscillation(times)))
    first, second = (find_dynamics(data, settings(20.0), WORK).chosen for _ in range(2))
    assert [str(tree) for tree in first.trees] == [str(tree) for tree in second.trees]


@pytest.mark.slow
def test_a_system_travels_to_other_processes():
    times = np.linspace(0, 8, 40)
    chosen = find_dynamics(together((times, oscillation(times))), settings(), WORK).chosen
    copy = pickle.loads(pickle.dumps(chosen))
    assert copy.lines() == chosen.lines()
    np.testing.assert_allclose(copy.rates([[1.0, 0.0], [0.0, 1.0]]), [[0, -1.73], [1, -0.4]], atol=1e-6)
    np.testing.assert_array_equal(copy.simulate([1.0, 0.0], times), chosen.simulate([1.0, 0.0], times))


@pytest.mark.slow
def test_an_epidemic_of_a_closed_town_leaves_rivals_and_an_experiment_tells_them_apart():
    """As s + i + r stays 1 in the data, many forms agree; towns of another size tell."""
    town = CompiledSystem(
        [parse(rate, ("s", "i", "r")) for rate in ("-0.4*s*i", "0.4*s*i - 0.1*i", "0.1*i")], ("s", "i", "r")
    )
    times = np.linspace(0, 60, 101)
    states = town.rollout(np.array([0.99, 0.01, 0.0]), times, tolerance=1e-12).states
    found = find_dynamics(together((times, states), states=("s", "i", "r")), settings(20.0), WORK)
    assert found.chosen.error < 1e-10
    np.testing.assert_allclose(found.chosen.rates([[0.5, 0.7, 0.9]]), [[-0.14, 0.07, 0.07]], atol=1e-6)
    assert "s + i + r is 1 along these runs: forms that differ by it are equal here" in found.front.reason
    assert len(found.front.rivals) > 1
    told = found.front.next_experiment({"s": (0, 2), "i": (0, 1), "r": (0, 1)})
    assert told.distance > 10 * told.before
    assert abs(sum(told.start.values()) - 1) > 0.1


@pytest.mark.slow
def test_long_noisy_runs_of_several_states_end_by_the_clock():
    times = np.linspace(0, 40, 250)
    noisy = np.concatenate([oscillation(times), oscillation(times, 2.0)], axis=1)
    noisy += 0.1 * np.random.default_rng(0).standard_normal(noisy.shape)
    began = time.process_time()
    find_dynamics(together((times, noisy), (times, noisy[::-1]), states=("x", "v", "y", "w")), settings(0.5), WORK)
    assert time.process_time() - began < 2.5
