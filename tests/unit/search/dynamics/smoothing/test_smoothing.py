import numpy as np
import pytest

from shine.data.trajectories import Trajectories, Trajectory
from shine.search.dynamics.smoothing.smoothing import interpolated, smoothed


def one_run(times, states):
    return Trajectories((Trajectory(times, states, np.empty((len(times), 0))),), ("x", "y")[: states.shape[1]])


@pytest.mark.parametrize(("scale", "tempo"), [(1e20, 1.0), (1e-20, 1e15)])
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


def test_a_clean_oscillation_of_a_hundred_points_keeps_eight_digits_of_its_rate():
    times = np.linspace(0, 20, 101)
    curve = interpolated(times, np.exp(-0.1 * times) * np.sin(2 * times), times)
    rate = np.exp(-0.1 * times) * (2 * np.cos(2 * times) - 0.1 * np.sin(2 * times))
    errors = np.abs(curve.rates - rate)
    assert np.median(errors) < 1e-8
    assert (errors <= 10 * curve.rate_errors + 1e-9).mean() > 0.95


def test_errors_are_large_where_readings_are_too_rare_for_the_motion():
    times = np.linspace(0, 10, 101)
    curve = interpolated(times, np.tanh(30 * (times - 5)), times)
    assert curve.rate_errors[49:52].min() > 1.0
    assert curve.rate_errors[20] < 1e-3


@pytest.mark.parametrize("count", [2, 3, 5, 7])
def test_few_readings_have_rates_with_finite_errors(count):
    times = np.arange(float(count))
    curve = interpolated(times, times**2, times)
    assert np.isfinite(curve.rates).all() and np.isfinite(curve.rate_errors).all()
    if count > 2:
        np.testing.assert_allclose(curve.rates, 2 * times, atol=1e-9)
