"""`SymbolicClassifier`: probabilities, classes, and their quality by scikit-learn's measures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from shine.estimators import SymbolicClassifier

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (200, 2))
A, B = X.T
ODDS = 3 * (A * A + B - 1)
LABELS = RNG.uniform(size=200) < expit(ODDS)
THREE = np.array(["high", "low", "middle"])[np.where(B > 1, 0, np.where(B < -1, 1, 2))]
QUICK = {
    "population_size": 50,
    "generations": 2,
    "max_time": None,
    "primitives": ("add", "sub", "mul"),
    "random_state": 0,
    "n_jobs": 1,
    "settings": {"seeding": 0.0},
}


def quick(**parameters):
    return SymbolicClassifier(**QUICK | parameters)


@pytest.mark.slow
def test_the_formula_of_the_odds_is_found():
    model = quick(population_size=200, generations=8).fit(X, LABELS)
    assert {token[1] for token in model.best_.tree.tokens[1:] if token[0] == "name"} == {"x0", "x1"}
    # The tolerance covers the sampling error, and the gain of fitting three constants on 200 rows.
    assert np.abs(model.predict_proba(X)[:, 1] - expit(ODDS)).max() < 0.25
    assert log_loss(LABELS, model.predict_proba(X)) < log_loss(LABELS, expit(ODDS)) + 0.03


def test_the_losses_of_the_front_are_log_losses():
    model = quick().fit(X, LABELS)
    share = LABELS.mean()
    constant = -share * np.log(share) - (1 - share) * np.log(1 - share)
    for position, each in enumerate(model.front_):
        assert each.loss == pytest.approx(log_loss(LABELS, model.predict_proba(X, index=position)), rel=1e-9)
        assert each.r2 == pytest.approx(1 - each.loss / constant, rel=1e-9, abs=1e-12)
    assert model.front_[0].loss == pytest.approx(constant)
    losses = [each.loss for each in model.front_]
    assert losses == sorted(set(losses), reverse=True)


@pytest.mark.slow
def test_a_line_is_that_of_logistic_regression():
    # Five nodes are a column and a line around it: scikit-learn's logistic regression on it has the same loss.
    model = quick(generations=1, max_size=5, primitives=["add", "mul"]).fit(X[:, 1:], LABELS)
    peer = LogisticRegression(C=np.inf).fit(X[:, 1:], LABELS)
    best = log_loss(LABELS, peer.predict_proba(X[:, 1:]))
    assert best <= model.front_[-1].loss * (1 + 1e-9)
    # Smoothed classes cost a little.
    assert model.front_[-1].loss == pytest.approx(best, rel=3e-3)


@pytest.mark.slow
def test_two_classes_have_one_formula_and_three_have_three():
    two, three = quick().fit(X, LABELS), quick().fit(X, THREE)
    assert two.decision_function(X).shape == (200,)
    assert three.decision_function(X).shape == three.predict_proba(X).shape == (200, 3)
    assert len(three.front_) == len(three.best_) == len(three.equations_) == 3
    assert repr(three).count("of class") == 3
    assert np.array_equal(two.decision_function(X) > 0, two.predict(X))
    assert np.array_equal(three.classes_[three.predict_proba(X).argmax(axis=1)], three.predict(X))
    assert three.score(X, THREE) > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::shine.ExtrapolationWarning")
def test_where_the_formula_is_nan_the_shares_of_the_classes_are_predicted():
    model = quick(primitives=("log",), generations=2, guesses=["log(x1)"])
    positive = np.abs(X) + 0.1
    model.fit(positive, RNG.uniform(size=200) < expit(3 * np.log(positive[:, 1])))
    assert "log(x1)" in model.best_.expression
    assert model.predict_proba([[1.0, -1.0]])[0] == pytest.approx(model.class_prior_)


def test_predicted_classes_have_the_type_of_the_given_ones():
    for labels, kind in ((LABELS, np.bool_), (LABELS * 7, np.int64), (np.where(LABELS, "yes", "no"), np.str_)):
        model = quick(generations=0).fit(X, labels)
        assert issubclass(model.predict(X).dtype.type, kind)
        assert set(model.predict(X).tolist()) <= set(labels.tolist()) == set(model.classes_.tolist())


def test_a_single_class_is_refused():
    with pytest.raises(ValueError, match=r"needs samples of at least 2 classes in the data, .* only one class: .*3"):
        quick().fit(X, np.full(200, 3))
    with pytest.raises(ValueError, match="only one class"):
        quick().fit(X, LABELS, LABELS * 1.0)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", None], "y has no class in 100 rows, the first in row 1"),
        (["a", 1], "y has 'a' in row 0 and 1 in row 1; classes are all texts, or all numbers"),
    ],
)
def test_classes_that_have_no_order_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(X, np.array(labels * 100, object))


def test_real_numbers_are_refused_as_classes():
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        quick().fit(X, A)


@pytest.mark.slow
def test_the_seeding_looks_for_the_classes_too():
    model = quick(settings={"seeding": 1.0, "seeding_members": 100}, generations=1, max_size=9).fit(X, LABELS)
    assert model.score(X, LABELS) > 0.7
