"""Built-in losses: their errors, against SciPy's likelihoods and scikit-learn's metrics."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from shine import losses
from shine.evaluate.losses.form import LOSSES
from shine.evaluate.losses.library import LIBRARY

RNG = np.random.default_rng(0)
MEAN = RNG.uniform(0.5, 20.0, 60)
SIGMA = RNG.uniform(0.2, 3.0, 60)
COUNTS = RNG.poisson(MEAN).astype(float)
POSITIVE = RNG.gamma(2.0, MEAN / 2)
SHARES = RNG.uniform(0.01, 0.99, 60)
ODDS = RNG.normal(0, 2, 60)


def _negative_binomial(target, mean):
    return -stats.nbinom.logpmf(target, 1 / 0.4, 1 / (1 + 0.4 * mean))


LIKELIHOODS = {
    "gaussian": (MEAN, COUNTS, {"sigma": SIGMA}, lambda t, p: -stats.norm.logpdf(t, p, SIGMA)),
    "poisson": (MEAN, COUNTS, {}, lambda t, p: -stats.poisson.logpmf(t, p)),
    "binomial": (ODDS, COUNTS > 5, {}, lambda t, p: -stats.bernoulli.logpmf(t, 1 / (1 + np.exp(-p)))),
    "negative_binomial(0.4)": (MEAN, COUNTS, {}, _negative_binomial),
    "student_t(3, 0.5)": (ODDS, ODDS + 2, {}, lambda t, p: -stats.t.logpdf(t, 3, p, 0.5)),
    "student_t(5)": (ODDS, ODDS - 1, {"sigma": SIGMA}, lambda t, p: -stats.t.logpdf(t, 5, p, SIGMA)),
}
"""Predictions, targets, columns, and the negative log-likelihood of a row."""


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_differences_are_those_of_the_likelihood(name):
    prediction, target, columns, likelihood = LIKELIHOODS[name]
    factor = losses.loss_from(name, columns).kind.log_likelihood
    other = prediction[::-1]
    own = losses.errors(name, prediction, target, **columns) - losses.errors(name, other, target, **columns)
    target = np.asarray(target, float)
    np.testing.assert_allclose(factor * own, likelihood(target, prediction) - likelihood(target, other), atol=1e-9)


def test_gamma_is_the_likelihood_up_to_its_unknown_scale():
    own = losses.errors("gamma", MEAN, POSITIVE) - losses.errors("gamma", MEAN[::-1], POSITIVE)
    shape = 3.0
    expected = [-stats.gamma.logpdf(POSITIVE, shape, scale=mean / shape) for mean in (MEAN, MEAN[::-1])]
    np.testing.assert_allclose(shape / 2 * own, expected[0] - expected[1], atol=1e-9)


def test_quantile_is_the_likelihood_of_an_asymmetric_laplace_distribution():
    own = losses.errors("quantile(0.8)", ODDS, ODDS[::-1])
    skew = np.sqrt(0.8 / 0.2)  # SciPy's parameter
    density = stats.laplace_asymmetric.logpdf(ODDS[::-1], skew, ODDS, 1 / np.sqrt(0.8 * 0.2))
    constant = density + own
    np.testing.assert_allclose(constant, constant[0], atol=1e-9)


METRICS = {
    "poisson": (MEAN, COUNTS, metrics.mean_poisson_deviance),
    "gamma": (MEAN, POSITIVE, metrics.mean_gamma_deviance),
    "quantile(0.3)": (ODDS, COUNTS, lambda t, p: metrics.mean_pinball_loss(t, p, alpha=0.3)),
    "hinge": (ODDS, np.sign(ODDS[::-1]), metrics.hinge_loss),
    "binomial": (ODDS, COUNTS > 5, lambda t, p: metrics.log_loss(t, 1 / (1 + np.exp(-p)))),
    "logarithmic": (MEAN, POSITIVE, lambda t, p: metrics.mean_squared_error(np.log(t), np.log(p))),
    "relative": (MEAN, POSITIVE, lambda t, p: np.mean(((t - p) / t) ** 2)),
}


@pytest.mark.parametrize("name", METRICS)
def test_the_mean_is_the_metric_of_scikit_learn(name):
    prediction, target, metric = METRICS[name]
    own = losses.errors(name, prediction, target).mean()
    assert own == pytest.approx(metric(target, prediction), rel=1e-9)


def test_huber_and_log_cosh_are_squares_near_zero_and_linear_far_away():
    assert losses.errors("huber(2)", [1.0, 5.0], [0.0, 0.0]).tolist() == [0.5, 8.0]
    assert losses.errors("log_cosh", [1e-3, 50.0], [0.0, 0.0]) == pytest.approx([0.5e-6, 50 - np.log(2)])


def test_intervals_and_censored_targets_have_errors_on_one_side():
    lower, upper = [1.0] * 3, [2.0] * 3
    assert losses.errors("interval", [0.0, 1.5, 4.0], [1.5] * 3, lower=lower, upper=upper).tolist() == [1.0, 0.0, 4.0]
    censored = [-1.0, -1.0, 0.0, 1.0, 1.0]
    own = losses.errors("censored", [4.0, 2.0, 4.0, 2.0, 4.0], [3.0] * 5, censored=censored)
    assert own.tolist() == [1.0, 0.0, 1.0, 1.0, 0.0]


PERFECT = {
    "poisson": COUNTS, "negative_binomial(2)": COUNTS, "gamma": POSITIVE, "student_t(2)": ODDS, "huber": ODDS,
    "log_cosh": ODDS, "quantile(0.1)": ODDS, "relative": POSITIVE, "logarithmic": POSITIVE,
}  # fmt: skip


@pytest.mark.parametrize("name", PERFECT)
def test_a_perfect_prediction_has_no_error_and_others_have_some(name):
    target = PERFECT[name]
    np.testing.assert_allclose(losses.errors(name, target, target), 0.0, atol=1e-8)
    for step in (-0.3, 0.3):
        assert (losses.errors(name, target + step, target) > 0).all()


@pytest.mark.parametrize("name", ["poisson", "negative_binomial(0.5)", "gamma", "logarithmic"])
def test_predictions_out_of_range_have_finite_errors_that_fall_towards_the_range(name):
    target = POSITIVE[:1] if name in ("gamma", "logarithmic") else np.array([3.0])
    own = [float(losses.errors(name, [value], target)[0]) for value in (-10.0, -1.0, -0.1, 1e-3, 0.5 * target[0])]
    assert np.isfinite(own).all() and own == sorted(own, reverse=True)


@pytest.mark.parametrize("name", ["poisson", "negative_binomial(0.5)"])
def test_a_count_of_zero_has_finite_errors(name):
    own = [float(losses.errors(name, [value], [0.0])[0]) for value in (-1.0, 0.0, 0.1, 3.0)]
    assert np.isfinite(own).all() and own[1] < own[2] < own[3] and own[0] > own[3]


def test_each_has_a_maker_with_a_help_that_says_what_it_predicts():
    for name, built_in in LIBRARY.items():
        make = getattr(losses, name)
        assert built_in.meaning in make.__doc__
        assert make().name == losses.loss_text(name) == losses.loss_text(make)


def test_no_name_is_taken_twice():
    assert not set(LIBRARY) & set(LOSSES)
