"""What a search keeps: formulas whose losses a second computation confirms, row by row in NumPy, and whose course
between the values of columns that have few is not an invention (see `shine.evaluate.domain.levels`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Mask
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.domain.levels import Levels
from shine.evaluate.losses.form import ABSOLUTE, SQUARED, Loss
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.scores import Scores
from shine.lang.population import Population

TOLERANCE = 1e-5
"""Share of a loss that rounding may add: errors from moments are derived only where it adds less."""

AT_ONCE = 1 << 20
"""Predictions held at a time."""


@dataclass(frozen=True)
class Confirmation:
    """Says which losses are not too low (see `confirmed`).

    Parameters
    ----------
    dataset : Dataset
        The rows of the evaluator.
    loss : Loss
        What it reports, perhaps with penalties, which only raise it.
    levels : Levels, optional
        Where columns have few values.
    between : PopulationEvaluator, optional
        Predicts at the points of the levels.
    enough : float
        Loss of formulas that are exact, which prove themselves.
    """

    dataset: Dataset
    loss: Loss
    levels: Levels | None = None
    between: PopulationEvaluator | None = None
    enough: float = 0.0

    def confirmed(self, evaluator: PopulationEvaluator, population: Population, scores: Scores) -> Mask:
        """Whether predictions with their lines have at most the losses of the scores, and do nothing absurd between
        rows; shape (n_individuals,)."""
        step, agree = max(AT_ONCE // self.dataset.n_rows, 1), np.empty(len(population), np.bool_)
        for start in range(0, len(population), step):
            part = np.arange(start, min(start + step, len(population)))
            agree[part] = self._agree(evaluator, population.take(part), scores.take(part))
        doubtful = np.flatnonzero(agree & (scores.losses > self.enough))
        if self.levels is not None and self.between is not None and len(doubtful):
            values = self.between.predict(population.take(doubtful))
            agree[doubtful] = self.levels.test(scores.slopes[doubtful, None] * values)
        return agree

    def _agree(self, evaluator: PopulationEvaluator, population: Population, scores: Scores) -> Mask:
        loss, kind = self.loss, self.loss.kind
        rows, columns = loss_rows(self.dataset, kind), loss_columns_of(self.dataset, kind)
        with np.errstate(all="ignore"):
            predictions = evaluator.predict(population).astype(np.float64)
            models = scores.intercepts[:, None] + scores.slopes[:, None] * predictions
            errors = kind.errors(models, rows.target, columns, COMPILED)
            total = stable_sum(rows.row_weights * errors)
            rounding = TOLERANCE * np.abs(total)
            if kind not in (SQUARED, ABSOLUTE):
                # What rounding may add to the error of a row that has functions, whose terms may cancel, for each unit
                # of the target and of 1.
                rounding += 1e-12 * stable_sum(rows.row_weights * (1 + np.abs(rows.target)))
            least = loss.of_sum(total - rounding, rows.weight, rows.target_square)
            agree: Mask = np.isfinite(total) & ~(least > scores.losses)
            return agree
