"""`SymbolicTransformer`: components that are related to the target and little to one another."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.estimators import SymbolicTransformer
from shine.faces.estimators.component_search import Components

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (200, 3))
NOISE = RNG.normal(size=200)
Y = 3 * X[:, 0] * X[:, 1] + 5 * np.sin(2 * X[:, 2]) + 0.1 * NOISE
QUICK = {
    "population_size": 100,
    "generations": 5,
    "max_time": None,
    "max_size": 6,
    "primitives": ("add", "mul", "sin"),
    "random_state": 0,
    "n_jobs": 1,
    "settings": {"seeding": 0.0},
}


def quick(**parameters):
    return SymbolicTransformer(**QUICK | parameters)


@pytest.mark.slow
def test_components_add_to_the_raw_features():
    model = quick(n_components=3, generations=10).fit(X, Y)
    design = np.column_stack([np.ones(200), X])
    raw = np.linalg.lstsq(design, Y, rcond=None)[1][0]
    found = model.transform(X)
    both = np.linalg.lstsq(np.column_stack([np.ones(200), found]), Y, rcond=None)[1][0]
    assert both < 0.7 * raw
    assert np.array_equal(found[:, :3], X)
    assert np.array_equal(found[:, 3:], np.column_stack([each.predict(X) for each in model.best_]))
    assert model.n_components_ == len(model.best_) == found.shape[1] - 3


@pytest.mark.slow
@pytest.mark.parametrize("target", [2 * X[:, 0] - X[:, 1] + 1, X[:, 2] + NOISE, NOISE, np.full(200, 2.0)])
def test_if_nothing_adds_to_the_raw_features_there_is_no_component(target):
    model = quick(n_components=3).fit(X, target)
    assert np.array_equal(model.transform(X), X)
    assert model.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    assert (model.n_components_, model.best_, repr(model)) == (0, [], "SymbolicTransformer.equations_ = []")
    assert "no component" in model._repr_latex_()
    assert pickle.loads(pickle.dumps(model)).transform(X).shape == (200, 3)
    with pytest.raises(ValueError, match="there is no formula to draw"):
        model.plot()


def test_raw_features_keep_their_headings():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a b", "c", "d"])
    model = quick(n_components=1, raw_features=True).set_output(transform="pandas").fit(frame, X[:, 0] * X[:, 1])
    assert model.transform(frame).columns.tolist() == ["a b", "c", "d", "a_b*c"]
    assert model.transform(frame)["c"].tolist() == X[:, 1].tolist()


def test_components_in_place_of_features_are_no_worse_than_a_linear_model():
    target = X @ [3, -2, 1] + 0.3 * NOISE
    found = quick(n_components=1, max_size=3, raw_features=False).fit_transform(X, target)[:, 0]
    linear = np.column_stack([np.ones(200), X]) @ np.linalg.lstsq(np.column_stack([np.ones(200), X]), target)[0]
    assert np.corrcoef(found, linear)[0, 1] > 0.99


def test_names_are_the_formulas():
    model = quick(n_components=2).fit(X, Y)
    formulas = [each.expression for each in model.best_]
    assert model.get_feature_names_out().tolist() == ["x0", "x1", "x2", *formulas]
    assert model.get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c", *formulas]
    with pytest.raises(ValueError, match="input_features should have length equal to number of features"):
        model.get_feature_names_out(["a"])


def test_a_constant_target_has_a_constant_component():
    assert quick(n_components=3, raw_features=False).fit_transform(X, np.full(200, 2.0)).tolist() == [[2.0]] * 200


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number from 1 to 10000, is 0"),
        ({"n_components": 1.5}, "n_components must be a whole number from 1 to 10000, is 1.5"),
        ({"max_correlation": 0}, "max_correlation must be a number above 0 and at most 1, is 0"),
        ({"max_correlation": 1.1}, "max_correlation must be a number above 0 and at most 1, is 1.1"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(X, Y)


def test_a_callback_ends_the_fit_with_the_components_found_so_far():
    model = quick(n_components=4, callbacks=lambda progress: progress.generation == 1).fit(X, Y)
    assert (model.stopped_by_, len(model.best_)) == ("callback", 1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_residuals_are_those_of_weighted_least_squares(seed, count):
    rng = np.random.default_rng(seed)
    weights, columns, target = rng.uniform(0.1, 3, 30), rng.normal(3, 2, (count, 30)), rng.normal(5, 1, 30)
    components = Components(weights)
    assert components.residual(target) is target
    for column in columns:
        components.add(column)
    residual = components.residual(target)
    # The normal equations: weighted residuals are orthogonal to a constant and to every column.
    assert weights @ residual == pytest.approx(0, abs=1e-9)
    assert columns @ (weights * residual) == pytest.approx(np.zeros(count), abs=1e-8)
    assert components.deviation(target) == pytest.approx(np.sqrt(np.cov(target, aweights=weights, ddof=0)))
