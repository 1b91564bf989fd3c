"""Profile-likelihood intervals, beside closed forms and numerical searches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats
from unit.evaluate.inference.cases import inference, line

from shine.evaluate.losses import poisson, student_t


def test_of_a_line_they_are_the_exact_intervals_of_students_t():
    x, y = line(rows=12)
    found = inference("2.31*x + 1.37", {"x": x}, y, kind="model")
    fit = stats.linregress(x, y)
    half = stats.t.ppf(0.95, 10) * np.array([fit.stderr, fit.intercept_stderr])
    centre = np.array([fit.slope, fit.intercept])
    assert found.profile(0.9) == pytest.approx(np.column_stack([centre - half, centre + half]), abs=0.003 * half.max())


def test_of_a_curved_formula_they_are_where_the_sum_of_squares_has_grown_by_the_f_quantile():
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 4, 25)
    y = 2.4 * np.exp(-0.9 * x) + rng.normal(0, 0.25, 25)
    found = inference("2.4*exp(-0.9*x)", {"x": x}, y, kind="model")

    def least(rate):
        basis = np.exp(rate * x)
        return ((y - basis * (basis @ y) / (basis @ basis)) ** 2).sum()

    best = optimize.minimize_scalar(least, bounds=(-3, 0), method="bounded", options={"xatol": 1e-10})
    limit = best.fun * (1 + stats.f.ppf(0.95, 1, 23) / 23)
    ends = [optimize.brentq(lambda rate: least(rate) - limit, best.x, side) for side in (-8.0, 0.5)]
    deviation = found.uncertainty.errors[1]
    assert sorted(found.profile(0.95)[1]) == pytest.approx(sorted(ends), abs=0.01 * deviation)
    # They are not symmetric, so this is not what standard errors give.
    assert abs(found.uncertainty.wald(0.95)[1] - found.profile(0.95)[1]).max() > 0.05 * deviation


def test_of_counts_they_are_where_the_likelihood_has_fallen_by_half_the_quantile_of_chi_squared():
    y = np.array([3.0, 1.0, 4.0, 2.0, 0.0])
    low, high = inference("2.1 + 0*x", {"x": np.zeros(5)}, y, poisson().kind).profile(0.95)[0]

    def fall(mean):
        return 2 * (stats.poisson.logpmf(y, y.mean()).sum() - stats.poisson.logpmf(y, mean).sum())

    assert [fall(low), fall(high)] == pytest.approx([stats.chi2.ppf(0.95, 1)] * 2, rel=0.01)


def test_a_side_without_a_bound_is_infinite():
    # Any rate that is fast enough describes the rows as well.
    x = np.array([0.0, 0.0, 0.0, 2.0, 2.1, 2.2, 2.3, 2.4])
    y = np.array([3.1, 2.9, 3.02, 0.02, -0.01, 0.015, -0.02, 0.01])
    low, high = inference("3.01*exp(-2.71*x)", {"x": x}, y, kind="model").profile(0.95)[1]
    assert math.isinf(low) and math.isfinite(high)


def test_an_undetermined_constant_has_no_bounds():
    x, y = line()
    ends = inference("2.31*x + 0.77 + 0.63*exp(0*x)", {"x": x}, y, exact=(0.0,)).profile(0.95)
    assert np.isfinite(ends[0]).all() and np.isinf(ends[1:]).all()


def test_at_the_end_of_a_domain_they_end():
    x = np.linspace(0.0, 4, 40)
    y = np.sqrt(x + 0.011) + np.random.default_rng(0).normal(0, 0.3, 40)
    low, _ = inference("sqrt(x + 0.011)", {"x": x}, y, exact=(1.0,), kind="model").profile(0.95)[0]
    assert -1e-9 <= low < 0.011


def test_where_a_tangent_leaves_the_domain_they_are_those_of_a_search_over_all_constants():
    # At the far end, the other constants on the profile's tangent make the logarithm of the first row undefined.
    x = np.linspace(1, 5, 15)
    y = 2.4 * np.log(x - 0.8) + np.random.default_rng(3).normal(0, 0.4, 15)
    low, high = inference("2.4*log(1.1*x - 0.8)", {"x": x}, y, kind="model").profile(0.99)[0]
    # a*log(k*x - c) is a*log(x - b) and an intercept: their best values follow for each a.
    logarithms = np.log(x - 1 + np.geomspace(1e-12, 200, 6000)[:, None])
    logarithms, centred = logarithms - logarithms.mean(axis=1, keepdims=True), y - y.mean()
    products, squares = logarithms @ centred, (logarithms**2).sum(axis=1)
    candidates = np.linspace(1.5, 12, 10501)
    least = np.array([(centred @ centred - 2 * a * products + a * a * squares).min() for a in candidates])
    inside = candidates[least <= least.min() * (1 + stats.f.ppf(0.99, 1, 12) / 12)]
    assert (low, high) == pytest.approx((inside[0], inside[-1]), rel=5e-3)


def test_of_even_noise_on_many_rows_they_are_those_by_standard_errors():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 4, 4000)
    found = inference("2.4*exp(-0.9*x)", {"x": x}, 2.4 * np.exp(-0.9 * x) + rng.standard_t(4, 4000) * 0.1,
                      student_t(4.0, 0.1).kind)  # fmt: skip
    assert found.profile(0.95) == pytest.approx(found.uncertainty.wald(0.95), abs=0.05 * found.uncertainty.errors.max())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gauss", "poisson"])
def test_95_of_100_hold_the_truth(kind):
    rng = np.random.default_rng(5)
    # Intervals hold the constants of the formula if these are near: these are not.
    formula, truth, fits = "15*exp(-0.9*x) + 4.5", np.array([12.5, -0.71, 3.37]), 300
    held = np.zeros(3)
    for _ in range(fits):
        x = rng.uniform(0.1, 5, 60)
        mean = 12.5 * np.exp(-0.71 * x) + 3.37
        if kind == "gauss":
            found = inference(formula, {"x": x}, mean + rng.normal(0, 0.6, 60))
        elif kind == "poisson":
            found = inference(formula, {"x": x}, rng.poisson(mean).astype(float), poisson().kind)
        else:
            found = inference(formula, {"x": x}, mean + 0.6 * rng.standard_t(4, 60), student_t(4.0, 0.6).kind)
        low, high = found.profile(0.95).T
        held += (low <= truth) & (truth <= high)
    # 300 fits: a standard error of 0.0126.
    assert held / fits == pytest.approx(0.95, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-320, 1e307])
@pytest.mark.parametrize("loss", ["mse", "mae"])
def test_at_the_ends_of_the_range_of_floats_they_are_not_swapped(size, loss):
    x, y = line(rows=12)
    found = inference(f"{2.31 * size!r}*x + {1.37 * size!r}", {"x": x}, y * size, loss)
    low, high = found.profile(0.95).T
    assert not np.any(low > high)
