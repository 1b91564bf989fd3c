"""The problem of the odds of a class: log-loss instead of errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shine.base.errors import DataError
from shine.data.datasets.dataset import Dataset
from shine.evaluate.fitness.protocols import PopulationEvaluator
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.names import value_text
from shine.search.description.lengths import DescriptionLength
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.observers import Observers
from shine.search.finishing.polishing import unless_interrupted
from shine.search.finishing.supported_digits import by_odds, with_supported_digits
from shine.search.kinds.classes.classes import Classes
from shine.search.kinds.classes.lines import LOG_LOSS, OddsEvaluator
from shine.search.kinds.classes.refinement import OddsRefinement
from shine.search.kinds.formula import OneFormula
from shine.search.models.choice import Choice, shortest
from shine.search.models.front import Result, pareto_front
from shine.search.models.given_units import basis_in_given_units, front_in_given_units, model_in_given_units
from shine.search.models.model import Model
from shine.search.problem.all_rows_time import planned, steps_of, with_affordable_rows
from shine.search.problem.names import TranslatedSettings
from shine.search.problem.preparation import constraint_compiler, prepared

LINE_ROWS = 2000
"""Rows that the slope and the intercept of individuals are fitted on."""


class ClassesProblem(OneFormula):
    """A formula for the logarithm of the odds that a row belongs to a class (see `Problem` for the parameters).

    The target is 1 for rows of the class and 0 for others; both must occur. Only ``fitness.dtype`` and
    ``fitness.threads`` matter among the fitness settings: the search minimizes log-loss, always with a slope and an
    intercept. Constraints hold for the logarithm of the odds. The search ends when a formula has less than the share
    ``stop.loss`` of the best constant's loss, not counting the loss that smoothing leaves to every formula.

    The loss of each model is the mean log-loss in nats, and its r2 the share of the constant's log-loss that it removes
    (McFadden 1974). The recommended model has the shortest description (see `shine.search.models.choice`).

    Raises
    ------
    ValueError
        If the dtype is unknown.
    DataError
        If the rows of one class have no weight, or no formula has a finite loss and keeps the constraints.

    Notes
    -----
    During evolution and fitting, classes are smoothed after Platt (1999): otherwise the constants of a formula that
    separates the classes would have no best value. The seeding knows only squared errors; it looks for guesses that
    explain the target as a number.
    """

    loss = LOG_LOSS
    predicts = False

    def __init__(
        self, dataset: Dataset, settings: TranslatedSettings, observers: Observers, rng: np.random.Generator
    ) -> None:
        super().__init__(dataset, settings, observers, rng)
        evolving, dtype = self.evolving, self.fitness.dtype
        if dtype not in ("float64", "float32"):
            raise ValueError(f"unknown dtype {value_text(dtype)}; use one of float64, float32")
        task = prepared(dataset, settings, linear_scaling=True, scale_target=False)
        budget = planned(self.budget, task.dataset, steps_of(task.primitives, LOG_LOSS, self.threads))
        self.budget, self.task, _ = with_affordable_rows(budget, task, dataset)
        self.rows = self.task.dataset
        if not 0 < self.rows.target_mean < 1:
            raise DataError(
                "the weights of one class vanish beside those of the other; give both classes larger weights"
            )
        self.sample = self.rows.sampled(evolving.rows, rng)
        classes = Classes.of(self.sample)
        self.enough = classes.enough(settings.stop.loss)
        self._smoothed = replace(self.sample, target=classes.smoothed(self.sample.target))
        self._line_rows = self._smoothed.sampled(LINE_ROWS, rng)
        self.rules = constraint_compiler(settings.constraints, self._smoothed, self.island_threads)
        self.fitting = self._smoothed.sampled(evolving.fitting_rows, rng)

    @property
    def scaled(self) -> bool:
        """Always."""
        return True

    def unconstrained(self, rows: Dataset) -> PopulationEvaluator:
        """Log-loss of the smoothed classes."""
        lines = MachineLinearizer(self._line_rows, LOG_LOSS, self.island_threads)
        return OddsEvaluator(self._smoothed, lines, self.fitness.dtype, self.island_threads)

    def description(self, rows: Dataset) -> DescriptionLength:
        """Log-loss is nats per row."""
        count = rows.effective_rows
        return DescriptionLength(count, lambda losses, constants: count * losses)

    @property
    def seeding_rows(self) -> tuple[Dataset, str]:
        """The smoothed classes as numbers."""
        return self._smoothed, "absolute"

    def choose_now(self, models: Sequence[Model]) -> Choice:
        """The shortest description of the sample."""
        return shortest(models, self.description(self.sample))

    def finished(self, outcome: Outcome, earlier: Sequence[Model]) -> Result:
        """On the unsmoothed classes."""
        rows, evolving, task = self.rows, self.evolving, self.task
        refinement = OddsRefinement(
            dataset=rows,
            classes=Classes.of(rows),
            weights=evolving.complexity,
            max_size=evolving.max_size,
            threads=self.threads,
            rules=self.rules,
            out_of_time=self.budget.is_closing,
        )
        before = outcome
        outcome, found = unless_interrupted(outcome, lambda polish: refinement.models(before, polish))
        front = pareto_front(found, 0.0)
        if not front:
            raise DataError(
                "found no formula of finite log-loss that the constraints allow; search longer, or relax them"
            )
        front = with_supported_digits(front, rows, by_odds)
        front = front_in_given_units(front, task, 0.0, evolving.max_size)
        basis = basis_in_given_units(rows, task, LOG_LOSS, "absolute")
        models = tuple(replace(model_in_given_units(model, task, self.degree), basis=basis) for model in front)
        return self.result(outcome, models, shortest(models, self.description(rows)))
