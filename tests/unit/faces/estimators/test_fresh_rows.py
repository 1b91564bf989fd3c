"""Estimators predict fresh rows of the same kind: their formulas have neither poles nor undefined values there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from helpers.markers import mostly_slow

from shine.data.datasets.dataset import Dataset
from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer
from shine.evaluate.domain import Domain

QUICK = {
    "population_size": 60,
    "generations": 4,
    "max_time": None,
    "max_size": 15,
    "primitives": ("add", "sub", "mul", "div", "log", "sqrt", "pow"),
    "n_jobs": 1,
    "settings": {"seeding": 0.0},
}

pytestmark = pytest.mark.filterwarnings("ignore::shine.base.errors.ExtrapolationWarning")  # few rows, many fresh ones

each_seed = pytest.mark.parametrize("seed", mostly_slow(range(2), fast=[0]))


def rows(rng: np.random.Generator, count: int) -> np.ndarray:
    """A normal, a positive and a binary column."""
    return np.column_stack([rng.normal(size=count), rng.lognormal(size=count), rng.random(count) < 0.5])


def target(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return X[:, 0] + np.log(X[:, 1]) * X[:, 2] + rng.normal(size=len(X))


def with_poles(X: np.ndarray) -> list[str]:
    """Guesses that separate a few rows from all others by poles between them."""
    ordered = np.sort(X[:, 0])
    return [f"0.01/(x0 - {float(0.9 * a + 0.1 * b)!r})" for a, b in pairwise(ordered[5:16])]


def assert_defined(models, X: np.ndarray, y: np.ndarray) -> None:
    domain = Domain(Dataset.from_arrays(X, y))
    for model in models:
        assert domain.defines(model.tree), model.expression


@pytest.mark.slow
@each_seed
def test_regressors_do(seed):
    rng = np.random.default_rng(seed)
    X, fresh = rows(rng, 25), rows(rng, 10_000)
    y = target(rng, X)
    model = SymbolicRegressor(random_state=seed, guesses=with_poles(X), **QUICK).fit(X, y)
    assert_defined(model.front_, X, y)
    assert np.abs(model.predict(fresh)).max() < 1000 * np.ptp(y)


@pytest.mark.slow
@each_seed
def test_classifiers_do(seed):
    rng = np.random.default_rng(seed)
    X, fresh = rows(rng, 30), rows(rng, 10_000)
    labels = target(rng, X) > 0
    model = SymbolicClassifier(random_state=seed, guesses=with_poles(X), **QUICK).fit(X, labels)
    assert_defined(model.front_, X, labels.astype(float))
    assert np.isfinite(model.best_.predict(fresh)).all()


@pytest.mark.slow
@each_seed
def test_transformers_do(seed):
    rng = np.random.default_rng(seed)
    X, fresh = rows(rng, 30), rows(rng, 10_000)
    model = SymbolicTransformer(n_components=3, random_state=seed, guesses=with_poles(X), **QUICK)
    y = target(rng, X)
    assert np.isfinite(model.fit(X, y).transform(fresh)).all()
    for front in model.front_:
        assert_defined(front, X, y)
