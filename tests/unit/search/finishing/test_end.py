"""The end of a search: the chosen formula and the weights of the rows agree."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.markers import mostly_slow

import shine

NOISE_WITHOUT_A_LAW = {
    "relative": lambda rng, rows: np.exp(rng.uniform(0, 2.5) * rng.standard_normal(rows)),
    "log": lambda rng, rows: np.exp(rng.uniform(0, 2.5) * rng.standard_normal(rows)),
    "counts": lambda rng, rows: np.floor(5 * np.exp(rng.uniform(0, 2.5) * rng.standard_normal(rows))),
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISE_WITHOUT_A_LAW)
@pytest.mark.parametrize("seed", mostly_slow(range(20), fast=[4]))
def test_a_chosen_constant_is_fitted_to_rows_of_equal_weight(noise, seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(4, 13))
    X, y = rng.uniform(0, 5, (rows, 2)), NOISE_WITHOUT_A_LAW[noise](rng, rows)
    best = shine.evolve(
        X, y, noise=noise, generations=1, seconds=None, population=40, seeding=0, threads=1, seed=seed
    ).best
    if not best.tree.used_parameters:
        assert best.basis.noise == "absolute"
        assert best.predict(X) == pytest.approx(np.mean(y), rel=1e-5)


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
