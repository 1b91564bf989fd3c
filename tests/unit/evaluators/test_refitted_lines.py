"""Lines of least absolute errors, instead of those of least squares."""

from __future__ import annotations

import numpy as np
import pytest

from shine.data.dataset import Dataset
from shine.evaluators.gradients import MachineLinearizer
from shine.evaluators.machine_tier import MachineEvaluator
from shine.evaluators.refitted_lines import RefittedLines
from shine.lang.population import Population

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 5, (200, 2))
POPULATION = Population.from_sources(["x0*x1", "x0", "x0*x0", "2.0*x0 + x1"], ("x0", "x1"))


def scores(target, absolute=True):
    dataset = Dataset.from_arrays(X, target, None, ("x0", "x1"))
    plain = MachineEvaluator(dataset, "mae", True, "float64")
    measured = MachineEvaluator(dataset, "mae", False, "float64")
    lines = RefittedLines(plain, measured, MachineLinearizer(dataset, "mae"), dataset.target_mean)
    return (lines if absolute else plain).score(POPULATION)


def test_a_line_ignores_moderate_outliers():
    target = 3 * X[:, 0] * X[:, 1] + 1
    target[::20] += 40
    found = scores(target)
    assert (found.slopes[0], found.intercepts[0]) == pytest.approx((3, 1), abs=1e-4)


def test_no_line_is_worse_than_that_of_least_squares():
    target = np.sin(X[:, 0]) * X[:, 1] + RNG.standard_t(1.5, 200)
    found, before = scores(target), scores(target, absolute=False)
    assert (found.losses <= before.losses).all()
    assert (found.losses < before.losses).any()


def test_losses_are_those_of_the_lines():
    target = np.sin(X[:, 0]) * X[:, 1] + RNG.standard_t(1.5, 200)
    found = scores(target)
    values = np.stack([X[:, 0] * X[:, 1], X[:, 0], X[:, 0] ** 2, 2 * X[:, 0] + X[:, 1]])
    errors = np.abs(target - found.intercepts[:, None] - found.slopes[:, None] * values)
    assert found.losses == pytest.approx(errors.mean(axis=1))
