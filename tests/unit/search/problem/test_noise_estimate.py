"""The noise, estimated without a formula: by replicates, and by neighbouring rows."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.search.problem.noise import with_model
from shine.search.problem.noise_estimate import estimated_noise

SIGMA = 0.3


def law(X):
    return np.sin(2 * X[:, 0]) + X.sum(axis=1) ** 2


def estimate(X, y, weights=None, model="absolute"):
    return estimated_noise(with_model(Dataset.from_arrays(X, y, sample_weight=weights), model), model)


def replicated(rng, times=3, distinct=10):
    X = np.repeat(rng.uniform(0, 3, (distinct, 2)), times, axis=0)
    return X, law(X) + SIGMA * rng.normal(size=len(X))


def test_the_interval_of_replicates_holds_the_noise():
    found = [estimate(*replicated(np.random.default_rng(seed))) for seed in range(100)]
    assert {each.source for each in found} == {"replicates"}
    held = np.mean([each.low <= SIGMA**2 <= each.high for each in found])
    assert held > 0.88  # 0.95, with three standard errors of 100 trials
    assert np.mean([each.loss for each in found]) == pytest.approx(SIGMA**2, rel=0.1)


def test_replicates_are_the_pooled_variance():
    X = np.array([[1.0]] * 4 + [[2.0]] * 3 + [[5.0]])
    y = np.array([1.0, 3.0, 1.0, 3.0, 9.0, 9.0, 12.0, 100.0])
    assert estimate(X, y).loss == pytest.approx((4 * 1 + 6) / (3 + 2))


def test_a_whole_weight_is_a_repeated_row():
    X, y = replicated(np.random.default_rng(0))
    weights = np.tile([1.0, 2.0, 3.0], 10)
    repeated = np.repeat(np.arange(30), weights.astype(int))
    weighed, written_out = estimate(X, y, weights), estimate(X[repeated], y[repeated])
    assert (weighed.loss, weighed.high) == pytest.approx((written_out.loss, written_out.high))


@pytest.mark.parametrize(("features", "rows"), [(1, 60), (1, 3000), (2, 1000)])
def test_neighbours_tell_the_noise_of_a_smooth_law(features, rows):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, (rows, features))
    found = estimate(X, law(X) + SIGMA * rng.normal(size=rows))
    assert found.source == "neighbours"
    assert found.loss == pytest.approx(SIGMA**2, rel=0.3)
    assert found.low == 0
    assert found.high > SIGMA**2


def test_the_noise_of_an_exact_law_may_be_small():
    X = np.linspace(0, 3, 200)[:, None]
    assert estimate(X, law(X)).loss < 1e-5
    assert estimate(X, 3 * X[:, 0]).loss < 1e-25


def test_relative_noise_is_measured_with_its_weights():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 100, 400)
    found = estimate(x[:, None], x * (1 + 0.05 * rng.normal(size=400)), model="relative")
    rows = with_model(Dataset.from_arrays(x[:, None], x), "relative")
    expected = np.sum(rows.row_weights * (0.05 * x) ** 2) / rows.weight
    assert found.loss == pytest.approx(expected, rel=0.25)


@pytest.mark.parametrize(
    "X",
    [
        np.arange(4.0)[:, None],
        np.full((5, 1), 3.0),
        np.ones((50, 1))[:4],
        np.random.default_rng(0).uniform(size=(12, 6)),
    ],
)
def test_few_rows_do_not_tell(X):
    assert estimate(X, X[:, 0]) is None


def test_constant_columns_do_not_disturb():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 3, 300), np.full(300, 7.0)])
    assert estimate(X, 2 * X[:, 0] + SIGMA * rng.normal(size=300)).loss == pytest.approx(SIGMA**2, rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1e60, 1e-60])
def test_a_result_has_the_estimate_in_the_unit_of_the_target(scale):
    X, y = replicated(np.random.default_rng(0))
    few = {"generations": 1, "population": 50, "seeding": 0.0, "seconds": None, "threads": 1, "noise": "absolute"}
    noise = shine.evolve(X, scale * y, primitives=["add", "mul"], **few).noise
    assert noise.model == "absolute"
    assert noise.loss / scale**2 == pytest.approx(estimate(X, y).loss)
