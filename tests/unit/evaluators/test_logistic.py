"""Log-loss on the machines, against SciPy and against differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import xlogy

from shine.data.dataset import Dataset
from shine.evaluators.logistic import LogisticEvaluator, LogisticLinearizer
from shine.gp.constants import places
from shine.lang.population import Population

RNG = np.random.default_rng(0)
ROWS = 301
A, B = RNG.normal(size=(2, ROWS))
SHARE, WEIGHTS = RNG.choice([0.0, 0.03, 0.97, 1.0], ROWS), RNG.uniform(0.5, 2, ROWS)
DATA = Dataset.from_arrays(np.column_stack([A, B]), SHARE, WEIGHTS, ("a", "b"))
FORMULAS = {
    "2.0*a + 0.5": 2 * A + 0.5,
    "800.0*a": 800 * A,
    "0.0*a": 0 * A,
    "a - 3.0*b*b": A - 3 * B * B,
    "-1000.0*b": -1000 * B,
}
POPULATION = Population.from_sources([*FORMULAS, "log(a)"], ("a", "b"))
ONES = np.ones(len(POPULATION))


def expected(scores):
    """Mean log-loss, by a sum that neither overflows nor cancels."""
    return np.average(np.logaddexp(0, scores) - SHARE * scores, weights=WEIGHTS)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 1e-5)])
def test_losses_are_log_losses(dtype, tolerance):
    losses = LogisticEvaluator(DATA, dtype).losses(POPULATION)
    assert losses[:-1] == pytest.approx([expected(scores) for scores in FORMULAS.values()], rel=tolerance)
    assert losses[-1] == np.inf


def test_a_certain_score_costs_nothing_if_right_and_its_size_if_wrong():
    data = Dataset.from_arrays([[2000.0], [-3000.0]], [1.0, 0.0], None, ("a",))
    other = Dataset.from_arrays([[2000.0], [-3000.0]], [0.0, 1.0], None, ("a",))
    formula = Population.from_sources(["a"], ("a",))
    assert LogisticEvaluator(data).losses(formula)[0] == 0.0
    assert LogisticEvaluator(other).losses(formula)[0] == 2500.0


def test_errors_are_the_sums_of_losses():
    found = LogisticLinearizer(DATA).normal_equations(POPULATION, ONES, 0 * ONES, np.inf * ONES)
    assert found.errors == pytest.approx(LogisticEvaluator(DATA).losses(POPULATION) * WEIGHTS.sum(), rel=1e-12)
    assert found.counts.tolist() == [2, 1, 1, 1, 1, 0]


def test_gradients_are_differences():
    linearizer, step = LogisticLinearizer(DATA), 1e-6
    found = linearizer.normal_equations(POPULATION, ONES, 0 * ONES, np.inf * ONES)
    individuals, columns, ranks = places(POPULATION)
    for individual, column, rank in zip(individuals, columns, ranks, strict=True):
        errors = []
        for change in (step, -step):
            values = POPULATION.values.copy()
            values[individual, column] += change
            moved = replace(POPULATION, values=values)
            errors.append(linearizer.normal_equations(moved, ONES, 0 * ONES, np.inf * ONES).errors[individual])
        # The residual is 0 less the root of the loss, whose square has twice its product with the derivative.
        gradient = -2 * found.matrices[individual, 0, 3 + rank]
        assert gradient == pytest.approx((errors[0] - errors[1]) / (2 * step), rel=1e-5)


def test_fitting_finds_the_maximum_of_the_likelihood():
    start = Population.from_sources(["0.1 + 0.1*a + 0.1*b"], ("a", "b"))
    fit = LogisticLinearizer(DATA).fit(start, np.ones(1), np.zeros(1), 100, tolerance=1e-14, scaled=False)
    intercept, *slopes = fit.population.values[0][places(start)[1]]
    left = 1 / (1 + np.exp(-(intercept + slopes[0] * A + slopes[1] * B))) - SHARE
    # There the residuals are orthogonal to a constant and to both columns.
    for column in (np.ones(ROWS), A, B):
        assert WEIGHTS * column @ left == pytest.approx(0, abs=1e-3)


def test_the_least_loss_is_the_entropy_of_the_shares():
    shares = np.array([0.1, 0.6, 0.9])
    data = Dataset.from_arrays(np.log(shares / (1 - shares))[:, None], shares, None, ("a",))
    least = -np.mean(xlogy(shares, shares) + xlogy(1 - shares, 1 - shares))
    losses = LogisticEvaluator(data).losses(Population.from_sources(["a", "a + 0.1", "0.9*a"], ("a",)))
    assert losses[0] == pytest.approx(least, rel=1e-14)
    assert (losses[1:] > least).all()
