"""Weights of formulas by their evidence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from unit.evaluate.inference.cases import inference, line

from shine.evaluate.inference.evidence import averaged, nats, shares


def lengths(formulas, y_of=lambda x, y: y, loss="mse", exact=()):
    x, y = line(rows=60)
    known = [inference(formula, {"x": x}, y_of(x, y), loss, exact=exact).uncertainty for formula in formulas]
    return nats(known, [1.25] * len(formulas))


def test_the_law_has_nearly_all_the_weight():
    weights = shares(lengths(["3.41*x", "2.31*x + 1.37", "5.71"]))
    assert weights.sum() == pytest.approx(1) and weights[1] > 0.99


def test_a_constant_that_explains_nothing_costs():
    line_only, with_square = lengths(["2.31*x + 1.37", "2.31*x + 1.37 + 0.001*x*x"])
    assert 0 < with_square - line_only < 10


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


def test_without_any_evidence_all_are_equal():
    assert shares(np.array([math.inf, math.inf])).tolist() == [0.5, 0.5]


def test_an_average_scatters_by_its_parts_and_their_disagreement():
    mean, deviation = averaged(np.array([[1.0], [3.0]]), np.array([[0.5], [0.5]]), np.array([0.5, 0.5]))
    assert (mean[0], deviation[0]) == pytest.approx((2.0, math.sqrt(0.25 + 1.0)))


def test_formulas_without_weight_may_be_undefined():
    mean, deviation = averaged(np.array([[1.0], [np.nan]]), np.array([[0.5], [np.nan]]), np.array([1.0, 0.0]))
    assert (mean[0], deviation[0]) == (1.0, 0.5)
