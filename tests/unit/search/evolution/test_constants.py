"""Fitting during a search: which individuals are fitted, and that losses fall."""

from __future__ import annotations

import numpy as np
import pytest

from shine.data.datasets.dataset import Dataset
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.evolution.constants import fitter
from shine.search.evolution.operators.creation import ptc2

MIXED = PrimitiveSet(
    select(STANDARD, ("add", "sub", "mul", "div", "pow", "exp", "log", "sqrt", "sin", "abs", "max", "floor", "where")),
    ("x", "y"),
)


def dataset_of(target):
    """Rows of x and y between 1/2 and 3, with a target that is a function of them."""
    x, y = np.random.default_rng(0).uniform(0.5, 3.0, (2, 80))
    return Dataset(np.array([x, y]), np.asarray(target(x, y)), None, ("x", "y"))


def test_a_fitter_changes_individuals_with_constants_and_finite_losses_only():
    population = Population.from_sources(("0.5*x", "x*y", "log(0.0 - 1.0*x)", "0.5*x + 1.0"), ("x", "y"))
    dataset = dataset_of(lambda x, y: 3.0 * x)
    scores = Scores(np.array([1.0, 1.0, np.inf, np.inf]), np.ones(4), np.zeros(4))
    found = fitter(MachineLinearizer(dataset, "mse"), 20, scaled=False)(population, scores)
    changed = (found.values != population.values).any(axis=1)
    assert changed.tolist() == [True, False, False, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "linear_scaling", "share"),
    # The lines of linear scaling have the least squared error; absolute errors may even grow with them.
    [("mse", False, 0.4), ("mse", True, 0.05), ("mae", False, 0.4)],
)
def test_fitted_individuals_have_lower_losses(loss, linear_scaling, share):
    dataset = dataset_of(lambda x, y: 2.5 * np.exp(-0.3 * x) + np.sin(y) / 3)
    population = ptc2(200, MIXED, 24, 8, Terminals(share=0.5), np.random.default_rng(3))
    evaluator = evaluator_of(dataset, loss, linear_scaling, "float64", "machine", 1)
    before = evaluator.score(population)
    found = fitter(MachineLinearizer(dataset, loss), 8, scaled=linear_scaling)(population, before)
    after = evaluator.score(found).losses
    finite = np.isfinite(before.losses)
    assert (after[finite] <= before.losses[finite] * (1 + 1e-9)).all()
    assert np.mean(after[finite] < 0.9 * before.losses[finite]) > share
