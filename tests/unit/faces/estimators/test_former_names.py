"""Parameters of former versions: they work, and warn where the user wrote them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from shine.estimators import SymbolicClassifier, SymbolicRegressor, SymbolicTransformer

X = np.random.default_rng(0).uniform(1, 5, (40, 2))
y = X[:, 0] * X[:, 1]
QUICK = {"generations": 0, "max_time": None, "population_size": 20, "settings": {"seeding": 0.0}, "random_state": 0}


@pytest.mark.parametrize("kind", [SymbolicRegressor, SymbolicClassifier, SymbolicTransformer])
def test_guesses_by_their_former_name_warn_where_fit_is_called(kind):
    target = y > 9 if kind is SymbolicClassifier else y
    with pytest.warns(FutureWarning, match="calls the parameter 'seeds' 'guesses' now") as caught:
        kind(seeds=["x0*x1"], **QUICK).fit(X, target)
    assert caught[0].filename == __file__


def test_guesses_by_their_former_name_are_used_once_and_reach_clones():
    model = clone(SymbolicRegressor(**QUICK).set_params(seeds=["x0*x1"]))
    with pytest.warns(FutureWarning, match="seeds"):
        assert model.fit(X, y).best_.expression == "x0*x1"
    with pytest.raises(ValueError, match="seeds is the former name of guesses; pass only guesses"):
        SymbolicRegressor(seeds=["x0"], guesses=["x1"]).fit(X, y)


@pytest.mark.slow
def test_a_grid_may_name_them():
    grid = GridSearchCV(SymbolicRegressor(**QUICK), {"seeds": [["x0"], ["x0*x1"]]}, cv=2)
    with pytest.warns(FutureWarning, match="seeds"):
        assert grid.fit(X, y).best_params_ == {"seeds": ["x0*x1"]}


def test_pickles_of_before_keep_their_guesses():
    model = SymbolicRegressor(guesses=["x0*x1"], **QUICK)
    state = dict(model.__getstate__())
    state["seeds"] = state.pop("guesses")
    old = SymbolicRegressor.__new__(SymbolicRegressor)
    old.__setstate__(state)
    assert old.get_params() == model.get_params() == pickle.loads(pickle.dumps(old)).get_params()
