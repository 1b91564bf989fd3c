from dataclasses import replace

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import Dataset
from shine.evaluate.confirmation import Confirmation
from shine.evaluate.losses import loss_for
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.evaluate.tiers.fitted_lines import FittedLines

SOURCES = ["x0", "x0*x1", "exp(x0)", "x0*x1 + 1e-9*x0", "1e160*x0", "1e-170*x0", "1e9 + x0", "log(x0)", "3.0", "x0/0.0"]
POPULATION = shine.Population.from_sources(SOURCES, ("x0", "x1"))
RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2, (300, 2))


def dataset_of(weighted: bool) -> Dataset:
    return Dataset.from_arrays(X, X[:, 0] * X[:, 1], sample_weight=np.arange(1.0, 301) if weighted else None)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["mse", "r2", "mae", "student_t", "poisson"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_losses_of_every_tier_are_confirmed(loss, dtype):
    data = dataset_of(True)
    own = loss_for(loss, data)
    evaluators = [evaluator_of(data, own, False, dtype, tier) for tier in ("machine", "native")]
    if own.kind.follows_from_moments:
        evaluators.append(evaluator_of(data, own, True, dtype, "machine"))
    else:
        evaluators.append(FittedLines(data, 200, own, dtype))
    for evaluator in evaluators:
        scores = evaluator.score(POPULATION)
        finite = np.isfinite(scores.losses)
        assert Confirmation(data, own).confirmed(evaluator, POPULATION, scores)[finite].all()


@pytest.mark.parametrize("loss", ["mse", "r2", "mae", "huber"])
def test_a_loss_that_is_too_low_is_not_confirmed(loss):
    data = dataset_of(True)
    own = loss_for(loss, data)
    evaluator = evaluator_of(data, own, False, "float64", "machine")
    scores = evaluator.score(POPULATION)
    lower = replace(scores, losses=scores.losses * 0.99)
    wrong = np.isfinite(scores.losses) & (scores.losses > 1e-6)
    assert not Confirmation(data, own).confirmed(evaluator, POPULATION, lower)[wrong].any()
