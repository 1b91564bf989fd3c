import numpy as np
import pytest

from shine.search.dynamics.smoothing.process import process_of


def oscillation(seed, count=150, noise=0.05, grows=False):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 20, count))
    states = np.sin(times) + (1.5 if grows else 0.0)
    return times, states, states + noise * rng.standard_normal(count) * (np.abs(states) if grows else 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.2, 0.01])
def test_the_noise_is_estimated_within_a_fifth(noise):
    found = []
    for seed in range(3):
        times, _, readings = oscillation(seed, noise=noise)
        found.append(process_of([(times, readings)]).noise)
    assert np.mean(found) == pytest.approx(noise, rel=0.2)


@pytest.mark.slow
def test_noise_that_grows_with_the_values_is_told_from_even_noise():
    times, _, even = oscillation(0, noise=0.1)
    assert not process_of([(times, even)]).grows
    times, _, growing = oscillation(0, noise=0.1, grows=True)
    assert process_of([(times, growing)]).grows


@pytest.mark.slow
def test_standard_errors_of_states_and_rates_are_those_of_repeated_readings():
    states, rates = [], []
    for seed in range(12):
        times, true, readings = oscillation(seed)
        curve = process_of([(times, readings)]).curve(times, readings, times)
        states.append((curve.values - true) / curve.value_errors)
        rates.append((curve.rates - np.cos(times)) / curve.rate_errors)
    assert 0.7 < np.sqrt(np.mean(np.square(states))) < 1.3
    assert 0.7 < np.sqrt(np.mean(np.square(rates))) < 1.4


@pytest.mark.slow
def test_blocks_of_a_long_run_join_without_a_seam():
    times = np.linspace(0, 60, 400)
    readings = np.sin(times) + 0.02 * np.random.default_rng(1).standard_normal(400)
    process = process_of([(times, readings)])
    curve = process.curve(times, readings, times)
    assert len(curve.values) == 400
    assert np.abs(curve.values - np.sin(times)).max() < 0.04


def test_runs_share_the_noise():
    runs = [oscillation(seed, count=30)[::2] for seed in range(6)]
    assert process_of(runs).noise == pytest.approx(0.05, rel=0.3)


@pytest.mark.slow
def test_known_noise_is_kept():
    times, _, readings = oscillation(0)
    assert process_of([(times, readings)], sigma=0.05).noise == pytest.approx(0.05, rel=1e-9)


@pytest.mark.slow
def test_a_fast_beginning_is_followed():
    rng, times = np.random.default_rng(0), np.linspace(0, 10, 100)
    states, rates = np.exp(-8 * times) + np.exp(-0.2 * times), -8 * np.exp(-8 * times) - 0.2 * np.exp(-0.2 * times)
    readings = states + 0.01 * rng.standard_normal(100)
    process = process_of([(times, readings)])
    curve = process.curve(times, readings, times)
    assert process.beginning < 1.1
    assert process.noise == pytest.approx(0.01, rel=0.3)
    assert np.abs(curve.rates - rates)[1:3].max() < 0.4
    assert np.isfinite(process.curve(times[5:], readings[5:], times).rates).all()
