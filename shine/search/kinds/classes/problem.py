"""The problem of the odds of a class: log-loss instead of errors."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shine.base.errors import DataError
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.evaluate.fitness.protocols import PopulationEvaluator
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.names import value_text
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.simplify.simplifier import simplify
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.description.lengths import DescriptionLength
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.observers import Observers
from shine.search.finishing.poles import individuals_to_refine, preferred_and_defined, without_poles
from shine.search.finishing.polishing import Polishing, population_of, preferred, unless_interrupted
from shine.search.finishing.supported_digits import by_odds, with_supported_digits
from shine.search.finishing.tidying import tidied
from shine.search.kinds.classes.classes import Classes, entropy
from shine.search.kinds.classes.lines import LINE, LOG_LOSS, OddsEvaluator, lined
from shine.search.kinds.formula import OneFormula
from shine.search.models.choice import Choice, shortest
from shine.search.models.front import Result, pareto_front
from shine.search.models.model import Model
from shine.search.models.user_units import basis_in_user_units, front_in_user_units, model_in_user_units
from shine.search.problem.all_rows_time import planned, steps_of, with_affordable_rows
from shine.search.problem.lines import with_functions
from shine.search.problem.names import TranslatedSettings
from shine.search.problem.preparation import constraint_compiler, prepared
from shine.search.problem.reference_losses import nats_of_errors

LINE_ROWS = 2000
"""Rows that the slope and the intercept of individuals are fitted on."""

TOLERANCE = 1e-5
"""Relative gain below which constants count as fitted to convergence."""


@dataclass(frozen=True, eq=False)
class OddsRefinement:
    """Makes models of the individuals of a search for odds (see `shine.search.finishing.refinement.Refinement`).

    Parameters
    ----------
    dataset : Dataset
        All rows; the target is 1 and 0.
    classes : Classes
    weights : mapping of str to float
        Complexity of primitives, features and constants, by name (see `shine.search.models.model.Model`).
    max_size : int
        Most nodes of a formula, its line included.
    threads : int
    rules : callable, optional
        Compiles the constraints for a primitive set.
    out_of_time : callable
        Returns whether to stop making constants simple.
    """

    dataset: Dataset
    classes: Classes
    weights: Mapping[str, float]
    max_size: int
    threads: int
    rules: Callable[..., CompiledConstraints] | None
    out_of_time: Callable[[], bool]

    def models(self, outcome: Outcome, polish: bool) -> list[Model]:
        """A model of the best constant, and of each individual that can predict fresh rows."""
        share = self.dataset.target_mean
        constant = Tree(self.dataset.features, ast.Constant(math.log(share / (1 - share))))
        primitives = with_functions(outcome.front.primitives, (*LINE, "sub"))
        domain = Domain(self.dataset)
        individuals, scores = individuals_to_refine(outcome, domain)
        found: list[Tree] = []
        if len(individuals):
            complete = lined(individuals, scores.slopes, scores.intercepts, primitives)
            found = [complete.tree(index) for index in range(len(complete))]
        ranges = self.dataset.ranges
        versions = [found, [simplify(tree, primitives, functions=COMPILED, ranges=ranges) for tree in found]]
        if polish and found:
            versions += self._polished(versions[-1], primitives)
        measured = [self._measured(version, primitives) for version in versions]
        chosen = preferred_and_defined(zip(*measured, strict=True), partial(preferred, nats=self._nats), domain)
        rules = None if self.rules is None else partial(self.rules, scaling="written")
        models = [*self._measured([constant], primitives), *tidied(list(chosen), self.dataset, primitives, rules)]
        # Individuals have at most this size; with their lines they may be larger.
        kept = [model for model in models if math.isfinite(model.loss) and model.tree.size <= self.max_size]
        return without_poles(kept, 0.0, domain)

    def _polished(self, trees: Sequence[Tree], primitives: PrimitiveSet) -> Iterator[list[Tree]]:
        """The formulas with fitted constants, and then with simple ones (see `Polishing`)."""
        smoothed = replace(self.dataset, target=self.classes.smoothed(self.dataset.target))
        tiny = float(np.finfo(np.float64).tiny)
        polishing = Polishing(LOG_LOSS, self.threads, TOLERANCE, self.out_of_time, lambda rows: tiny)
        return polishing.versions(population_of(trees, primitives), primitives, smoothed)

    def _measured(self, trees: Sequence[Tree], primitives: PrimitiveSet) -> list[Model]:
        """The formulas as models, with their log-loss on the unsmoothed classes; inf if they break a constraint."""
        if not trees:
            return []
        population = population_of(trees, primitives)
        losses = MachineEvaluator(self.dataset, LOG_LOSS, False, "float64", self.threads).score(population).losses
        share = self.dataset.target_mean
        explained = 1 - losses / entropy(share)
        if self.rules is not None:
            losses = self.rules(population.primitives, scaling="written").charged(
                population, losses, np.ones(len(trees))
            )
        measured = zip(trees, losses.tolist(), explained.tolist(), strict=True)
        return [Model(tree, loss, part, self.weights) for tree, loss, part in measured]

    def _nats(self, worse: Model, better: Model) -> float:
        """Log-likelihood by which one model is worse than another, in nats."""
        return self.dataset.effective_rows * (worse.loss - better.loss)


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
        front = front_in_user_units(front, task, 0.0, evolving.max_size)
        basis = basis_in_user_units(rows, task, LOG_LOSS, "absolute")
        models = tuple(replace(model_in_user_units(model, task, self.degree), basis=basis) for model in front)
        return self.result(outcome, models, shortest(models, self.description(rows)))
