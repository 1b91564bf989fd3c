"""The end of a search: the chosen formula and the weights of the rows agree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import shine
from shine.lang.parse import parse

NOISE_WITHOUT_A_LAW = {
    "relative": lambda rng, rows: np.exp(rng.uniform(0, 2.5) * rng.standard_normal(rows)),
    "log": lambda rng, rows: np.exp(rng.uniform(0, 2.5) * rng.standard_normal(rows)),
    "counts": lambda rng, rows: np.floor(5 * np.exp(rng.uniform(0, 2.5) * rng.standard_normal(rows))),
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISE_WITHOUT_A_LAW)
@pytest.mark.parametrize("seed", range(3))
def test_a_chosen_constant_is_fitted_to_rows_of_equal_weight(noise, seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(4, 13))
    X, y = rng.uniform(0, 5, (rows, 2)), NOISE_WITHOUT_A_LAW[noise](rng, rows)
    found = shine.evolve(X, y, noise=noise, generations=1, seconds=None, population=40, seeding=0, threads=1, seed=seed)
    best, even = found.best, "noise of a constant is the same in every row" in found.front.reason
    if not best.tree.used_parameters:
        # The noise that the user names stays where equal weights would choose a formula.
        assert best.basis.noise == ("absolute" if even else noise)
        assert not even or best.predict(X) == pytest.approx(np.mean(y), rel=1e-5)
        assert even or (noise, seed) in (("relative", 2), ("log", 2))


@pytest.mark.slow
def test_a_law_keeps_the_noise_that_follows_it():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 40)
    best = shine.evolve(
        x[:, None], 3 * x**2 * np.exp(0.1 * rng.normal(size=40)), noise="relative", primitives=["mul", "square"],
        generations=1, seconds=None, population=40, seeding=0, threads=1,
    ).best  # fmt: skip
    assert best.basis.noise == "relative"
    ratios = best.basis.rows.deviations / best.predict(x[:, None])
    assert ratios == pytest.approx(np.mean(ratios), rel=0.05)


def test_the_reason_tells_which_better_formulas_the_front_leaves_out():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 60)
    y = x + 0.1 * rng.normal(size=60)
    y[7] = x[7] + 1.5
    needle = f"x0 + 0.00015/(x0 - {float(x[7]) - 1e-4})"
    limits = {"generations": 0, "seconds": None, "seeding": 0, "population": 10, "threads": 1}

    reasons = [
        shine.evolve(x[:, None], y, guesses=[guess], noise="absolute", outliers="keep", **limits).reason
        for guess in (needle, "x0")
    ]

    assert "left out, though of less loss (R2 up to 0.994): 1 with a pole" in reasons[0]
    assert "left out" not in reasons[1]


@pytest.mark.slow
@pytest.mark.parametrize("law", ["linear", "waves"])
def test_laws_from_rates_of_splines_have_no_terms_for_the_errors_of_the_spline(law):
    t = np.linspace(0, 10, 101)
    if law == "linear":
        x = 0.84 + 1.66 * np.exp(-0.36075 * t)
        X, y, expected = x[:, None], CubicSpline(t, x)(t, 1), "0.303 - 0.36075*x0"
    else:
        u = t / 2.5 + 0.1
        X, expected = np.column_stack([np.sin(u), np.cos(1.3 * u)]), "1.5*x0*x1"
        y = 1.5 * X[:, 0] * X[:, 1] * (1 + 1e-8 * np.sin(9 * u) * np.exp(u / 2))
    best = shine.evolve(X, y, generations=20, seconds=None, seed=0).best
    wanted = parse(expected, [f"x{at}" for at in range(X.shape[1])])
    assert best.tree.size == wanted.size
    assert best.predict(X) == pytest.approx(y, abs=1e-4)
