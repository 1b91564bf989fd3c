"""Estimators in other processes: functions of a notebook go with them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from shine.estimators import SymbolicRegressor

X = np.random.default_rng(0).uniform(1, 5, (60, 2))
QUICK = {"generations": 2, "max_time": None, "population_size": 60, "settings": {"seeding": 0.0}, "random_state": 0}


@pytest.mark.slow
def test_a_pickle_has_what_the_source_of_a_lambda_said():
    half = lambda x: x / 2  # noqa: E731
    given = SymbolicRegressor(primitives=[half, "mul"], guesses=[lambda x0, x1: x0 * x1], **QUICK)
    assert clone(given).fit(X, X[:, 0] * X[:, 1]).best_.expression == "x0*x1"
    model = SymbolicRegressor(primitives=[half, "mul"], guesses=["x0*x1"], **QUICK)
    assert clone(model).primitives[0] is half
    copy = pickle.loads(pickle.dumps(model))
    assert copy.fit(X, X[:, 0] * X[:, 1]).best_.expression == "x0*x1"
    assert copy.primitives[0].name == "function"
    assert model.primitives[0] is half


@pytest.mark.slow
def test_cross_validation_in_processes_has_the_functions_of_a_script():
    model = SymbolicRegressor(primitives=[lambda x: x / 2, "mul"], n_jobs=1, **QUICK)
    scores = cross_val_score(model, X, X[:, 0] * X[:, 1], cv=2, n_jobs=2, error_score="raise")
    assert (scores > 0.9).all()
