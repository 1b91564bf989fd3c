import numpy as np
import pytest
from helpers.markers import mostly_slow

from shine.data.trajectories import Trajectories, Trajectory
from shine.search.dynamics.smoothing.smoothing import smoothed


def one_run(times, states):
    return Trajectories((Trajectory(times, states, np.empty((len(times), 0))),), ("x", "y")[: states.shape[1]])


@pytest.mark.parametrize("scale", mostly_slow([1e-20, 1.0, 1e20], fast=[1e20]))
@pytest.mark.parametrize("tempo", mostly_slow([1e-15, 1.0, 1e15], fast=[1.0]))
def test_clean_states_are_interpolated_whatever_their_units(scale, tempo):
    times = np.linspace(0, 10, 101)
    smooth = smoothed(one_run(tempo * times, scale * np.stack([np.sin(times), np.cos(times)], axis=1)))
    assert smooth.processes == (None, None)
    np.testing.assert_allclose(smooth.runs[0].rates[:, 0] * tempo / scale, np.cos(times), atol=1e-8)


def test_noisy_states_are_smoothed():
    times = np.linspace(0, 10, 101)
    noise = 0.05 * np.random.default_rng(0).standard_normal((101, 2))
    smooth = smoothed(one_run(times, np.stack([np.sin(times), np.cos(times)], axis=1) + noise))
    assert None not in smooth.processes
    assert np.abs(smooth.runs[0].rates[5:-5, 0] - np.cos(times[5:-5])).max() < 0.25


@pytest.mark.slow
def test_a_state_is_known_where_only_the_other_was_read():
    times = np.linspace(0, 10, 101)
    states = np.stack([np.sin(times), np.cos(times)], axis=1)
    states[::3, 0] = np.nan
    states[1::3, 1] = np.nan
    run = smoothed(one_run(times, states)).runs[0]
    np.testing.assert_allclose(run.states[:, 0], np.sin(times), atol=1e-6)
    np.testing.assert_allclose(run.rates[5:-5, 1], -np.sin(times[5:-5]), atol=1e-5)


@pytest.mark.slow
def test_a_state_that_a_run_lacks_has_infinite_errors():
    times = np.linspace(0, 10, 101)
    states = np.stack([np.sin(times), np.cos(times)], axis=1)
    lacking = states.copy()
    lacking[:, 1] = np.nan
    runs = tuple(Trajectory(times, own, np.empty((101, 0))) for own in (states, lacking))
    smooth = smoothed(Trajectories(runs, ("x", "y")))
    assert np.isinf(smooth.runs[1].rate_errors[:, 1]).all()
