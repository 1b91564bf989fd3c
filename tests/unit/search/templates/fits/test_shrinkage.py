"""Shrinkage against the best linear unbiased predictions of a mixed model."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.composers import TextComposer, grouped_rows
from scipy.optimize import minimize

from shine.search.templates.fits.linearizer import TemplateLinearizer
from shine.search.templates.template import Parameter


def mixed_model(t, group, y, groups):
    """Intercepts by group of the mixed model y = intercept + slope*t, its variances of restricted likelihood."""
    fixed, random = np.column_stack([np.ones(len(y)), t]), (group[:, None] == np.arange(groups)).astype(float)

    def parts(logs):
        noise, spread = np.exp(logs)
        inverse = np.linalg.inv(noise * np.eye(len(y)) + spread * random @ random.T)
        information = fixed.T @ inverse @ fixed
        return spread, inverse, information, np.linalg.solve(information, fixed.T @ inverse @ y)

    def likelihood(logs):
        _, inverse, information, beta = parts(logs)
        rest = y - fixed @ beta
        return (np.linalg.slogdet(information)[1] - np.linalg.slogdet(inverse)[1] + rest @ inverse @ rest) / 2

    found = minimize(likelihood, [0.0, -1.0], method="Nelder-Mead")
    spread, inverse, _, beta = parts(found.x)
    return beta[0] + spread * random.T @ inverse @ (y - fixed @ beta)


def fitted(t, group, y, groups):
    composer = TextComposer(
        [["A + c*t"]], (Parameter("A", by_group=True), Parameter("c")), ("t", "group"), groups, "group"
    )
    linearizer = TemplateLinearizer(composer, grouped_rows({"t": t, "group": group}, y), "mse")
    best = linearizer.fit(composer.population(), 50, tolerance=1e-13).population
    return best.values[0, 1 : 1 + groups], linearizer.shrunk(best).values[0, 1 : 1 + groups]


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_shrunk_values_are_those_of_a_mixed_model(spread):
    rng = np.random.default_rng(int(10 * spread))
    group = np.repeat(np.arange(30), rng.integers(2, 10, 30))
    t = rng.uniform(0, 2, len(group))
    y = (2 + spread * rng.standard_normal(30))[group] + 0.7 * t + rng.standard_normal(len(group))
    plain, shrunk = fitted(t, group, y, 30)
    wanted = mixed_model(t, group, y, 30)
    assert np.abs(shrunk - wanted).max() < 0.1 * np.abs(plain - wanted).max() + 0.03


def test_values_without_noise_are_not_shrunk():
    group = np.repeat(np.arange(6), 5)
    t = np.tile(np.linspace(0, 1, 5), 6)
    plain, shrunk = fitted(t, group, group + 0.5 * t, 6)
    np.testing.assert_allclose(plain, np.arange(6), atol=1e-9)
    np.testing.assert_allclose(shrunk, np.arange(6), atol=1e-6)


def test_two_groups_are_not_shrunk():
    rng = np.random.default_rng(0)
    plain, shrunk = fitted(rng.uniform(0, 1, 20), np.arange(20) % 2, rng.standard_normal(20), 2)
    np.testing.assert_array_equal(plain, shrunk)
