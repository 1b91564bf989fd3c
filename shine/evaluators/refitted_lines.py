"""Lines that minimize the loss itself, where the tiers fit them by squared errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.evaluators.machine_tier import MachineEvaluator
from shine.fitness.protocols import Fit, Linearizer, PopulationEvaluator
from shine.fitness.scores import Scores
from shine.lang.population import Population
from shine.typing import AnyArray, Floats

STEPS = 12
"""Most reweighted steps of a line. Each step makes the error of a line several times smaller."""

TOLERANCE = 1e-4
"""Share of the error below which a step's promise ends the fit."""


class RefittedLines:
    """An evaluator that refits the lines of another one where that makes the loss smaller.

    The line of least squares follows outliers, and knows nothing of the loss. From there, iteratively reweighted least
    squares goes to the line of the least loss. Where the line of least squares has no finite loss, for example because
    it predicts negative counts, the fit begins at the target's mean.

    Parameters
    ----------
    evaluator : PopulationEvaluator
        With linear scaling, for a loss that does not follow from moments.
    measured : MachineEvaluator
        Of the same rows and loss, without linear scaling.
    linearizer : Linearizer
        Fits the lines on the same rows, or on some of them.
    mean : float
        The target's mean.
    """

    def __init__(
        self, evaluator: PopulationEvaluator, measured: MachineEvaluator, linearizer: Linearizer, mean: float
    ) -> None:
        self._evaluator, self._measured, self._linearizer, self._mean = evaluator, measured, linearizer, mean

    def score(self, population: Population, threshold: float = np.inf) -> Scores:
        """Losses and lines; see `PopulationEvaluator`."""
        scores = self._evaluator.score(population)
        lost = np.flatnonzero(~np.isfinite(scores.losses))
        if len(lost):
            scores = scores.replaced(lost, self._at_the_mean(population.take(lost), scores.take(lost)))
        which = np.flatnonzero(np.isfinite(scores.losses))
        if len(which):
            scores = scores.replaced(which, self._refitted(population.take(which), scores.take(which)))
        return scores.within(threshold)

    def predict(self, population: Population) -> AnyArray:
        """Predictions without lines."""
        return self._evaluator.predict(population)

    def _at_the_mean(self, population: Population, scores: Scores) -> Scores:
        """The scores with the loss of the target's mean where the individual has finite values."""
        slopes, intercepts = np.zeros(len(population)), np.full(len(population), self._mean)
        losses = self._measured.losses_with(population, slopes, intercepts)
        losses = np.where(np.isfinite(losses), losses, np.inf)
        return replace(scores, losses=losses, slopes=slopes, intercepts=intercepts)

    def _refitted(self, population: Population, scores: Scores) -> Scores:
        fit = fitted_lines(population, scores.slopes, scores.intercepts, self._linearizer, STEPS)
        losses = self._measured.losses_with(population, fit.slopes, fit.intercepts)
        better = losses < scores.losses
        return replace(
            scores,
            losses=np.where(better, losses, scores.losses),
            slopes=np.where(better, fit.slopes, scores.slopes),
            intercepts=np.where(better, fit.intercepts, scores.intercepts),
        )


def fitted_lines(population: Population, slopes: Floats, intercepts: Floats, linearizer: Linearizer, steps: int) -> Fit:
    """The lines of individuals after some steps towards the least loss; constants stay as they are."""
    fixed = np.ones((len(population), population.width), np.bool_)
    return linearizer.fit(population, slopes, intercepts, steps, tolerance=TOLERANCE, scaled=True, fixed=fixed)
