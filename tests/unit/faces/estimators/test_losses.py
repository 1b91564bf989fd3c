"""Estimators under losses: parameters, columns beside the data, clones and pickles."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score

from shine import losses
from shine.estimators import SymbolicRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 3, (80, 2))
Y = 2 * X[:, 0] * X[:, 1] + 1
QUICK = {"generations": 1, "max_time": None, "population_size": 40, "random_state": 0, "primitives": ["add", "mul"]}


@pytest.mark.slow
def test_a_loss_is_a_parameter_and_the_score_stays_r2():
    counts = RNG.poisson(Y)
    model = SymbolicRegressor(loss="poisson", **QUICK).fit(X, counts)
    assert model.score(X, counts) == r2_score(counts, model.predict(X))
    assert model.best_.loss == pytest.approx(losses.errors("poisson", model.predict(X), counts).mean())


@pytest.mark.slow
def test_a_function_goes_with_clones_and_pickles():
    fourth = lambda y_true, y_pred: (y_true - y_pred) ** 4  # noqa: E731
    model = SymbolicRegressor(loss=fourth, **QUICK)
    assert clone(model).loss is fourth
    copy = pickle.loads(pickle.dumps(model.fit(X, Y + 0.1 * RNG.normal(size=80))))
    assert copy.loss.startswith("def ") and copy.fit(X, Y).best_.expression == "2*x0*x1 + 1"


@pytest.mark.parametrize("loss", [losses.huber(0.5), losses.log_cosh, "huber(0.5)"])
def test_built_in_losses_go_with_clones_and_pickles(loss):
    model = pickle.loads(pickle.dumps(clone(SymbolicRegressor(loss=loss, **QUICK))))
    assert losses.loss_text(model.loss) == losses.loss_text(loss)


def test_columns_beside_a_frame_are_not_needed_to_predict():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "lower": np.floor(Y), "b": X[:, 1], "upper": np.ceil(Y)})
    model = SymbolicRegressor(loss="interval", **QUICK).fit(frame, Y, loss_columns=["lower", "upper"])
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame[["a", "b"]]))


@pytest.mark.slow
def test_rows_of_weight_zero_leave_their_columns_too():
    weights = (np.arange(80) % 2).astype(float)
    cut = np.where(weights > 0, 0.0, 1.0)
    model = SymbolicRegressor(loss="censored", **QUICK).fit(X, Y, weights, loss_columns={"censored": cut})
    assert model.best_.expression == "2*x0*x1 + 1"
