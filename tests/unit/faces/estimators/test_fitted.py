"""How sure a fitted estimator is."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from shine import SymbolicClassifier, SymbolicRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 4, (50, 2))
Y = X[:, 0] * 3.21 + RNG.normal(0, 0.1, 50)
QUICK = {
    "primitives": ["add", "mul"], "generations": 1, "population_size": 40, "max_time": None, "random_state": 0,
    "n_jobs": 1, "settings": {"seeding": 0.0}, "noise": "absolute",
}  # fmt: skip


@pytest.fixture(scope="module")
def one():
    return SymbolicRegressor(**QUICK).fit(X, Y)


@pytest.fixture(scope="module")
def two():
    return SymbolicRegressor(**QUICK).fit(X, np.column_stack([Y, 2 * Y + 5.5]))


def test_the_methods_are_those_of_the_chosen_formula(one):
    best = one.best_
    assert one.conf_int() == best.conf_int()
    assert one.conf_int(0.9, "wald", covariance="robust") == best.conf_int(0.9, "wald", covariance="robust")
    assert one.standard_errors() == best.standard_errors()
    assert np.array_equal(one.correlations(), best.correlations())
    assert str(one.summary()) == str(best.summary())
    assert np.array_equal(one.predict_interval(X), best.predict_interval(X))
    for own, expected in zip(one.predict(X, return_std=True), best.predict(X, return_std=True), strict=True):
        assert np.array_equal(own, expected)


def test_several_targets_give_a_list_or_a_further_axis(two):
    assert [ends.keys() for ends in two.conf_int()] == [best.conf_int().keys() for best in two.best_]
    assert two.predict_interval(X).shape == (50, 2, 2)
    values, deviations = two.predict(X, return_std="mean")
    assert values.shape == deviations.shape == (50, 2)
    assert np.array_equal(values, two.predict(X))


def test_a_pickle_knows_as_much(one):
    copied = pickle.loads(pickle.dumps(one))
    assert copied.standard_errors() == one.standard_errors()
    assert copied.conf_int(0.77, "profile") == one.conf_int(0.77, "profile")


def test_a_template_takes_texts_of_groups_in_intervals_and_drawings():
    pandas, matplotlib = pytest.importorskip("pandas"), pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    codes, t = np.arange(50) % 2, X[:, 0]
    table = pandas.DataFrame({"who": np.array(["a", "b"])[codes], "t": t})
    y = (codes + 1) * t + RNG.normal(0, 0.1, 50)
    found = SymbolicRegressor(**QUICK, template="k[who]*f(t)").fit(table, y)
    numbered = found.best_.with_group_numbers(table)
    np.testing.assert_array_equal(found.predict_interval(table), found.best_.predict_interval(numbered))
    assert found.best_.with_data(table, y).conf_int(method="wald").keys() == found.conf_int(method="wald").keys()
    assert found.plot("band", table, y).get_xlabel() == "t"


def classes(*thresholds):
    odds = 1.03 * X[:, 0] - 2.04 * X[:, 1] + 2.4
    return odds, np.digitize(RNG.logistic(odds), thresholds)


def classifier(labels):
    return SymbolicClassifier(**{name: each for name, each in QUICK.items() if name != "noise"}).fit(X, labels)


@pytest.mark.slow
def test_a_classifier_has_the_intervals_of_logistic_regression():
    from scipy import optimize

    _, labels = classes(0.0)
    model = classifier(labels)
    own = max(model.front_, key=lambda each: len(each.form().names))
    text = own.form().text

    def loss(values):
        odds = eval(text, dict(zip(own.form().names, values, strict=True)) | {"x0": X[:, 0], "x1": X[:, 1]})
        return np.logaddexp(0.0, odds).sum() - labels @ odds

    least = optimize.minimize(loss, own.form().values, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    known = own.uncertainty
    assert len(known.best) >= 2 and known.best == pytest.approx(least.x, rel=1e-3)
    step = 1e-3 * np.eye(len(least.x))
    information = [
        [(loss(least.x + a + b) - loss(least.x + a - b) - loss(least.x - a + b) + loss(least.x - a - b)) / 4e-6
         for b in step] for a in step
    ]  # fmt: skip
    assert known.errors == pytest.approx(np.sqrt(np.diagonal(np.linalg.inv(information))), rel=0.02)


def test_intervals_of_probabilities_hold_the_predicted_ones():
    _, labels = classes(0.0)
    model = classifier(labels)
    shares, ends = model.predict_proba(X), model.predict_interval(X)
    assert ends.shape == (50, 2, 2)
    assert ((ends[..., 0] <= shares) & (shares <= ends[..., 1])).all() and ((ends >= 0) & (ends <= 1)).all()
    assert ends[:, 0].tolist() == (1 - ends[:, 1, ::-1]).tolist()
    with pytest.raises(ValueError, match="kind is 'prediction'; probabilities have intervals of kind 'mean'"):
        model.predict_interval(X, kind="prediction")


@pytest.mark.slow
def test_several_classes_have_intervals_of_constants_but_not_of_probabilities():
    model = classifier(classes(-2.0, 2.0)[1])
    assert len(model.conf_int()) == len(model.summary()) == 3
    with pytest.raises(ValueError, match="probabilities of 3 classes have no intervals"):
        model.predict_interval(X)
