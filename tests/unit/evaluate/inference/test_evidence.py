"""Weights of formulas by their evidence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from unit.evaluate.inference.cases import inference, line

from shine.evaluate.inference.evidence import Predictions, averaged, foreseen, information, nats, shares


def lengths(formulas, y_of=lambda x, y: y, loss="mse", exact=()):
    x, y = line(rows=60)
    known = [inference(formula, {"x": x}, y_of(x, y), loss, exact=exact).uncertainty for formula in formulas]
    return nats(known, [1.25] * len(formulas))


def test_the_law_has_nearly_all_the_weight():
    weights = shares(lengths(["3.41*x", "2.31*x + 1.37", "5.71"]))
    assert weights.sum() == pytest.approx(1) and weights[1] > 0.99


def test_the_difference_of_two_formulas_without_constants_is_that_of_their_likelihoods():
    x, y = line(rows=60)
    first, second = lengths(["2*x + 1", "2*x + 2"], exact=(1.0, 2.0))
    squares = [((y - 2 * x - shift) ** 2).sum() for shift in (1, 2)]
    assert first - second == pytest.approx(30 * math.log(squares[0] / squares[1]))


def test_counts_are_compared_by_their_likelihood():
    x = np.linspace(1, 5, 50)
    y = np.random.default_rng(0).poisson(4 * x).astype(float)
    known = [inference(text, {"x": x}, y, "poisson", exact=(2, 3, 4)).uncertainty for text in ("4*x", "3*x + 2")]
    first, second = nats(known, [0.0, 0.0])

    def likelihood(mean):
        return (mean - y * np.log(mean)).sum()

    assert first - second == pytest.approx(likelihood(4 * x) - likelihood(3 * x + 2))


@pytest.mark.slow
def test_as_many_constants_as_rows_have_no_weight():
    x, y = line(rows=2)
    known = [inference(text, {"x": x}, y).uncertainty for text in ("2.31*x + 1.37", "2.31*x")]
    assert shares(nats(known, [0.0, 0.0])).tolist() == [0.0, 1.0]


def test_a_formula_with_undetermined_constants_has_no_weight():
    weights = shares(lengths(["2.31*x + 1.37", "2.31*x + 1.37 + 0.11*max(x - 1e9, 0.5)", "2.31*x + exp(0.2 + 0.11)"]))
    assert weights.tolist() == [1.0, 0.0, 0.0]


def test_formulas_that_all_have_undetermined_constants_are_weighed():
    weights = shares(lengths(["1.31*x + 1.01*x + 1.37", "3.11 + 2.61"]))
    assert weights[0] > 0.99


def test_an_average_scatters_by_its_parts_and_their_disagreement():
    mean, deviation = averaged(np.array([[1.0], [3.0]]), np.array([[0.5], [0.5]]), np.array([0.5, 0.5]))
    assert (mean[0], deviation[0]) == pytest.approx((2.0, math.sqrt(0.25 + 1.0)))


def test_formulas_without_weight_may_be_undefined():
    mean, deviation = averaged(np.array([[1.0], [np.nan]]), np.array([[0.5], [np.nan]]), np.array([1.0, 0.0]))
    assert (mean[0], deviation[0]) == (1.0, 0.5)


def normal(y, mean, deviation):
    return np.exp(-(((y - mean) / deviation) ** 2) / 2) / deviation / math.sqrt(2 * math.pi)


def integrated(weights, means, deviations):
    """Mutual information of the form and a reading, on a grid of 400 001 readings."""
    low = min(m - 12 * s for m, s in zip(means, deviations, strict=True))
    high = max(m + 12 * s for m, s in zip(means, deviations, strict=True))
    y = np.linspace(low, high, 400_001)
    parts = [normal(y, m, s) for m, s in zip(means, deviations, strict=True)]
    mixed = sum(w * part for w, part in zip(weights, parts, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [w * np.where(part > 1e-200, part * np.log(part / mixed), 0.0)
                 for w, part in zip(weights, parts, strict=True)]  # fmt: skip
    return float(np.trapezoid(sum(terms), y) if hasattr(np, "trapezoid") else np.trapz(sum(terms), y))


@pytest.mark.parametrize(
    ("weights", "means", "deviations"),
    [((0.5, 0.5), (0.0, 1.0), (1.0, 1.0)),
     ((0.5, 0.5), (0.0, 0.0), (1.0, 3.0)),
     ((0.9, 0.1), (5.0, 9.0), (1.0, 2.0)),
     ((0.2, 0.3, 0.5), (-1.0, 0.5, 4.0), (0.5, 1.0, 1.5)),
     ((0.5, 0.5), (0.0, 100.0), (1.0, 1.0))],
)  # fmt: skip
def test_information_is_that_of_an_integral(weights, means, deviations):
    found = information(np.array(weights), np.array(means)[:, None], np.array(deviations)[:, None] ** 2)
    assert found[0] == pytest.approx(integrated(weights, means, deviations), abs=2e-4)


def test_information_is_never_more_than_what_is_missing():
    weights = np.array([0.25, 0.75])
    apart = np.array([0.0, 1.0, 3.0, 10.0, 1e9])
    found = information(weights, np.array([np.zeros(5), apart]), np.ones((2, 5)))
    missing = -(weights * np.log(weights)).sum()
    assert found[0] == pytest.approx(0.0, abs=1e-12) and (np.diff(found) >= -1e-12).all()
    assert found[-1] == pytest.approx(missing) and (found <= missing + 1e-12).all()


def line_and_bend(places, noise=0.04, freedom=math.inf):
    """Two forms with a constant each: c*x with c = 1.0 ± 0.2, and c*x**2 with c = 0.5 ± 0.1."""
    x = np.array(places, np.float64)
    values = np.array([x, 0.5 * x**2])
    return Predictions(values, [0.2 * x[None], 0.1 * x[None] ** 2], np.full(len(x), noise), freedom)


@pytest.mark.slow
@pytest.mark.parametrize(("freedom", "places"), [(math.inf, [3.0]), (4.0, [1.0, 4.0])])
def test_the_probability_to_decide_is_that_of_a_simulation(places, freedom):
    stats = pytest.importorskip("scipy.stats")
    weights, rng, x = np.array([0.6, 0.4]), np.random.default_rng(5), np.array(places)
    covariances = [0.04 * np.outer(x, x) + 0.04 * np.eye(len(x)), 0.01 * np.outer(x**2, x**2) + 0.04 * np.eye(len(x))]
    # A noise whose scale few rows tell makes Student's distribution of several readings.
    forms = [stats.multivariate_t(mean, covariance, 1e9 if freedom == math.inf else freedom, seed=rng)
             for mean, covariance in zip((x, 0.5 * x**2), covariances, strict=True)]  # fmt: skip
    odds = [form.rvs(10_000).reshape(10_000, len(x)) for form in forms]
    odds = [weights[0] / weights[1] * np.exp(forms[0].logpdf(y) - forms[1].logpdf(y)) for y in odds]
    decided = weights @ [np.mean((each >= 20) | (each <= 1 / 20)) for each in odds]
    found = foreseen(weights, line_and_bend(places, freedom=freedom), 20_000, np.random.default_rng(0)).deciding(20)
    assert found == pytest.approx(decided, abs=0.015)


def test_constants_that_are_all_but_unknown_leave_weights():
    # The errors left by the best constants are differences of numbers near 1e24.
    for seed in range(20):
        slopes = np.random.default_rng(seed).normal(0, 1e12, (3, 2))
        chosen = Predictions(np.array([[0.0, 1.0], [5.0, 2.0]]), [slopes, slopes[::-1] / 3], np.ones(2), 3.0)
        found = foreseen(np.array([0.6, 0.4]), chosen, 50, np.random.default_rng(seed)).weights
        assert np.isfinite(found).all() and found.sum(axis=1) == pytest.approx(1)


def test_what_a_second_reading_tells_is_what_both_tell_without_what_the_first_tells():
    weights, first = np.array([0.6, 0.4]), line_and_bend([3.0])
    entropy = -float((weights * np.log(weights)).sum())

    def told(places):
        after = foreseen(weights, line_and_bend(places), 200_000, np.random.default_rng(3)).weights
        after = np.where(after > 0, after, 1.0)
        return entropy + float((after * np.log(after)).sum(axis=1).mean())

    cases = foreseen(weights, first, 2000, np.random.default_rng(0))
    assert cases.information(line_and_bend([4.0]))[0] == pytest.approx(told([3.0, 4.0]) - told([3.0]), abs=0.01)
