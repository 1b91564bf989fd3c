"""Quantiles, beside those of SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special, stats

from shine.evaluate.inference.quantiles import (
    check_level,
    counts_between,
    tail_of_chi_squared,
    tail_of_t,
    two_sided,
)


@pytest.mark.parametrize(("level", "freedom"), [*itertools.product([0.5, 0.95, 0.999], [1, 3, 30, 1e4])])
def test_quantiles_of_students_t(level, freedom):
    assert two_sided(level, freedom) == pytest.approx(special.stdtrit(freedom, (1 + level) / 2), rel=1e-5)


def test_without_bound_of_freedom_they_are_normal():
    assert two_sided(0.95, np.inf) == pytest.approx(1.959963984540054)
    assert tail_of_t(1.959963984540054, np.inf) == pytest.approx(0.05)


def test_tails():
    assert tail_of_t(2.0, 5) == pytest.approx(2 * stats.t.sf(2.0, 5))
    assert tail_of_chi_squared(10.0, 4) == pytest.approx(stats.chi2.sf(10.0, 4), rel=0.02)


def test_counts_whose_mean_is_known_are_poisson():
    low, high = counts_between(np.array([0.0, 3.0, 100.0]), np.zeros(3), 0.9)
    assert low.tolist() == [0.0, *stats.poisson.ppf(0.05, [3, 100])]
    assert high.tolist() == [0.0, *stats.poisson.ppf(0.95, [3, 100])]


def test_counts_whose_mean_is_uncertain_scatter_more():
    low, high = counts_between(np.array([50.0]), np.array([10.0]), 0.95)
    rng = np.random.default_rng(0)
    drawn = rng.poisson(rng.gamma(25.0, 2.0, 200_000))
    assert [low[0], high[0]] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=1)


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, float("nan"), True, "0.9", None])
def test_a_level_is_a_share(level):
    with pytest.raises(ValueError, match=r"it is a share between 0 and 1, such as 0\.95"):
        check_level(level)
