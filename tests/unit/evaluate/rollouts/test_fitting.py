"""Fits by rollouts find the constants that made the data, and how sure they are."""

import numpy as np
import pytest
from helpers.oracles.motions import SYSTEMS, reference
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.rollouts.fitting import FitSettings, fit_rollouts
from shine.evaluate.rollouts.system import CompiledSystem
from shine.evaluate.rollouts.unknowns import Unknowns
from shine.lang.parse import parse

UNDETERMINED = {"logistic growth"}
"""Systems that are written with more constants than matter."""


def compiled(rates, controls=()):
    names = tuple("xyz"[: len(rates)])
    return CompiledSystem([parse(rate, (*names, *controls, "t")) for rate in rates], names, controls, "t")


def readings(name, times, noise=0.0, missing=0.0, seed=0, start=None):
    """A run of a system, with errors in units of each state's spread and some readings left out."""
    states = reference(SYSTEMS[name], times, start=start)
    rng = np.random.default_rng(seed)
    states = states + noise * states.std(axis=0) * rng.normal(size=states.shape)
    states[rng.uniform(size=states.shape) < missing] = np.nan
    return Trajectory(times, states, np.zeros((len(times), 0)))


def together(*runs, sigma=None):
    return Trajectories(runs, tuple("xyz"[: runs[0].states.shape[1]]), sigma=sigma)


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name not in UNDETERMINED])
def test_clean_data_give_their_constants_back(name):
    motion = SYSTEMS[name]
    system = compiled(motion.rates)
    data = together(readings(name, np.linspace(0, motion.span, 61)))
    guess = system.constants * (1 + 0.03 * np.random.default_rng(1).normal(size=len(system.constants)))
    fit = fit_rollouts(system, data, guess)
    assert fit.joined
    assert fit.constants == pytest.approx(system.constants, rel=1e-5)
    assert fit.starts[0] == pytest.approx(motion.start, abs=1e-5)


@pytest.mark.slow
def test_runs_with_gaps_and_noise_agree_with_scipys_least_squares():
    motion, rng = SYSTEMS["predator and prey"], np.random.default_rng(3)
    system = compiled(motion.rates)
    starts = [(10.0, 5.0), (3.0, 2.0), (6.0, 1.0)]
    times = [np.sort(rng.uniform(0, 12, 40)) for _ in starts]
    runs = [
        readings("predator and prey", time, 0.03, 0.2, seed, start)
        for seed, (time, start) in enumerate(zip(times, starts, strict=True))
    ]
    sigma = np.array([0.4, 0.2])
    fit = fit_rollouts(system, together(*runs, sigma=sigma), system.constants * 1.1)

    def residuals(unknowns):
        a, b, c, d = unknowns[:4]
        parts = []
        for number, run in enumerate(runs):
            start = unknowns[4 + 2 * number : 6 + 2 * number]
            found = solve_ivp(
                lambda t, s: [a * s[0] - b * s[0] * s[1], c * s[0] * s[1] - d * s[1]],
                (run.times[0], run.times[-1]),
                start,
                t_eval=run.times,
                rtol=1e-9,
                atol=1e-9,
            )
            parts.append(((found.y.T - run.states) / sigma)[~np.isnan(run.states)])
        return np.concatenate(parts)

    expected = least_squares(residuals, np.concatenate([system.constants, np.array(starts).ravel()]), x_scale="jac")
    assert fit.constants == pytest.approx(expected.x[:4], rel=1e-4)
    assert fit.starts.ravel() == pytest.approx(expected.x[4:], rel=1e-3)
    covariance = np.linalg.inv(expected.jac.T @ expected.jac)[:4, :4]
    assert fit.covariance == pytest.approx(covariance, rel=0.01)


def test_each_state_has_its_own_noise():
    system = compiled(("y", "-1.7*x"))
    times = np.linspace(0, 20, 400)
    states = np.stack([np.cos(np.sqrt(1.7) * times), -np.sqrt(1.7) * np.sin(np.sqrt(1.7) * times)], axis=1)
    states += np.random.default_rng(0).normal(size=states.shape) * [0.3, 0.01]
    fit = fit_rollouts(system, together(Trajectory(times, states, np.zeros((400, 0)))))
    assert fit.noise == pytest.approx([0.3, 0.01], rel=0.15)
    assert fit.covariance[0, 0] < 1e-6


def test_readings_count_by_the_sizes_of_their_errors():
    system, times = compiled(("-0.5*x",)), np.linspace(0, 5, 60)
    rng, sizes = np.random.default_rng(2), np.linspace(0.1, 2, 60)[:, None]
    data = together(
        Trajectory(times, np.exp(-0.7 * times)[:, None] + 0.05 * sizes * rng.normal(size=(60, 1)), np.zeros((60, 0)))
    )
    fit = fit_rollouts(system, data, settings=FitSettings(sizes=[sizes]))

    def residuals(unknowns):
        return ((unknowns[1] * np.exp(unknowns[0] * times) - data.runs[0].states[:, 0]) / sizes[:, 0]) / 0.05

    expected = least_squares(residuals, [-0.5, 1.0])
    assert fit.constants[0] == pytest.approx(expected.x[0], rel=1e-4)
    assert fit.noise[0] == pytest.approx(0.05, rel=0.25)


@pytest.mark.slow
def test_a_long_chaotic_run_is_fitted_in_stretches():
    system = compiled(SYSTEMS["Lorenz"].rates)
    data = together(readings("Lorenz", np.linspace(0, 25, 501), 0.02))
    guess = system.constants * [1.02, 0.98, 1.03]
    fit = fit_rollouts(system, data, guess)
    assert fit.constants == pytest.approx(system.constants, rel=0.01)
    assert fit.noise / np.nanstd(data.runs[0].states, axis=0) == pytest.approx(0.02, rel=0.2)


def test_a_poor_guess_of_a_long_oscillation_is_mended_by_stretches():
    system = compiled(("y", "-1.7*x"))
    times = np.linspace(0, 60, 601)
    states = np.stack([np.cos(np.sqrt(1.7) * times), -np.sqrt(1.7) * np.sin(np.sqrt(1.7) * times)], axis=1)
    data = together(Trajectory(times, states, np.zeros((601, 0))))
    alone = fit_rollouts(system, data, np.array([-1.2]), settings=FitSettings(joined=True))
    fit = fit_rollouts(system, data, np.array([-1.2]))
    assert abs(alone.constants[0] + 1.7) > 0.1
    assert fit.constants[0] == pytest.approx(-1.7, rel=1e-6)
    assert fit.joined


def test_fixed_constants_stay():
    system = compiled(SYSTEMS["pendulum"].rates)
    data = together(readings("pendulum", np.linspace(0, 6, 61), 0.01))
    fit = fit_rollouts(system, data, np.array([9.9, 0.3]) * [-1, 1], unknowns=Unknowns.free(np.array([False, True])))
    assert fit.constants[0] == -9.9
    assert fit.constants[1] != 0.3
    assert fit.covariance[0].tolist() == [0.0, 0.0]


def test_a_system_that_explodes_everywhere_does_not_succeed():
    fit = fit_rollouts(compiled(("log(-1 - x**2)",)), together(readings("decay", np.linspace(0, 5, 30))))
    assert not fit.succeeded
    assert np.isinf(fit.noise).all()


def test_a_system_without_constants_has_its_starts_fitted():
    system = compiled(("y", "-x"))
    times = np.linspace(0, 5, 50)
    states = np.stack([np.sin(times), np.cos(times)], axis=1)
    states[0] = np.nan
    fit = fit_rollouts(system, together(Trajectory(times, states, np.zeros((50, 0)))))
    assert fit.starts[0] == pytest.approx([0, 1], abs=1e-6)
    assert fit.covariance.shape == (0, 0)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_units_of_the_data_do_not_matter(scale):
    times = np.linspace(0, 5, 50)
    rng = np.random.default_rng(0)
    states = (np.exp(-0.7 * times) + 0.01 * rng.normal(size=50))[:, None]
    fits = [
        fit_rollouts(compiled(("-0.5*x",)), together(Trajectory(times, states * unit, np.zeros((50, 0)))))
        for unit in (1.0, scale)
    ]
    assert fits[0].constants == pytest.approx(fits[1].constants, rel=1e-9)
    assert fits[0].covariance == pytest.approx(fits[1].covariance, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predator and prey"])
def test_intervals_cover_the_truth_as_often_as_they_say(name):
    motion = SYSTEMS[name]
    system, times = compiled(motion.rates), np.linspace(0, motion.span, 60)
    covered = []
    for seed in range(200):
        fit = fit_rollouts(system, together(readings(name, times, 0.05, seed=seed)))
        covered.append(np.abs(fit.constants - system.constants) < 1.96 * np.sqrt(np.diagonal(fit.covariance)))
    assert 0.9 <= np.mean(covered) <= 0.97


TERMS = ("{}", "sin({})", "exp({})", "({})/(0.3 + a)", "sqrt({})", "log({})", "({})**0.7", "({} if a > 0 else -a)")


@pytest.mark.parametrize("seed", range(4))
def test_fits_of_random_systems_to_random_readings_raise_nothing(seed):
    rng = np.random.default_rng(seed)
    names = tuple("abcdef"[: rng.integers(1, 7)])
    texts = [
        " + ".join(
            rng.choice(TERMS).format(f"{rng.uniform(-3, 3):.3f}*{rng.choice(names)}*{rng.choice(names)}")
            for _ in range(rng.integers(1, 4))
        )
        for _ in names
    ]
    system = CompiledSystem([parse(text, names) for text in texts], names, is_map=seed % 4 == 3)
    times = np.sort(rng.uniform(0, 10.0 ** rng.uniform(-2, 2), rng.choice([3, 4, 10, 40])))
    states = np.cumsum(rng.normal(size=(len(times), len(names))), axis=0) * 10.0 ** rng.uniform(-20, 20, len(names))
    states[rng.uniform(size=states.shape) < 0.2] = np.nan
    fit = fit_rollouts(system, Trajectories((Trajectory(times, states, np.zeros((len(times), 0))),), names))
    assert fit.succeeded == np.isfinite(fit.noise).all()
    assert fit.covariance.shape == (len(system.constants), len(system.constants))
