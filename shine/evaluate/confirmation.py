"""What a search keeps: formulas whose losses a second computation confirms, row by row in NumPy, and whose course
between the values of columns that have few is not an invention (see `shine.evaluate.domain.levels`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Mask
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.domain.levels import Levels, visible_square
from shine.evaluate.losses.form import ABSOLUTE, SQUARED, Loss
from shine.evaluate.losses.rows import loss_columns_of, loss_rows
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.scores import Scores
from shine.evaluate.tiers.evaluator import evaluator_of
from shine.lang.population import Population

TOLERANCE = 1e-5
"""Share of a loss that rounding may add: errors from moments are derived only where it adds less."""

AT_ONCE = 1 << 20
"""Predictions held at a time."""

MOST_NUMBERS = 1 << 20
"""Most numbers of points that are kept: those of a column of a wide table are a hundred thousand."""


def on_machine(rows: Dataset) -> PopulationEvaluator:
    """What predicts on rows."""
    return evaluator_of(rows, "mse", False, "float64", "machine")


@dataclass(frozen=True)
class Confirmation:
    """Says which losses are not too low (see `confirmed`).

    Parameters
    ----------
    dataset : Dataset
        The rows of the evaluator.
    loss : Loss
        What it reports, perhaps with penalties, which only raise it.
    levels : tuple of Levels
        Of the columns that have few values.
    predictor : callable
        Gives what predicts on rows, up to a line.
    enough : float
        Loss of formulas that are exact, which prove themselves.
    """

    dataset: Dataset
    loss: Loss
    levels: tuple[Levels, ...] = ()
    predictor: Callable[[Dataset], PopulationEvaluator] = on_machine
    enough: float = 0.0
    _predictors: dict[int, PopulationEvaluator] = field(default_factory=dict)

    def confirmed(self, evaluator: PopulationEvaluator, population: Population, scores: Scores) -> Mask:
        """Whether predictions with their lines have at most the losses of the scores, and do nothing absurd between
        rows; shape (n_individuals,)."""
        step, agree = max(AT_ONCE // self.dataset.n_rows, 1), np.empty(len(population), np.bool_)
        for start in range(0, len(population), step):
            part = np.arange(start, min(start + step, len(population)))
            agree[part] = self._agree(evaluator, population.take(part), scores.take(part))
        for levels, readers in self._readers(population):
            which = np.flatnonzero(agree & (scores.losses > self.enough) & readers)
            if len(which):
                values = self._between(levels).predict(population.take(which))
                agree[which] = levels.test(scores.slopes[which, None] * values, self._visible)
        return agree

    def _readers(self, population: Population) -> Iterator[tuple[Levels, Mask]]:
        """The columns that individuals read, and which do; all, if they have other features than the rows."""
        if not self.levels or population.primitives.features != self.dataset.features:
            yield from ((levels, np.ones(len(population), np.bool_)) for levels in self.levels)
            return
        codes = np.where(np.arange(population.width) < population.sizes[:, None], population.codes, 0)
        read = set(np.unique(codes).tolist())
        for levels in self.levels:
            if levels.at + 1 in read:
                yield levels, np.asarray((codes == levels.at + 1).any(axis=1))

    def _between(self, levels: Levels) -> PopulationEvaluator:
        """What predicts at the points of a column."""
        if levels.at not in self._predictors:
            points = levels.points(self.dataset)
            if len(self._predictors) * points.columns.size > MOST_NUMBERS:
                self._predictors.clear()
            self._predictors[levels.at] = self.predictor(points)
        return self._predictors[levels.at]

    @cached_property
    def _visible(self) -> float:
        return visible_square(self.dataset)

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
