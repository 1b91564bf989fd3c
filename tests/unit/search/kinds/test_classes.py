import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.confirmation import Confirmation
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.search.kinds.classes import LOG_LOSS, OddsEvaluator

X = np.random.default_rng(0).normal(size=(200, 2))
DATA = Dataset.from_arrays(X, np.where(X[:, 0] + 0.5 * X[:, 1] > 0, 0.98, 0.02))


@pytest.mark.parametrize("exponent", [-1000, -600, -400, 400, 600, 1000])
def test_the_log_loss_of_a_formula_does_not_depend_on_its_scale(exponent):
    sources = ["x0", "x0*x0 + x1", f"{2.0**exponent!r}*x0", f"{2.0**exponent!r}*(x0*x0 + x1)"]
    population = shine.Population.from_sources(sources, ("x0", "x1"))
    evaluator = OddsEvaluator(DATA, MachineLinearizer(DATA, LOG_LOSS), "float64", 1)
    scores = evaluator.score(population)
    assert scores.losses[2:] == pytest.approx(scores.losses[:2], rel=0.05)
    assert Confirmation(DATA, LOG_LOSS).confirmed(evaluator, population, scores).all()
