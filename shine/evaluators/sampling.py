"""Errors on a few rows, for lexicase selection."""

from __future__ import annotations

import numpy as np

from shine.data.dataset import Dataset
from shine.evaluators.machine_tier import MachineEvaluator
from shine.lang.population import Population
from shine.typing import Floats


def sampled_errors(
    dataset: Dataset, linear_scaling: bool, rows: int, population: Population, rng: np.random.Generator
) -> Floats:
    """Absolute errors of individuals on a few rows drawn at random, shape (n_individuals, n_rows).

    With linear scaling, each individual has the best line for these rows. inf where a prediction is not finite.
    """
    sample = dataset.take(rng.choice(dataset.n_rows, min(rows, dataset.n_rows), replace=False))
    evaluator = MachineEvaluator(sample, "mse", linear_scaling, "float64")
    scores = evaluator.score(population)
    with np.errstate(all="ignore"):
        predictions = scores.intercepts[:, None] + scores.slopes[:, None] * evaluator.predict(population)
        errors = np.abs(predictions - sample.target)
    return np.where(np.isfinite(scores.losses)[:, None] & np.isfinite(errors), errors, np.inf)
