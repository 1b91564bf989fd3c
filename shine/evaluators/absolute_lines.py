"""Lines that minimize absolute errors, where the tiers fit them by squared errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.evaluators.machine_tier import MachineEvaluator
from shine.fitness.protocols import Linearizer, PopulationEvaluator
from shine.fitness.scores import Scores
from shine.lang.population import Population
from shine.typing import AnyArray

STEPS = 12
"""Most reweighted steps of a line. Each step makes the error of a line several times smaller."""

TOLERANCE = 1e-4
"""Share of the error below which a step's promise ends the fit."""


class AbsoluteLines:
    """An evaluator that refits the lines of another one where that makes the loss smaller.

    The line of least squares follows outliers. From there, iteratively reweighted least squares (Lawson 1961) goes to
    the line of least absolute errors.

    Parameters
    ----------
    evaluator : PopulationEvaluator
        With linear scaling, for a loss of absolute errors.
    measured : MachineEvaluator
        Of the same rows and loss, without linear scaling.
    linearizer : Linearizer
        Fits the lines on the same rows, or on some of them.
    """

    def __init__(self, evaluator: PopulationEvaluator, measured: MachineEvaluator, linearizer: Linearizer) -> None:
        self._evaluator, self._measured, self._linearizer = evaluator, measured, linearizer

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Losses and lines; see `PopulationEvaluator`."""
        scores = self._evaluator.score(population)
        which = np.flatnonzero(np.isfinite(scores.losses))
        if len(which):
            scores = scores.replaced(which, self._refitted(population.take(which), scores.take(which)))
        return scores.within(threshold)

    def predict(self, population: Population) -> AnyArray:
        """Predictions without lines."""
        return self._evaluator.predict(population)

    def _refitted(self, population: Population, scores: Scores) -> Scores:
        fixed = np.ones((len(population), population.width), np.bool_)
        fit = self._linearizer.fit(
            population, scores.slopes, scores.intercepts, STEPS, tolerance=TOLERANCE, scaled=True, fixed=fixed
        )
        losses = self._measured.losses_with(population, fit.slopes, fit.intercepts)
        better = losses < scores.losses
        return replace(
            scores,
            losses=np.where(better, losses, scores.losses),
            slopes=np.where(better, fit.slopes, scores.slopes),
            intercepts=np.where(better, fit.intercepts, scores.intercepts),
        )
