"""Every way through a search gives all formulas of its front the headings of the columns."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import shine

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.uniform(1, 3, (60, 3)), columns=["my area (m²)", "unit price (€)", "sin"])
LAW = 3 * X["my area (m²)"] * X["unit price (€)"] + 1
OUTLIERS = LAW.where(np.arange(60) > 1, 1000.0 + np.arange(60))
QUICK = {"generations": 0, "max_time": 5, "primitives": ["add", "mul"], "settings": {"seeding": 0.0}}


def check(front):
    for model in front:
        assert sorted(model.headings.values()) == sorted(X.columns)
        assert set(model.headings) == set(model.tree.parameters)
        assert model.digits is not None


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "noise"), [("mae", "absolute"), ("mse", "log"), ("mae", "counts")])
def test_with_each_model_of_the_noise(loss, noise):
    target = OUTLIERS.round() if noise == "counts" else OUTLIERS
    check(shine.SymbolicRegressor(loss=loss, noise=noise, **QUICK).fit(X, target).front_)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "data"),
    [
        ({"validation": "random"}, {}),
        ({}, {"groups": np.arange(60) % 5}),
        ({}, {"sigma": 1.0 + np.arange(60) % 5}),
        ({"linear_scaling": False}, {}),
        ({"guesses": ["sin_ + 1"]}, {}),
    ],
)
def test_with_each_kind_of_rows(parameters, data):
    check(shine.SymbolicRegressor(loss="mae", **parameters, **QUICK).fit(X, OUTLIERS, **data).front_)


def test_with_scaled_columns_a_warm_start_and_a_pickle():
    large = X * [1e60, 1, 1]
    estimator = shine.SymbolicRegressor(loss="mae", warm_start=True, **QUICK).fit(large, OUTLIERS)
    check(estimator.front_)
    check(estimator.fit(large, OUTLIERS).front_)
    check(pickle.loads(pickle.dumps(estimator)).front_)


@pytest.mark.slow
def test_in_each_estimator_and_in_evolve():
    check(shine.SymbolicClassifier(**QUICK).fit(X, LAW.median() < LAW).front_)
    for front in shine.SymbolicTransformer(2, **QUICK).fit(X, LAW).front_:
        check(front)
    for front in shine.SymbolicRegressor(loss="mae", **QUICK).fit(X, np.column_stack([LAW, OUTLIERS])).front_:
        check(front)
    check(shine.evolve(X, OUTLIERS, loss="mae", generations=0, seconds=5, seeding=0.0).front)


def test_the_exports_have_the_headings_of_a_search_with_outliers():
    best = shine.SymbolicRegressor(loss="mae", primitives=["add", "mul"], max_time=5).fit(X, OUTLIERS).best_
    assert '"my area (m²)"' in best.export("sql")
    assert "€" in best.latex()
