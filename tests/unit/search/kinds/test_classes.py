"""Searches for the odds of a class."""

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.estimators import SymbolicClassifier
from shine.evaluate.confirmation import Confirmation
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.faces.keywords import settings_from
from shine.search.kinds.classes import LOG_LOSS, ClassesProblem, OddsEvaluator
from shine.search.run import search

X = np.random.default_rng(0).uniform(-2, 2, (200, 2))
DATA = Dataset.from_arrays(X, np.where(X[:, 0] + 0.5 * X[:, 1] > 0, 0.98, 0.02))


@pytest.mark.parametrize("exponent", [-1000, 400, 1000])
def test_a_formula_of_any_scale_has_a_useful_line_and_a_true_log_loss(exponent):
    sources = [f"{2.0**exponent!r}*x0", f"{2.0**exponent!r}*(x0 + x1)"]
    population = shine.Population.from_sources(sources, ("x0", "x1"))
    evaluator = OddsEvaluator(DATA, MachineLinearizer(DATA, LOG_LOSS), "float64", 1)
    scores = evaluator.score(population)
    assert (scores.losses < 0.6 * np.log(2)).all()
    assert Confirmation(DATA, LOG_LOSS).confirmed(evaluator, population, scores).all()


def test_formulas_of_an_earlier_part_of_the_run_compete():
    settings = settings_from(generations=0, population=5, seeding=0.0, seed=1)
    earlier = [shine.Model(shine.parse("9*x0*x1", ["x0", "x1"]), 0.1, 0.9)]
    data = Dataset.from_arrays(X, (X[:, 0] * X[:, 1] > 0.1) * 1.0)
    losses = [search(data, settings, earlier=each, kind=ClassesProblem).front[-1].loss for each in ((), earlier)]
    assert losses[1] < losses[0] / 2


def test_odds_hold_between_the_values_of_columns_that_have_few():
    rng = np.random.default_rng(0)
    codes, x = rng.integers(1, 7, 300).astype(float), rng.uniform(-2, 2, 300)
    odds = np.array([-2, 2, -1, 3, 0, -3.0])[codes.astype(int) - 1] + 2 * x
    y = (rng.uniform(size=300) < 1 / (1 + np.exp(-odds))).astype(int)
    settings = {"generations": 20, "population_size": 300, "settings": {"seeding": 0}, "random_state": 0}
    fitted = SymbolicClassifier(**settings).fit(np.column_stack([codes, x]), y)
    course = fitted.decision_function(np.column_stack([np.linspace(1, 6, 101), np.zeros(101)]))
    assert np.count_nonzero(np.diff(np.sign(np.diff(course)))) <= 5
