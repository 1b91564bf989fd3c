"""The problem of a formula that an objective of the user's judges, in place of a sum over the rows.

Lines and constants are fitted by the loss; the objective decides what is kept. At the end, the constants of the front
are moved a little, one at a time, while the objective becomes smaller.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.evaluate.losses import loss_for
from shine.evaluate.losses.form import LOSSES, Loss
from shine.evaluate.losses.rows import data_for_loss
from shine.evaluate.protocols import PopulationEvaluator
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.lang.simplify.simplifier import simplify
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.description import DescriptionLength
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.observers import Observers
from shine.search.evolution.scoring import places
from shine.search.finishing.kept_rows import directed
from shine.search.finishing.poles import individuals_to_refine, without_poles
from shine.search.finishing.polishing import (
    Polishing,
    population_of,
    preferred,
    unless_interrupted,
    with_supported_digits,
)
from shine.search.finishing.refinement import TOLERANCE, measured
from shine.search.finishing.required import lacking, with_required
from shine.search.kinds.formula import OneFormula
from shine.search.kinds.objective_function import Objective, ObjectiveEvaluator
from shine.search.models.certainty import Choice, lengths_of, shortest
from shine.search.models.front import pareto_front
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.models.user_units import model_in_user_units
from shine.search.problem.budget import planned, steps_of
from shine.search.problem.names import TranslatedSettings
from shine.search.problem.outliers import rows_of_seeding
from shine.search.problem.preparation import Task, constraint_compiler, evaluator_for, prepared
from shine.search.problem.reference_losses import rounding_error
from shine.search.problem.scaling import LINE_FUNCTIONS, with_functions, with_line

POWER = 0.5
"""An objective counts as a square of errors: its logarithm times half the number of rows is nats."""

NEARLY = math.e
"""Individuals of up to this many times the objective of the front are looked at again."""


class ObjectiveProblem(OneFormula):
    """A short formula for which an objective is small (see `Problem` for the other parameters).

    Parameters
    ----------
    objective : Objective
        It gets predictions of all rows, in their order.

    Raises
    ------
    DataError, UnsupportedSyntaxError, ValueError
        If the data or a setting is invalid, the objective returns something else than losses, or none is finite.
    """

    def __init__(
        self,
        objective: Objective,
        dataset: Dataset,
        settings: TranslatedSettings,
        observers: Observers,
        rng: np.random.Generator,
    ) -> None:
        evolving, fitness, loss = settings.evolution, settings.fitness, loss_for(settings.fitness.loss, dataset)
        if settings.template is not None:
            raise ValueError("objective does not go with a template; leave one of them out")
        if fitness.dtype != "float64":
            raise ValueError("an objective gets predictions in float64; leave dtype out")
        if observers.pool is not None:
            raise ValueError("an objective is called in this process only; leave workers and executor out")
        if dataset.all_rows is not None:
            raise DataError("an objective needs all rows in memory: read fewer rows or columns, or set stream to false")
        if fitness.validation is not None or dataset.groups is not None:
            raise ValueError("an objective gets the predictions of all rows; leave validation and groups out")
        super().__init__(dataset, settings, observers, rng)
        read = data_for_loss(loss, dataset, fitness.noise)
        self.loss, self._objective = loss, objective
        self.task = task = prepared(read, settings, loss, linear_scaling=self.scaled, scale_target=False)
        self.rows = rows = task.dataset
        self.budget = planned(self.budget, rows, steps_of(task.primitives, loss, self.threads))
        self.fitting = rows.sampled(evolving.fitting_rows, rng)
        self._judge = ObjectiveEvaluator(evaluator_for(rows, fitness, loss, evolving.fitting_rows), objective)
        self.rules = constraint_compiler(settings.constraints, rows, self.threads)
        worst = _of_constant(objective, rows)
        self._description = DescriptionLength.with_unknown_noise(rows.effective_rows, POWER, worst)
        self.enough = max(settings.stop.loss * worst, float(np.finfo(np.float64).tiny))
        self.sample = rows.sampled(evolving.rows, rng)

    def unconstrained(self, rows: Dataset) -> PopulationEvaluator:
        """The objective of all rows."""
        return self._judge

    def confirmation(self, rows: Dataset) -> None:
        """None: only the user's function knows the objective."""

    def description(self, rows: Dataset) -> DescriptionLength:
        """The objective as a square of errors."""
        return self._description

    @property
    def seeding_rows(self) -> tuple[Dataset, str]:
        """As for the loss."""
        return rows_of_seeding(self.sample, self.loss, "absolute")

    def choose_now(self, models: Sequence[Model]) -> Choice:
        """The shortest description."""
        return shortest(models, self._description)

    def finished(self, outcome: Outcome, earlier: Sequence[Model]) -> Result:
        """Constants are moved a little while the objective becomes smaller."""
        rules = None if self.rules is None else partial(self.rules, scaling="written" if self.scaled else "none")
        end = _End(self.task, self.settings, self.loss, self._objective, self.threads, self.budget.is_closing, rules)
        # Versions of an individual that the end judges, about: as found, simplified, with simpler constants.
        one = 4 * outcome.seconds / max(outcome.evaluations, 1)
        kept = [tree for _, tree in self._judge.kept.values()]
        features, entering = self.rows.features, self.task.scaling.entering
        kept += [entering(replace(model.tree, parameters=features)) for model in earlier]
        trees = end.trees(outcome, kept, self.budget.left() / max(one, 1e-9))

        def refined(polish: bool) -> list[Model]:
            if not polish:
                return end.front(end.models(trees))
            models = end.front(end.polished(trees, self.enough))
            return end.front([*models, *end.models([end.moved(model.tree) for model in models])])

        outcome, models = unless_interrupted(outcome, refined)
        if not models:
            raise DataError("no formula has a finite objective; look at what it returns for constant predictions")
        required, lengths = self.settings.constraints.required, partial(lengths_of, description=self._description)
        models = with_required(models, required, self.rows, end.primitives, lengths)
        allowed, word = directed(models, self.rows, self.settings.constraints, end.primitives, self.threads)
        choice = shortest(models, self._description, allowed)
        word += lacking(models[choice.index], required)
        choice = replace(choice, reason=choice.reason + word)
        models = list(with_supported_digits(models, self.rows))
        given = tuple(model_in_user_units(end.unscaled(model), self.task, 0) for model in models)
        return self.result(outcome, given, choice)


def _of_constant(objective: Objective, rows: Dataset) -> float:
    """The objective of the target's mean."""
    constant = Tree(rows.features, ast.Constant(rows.target_mean))
    found = float(objective(np.full((1, rows.n_rows), rows.target_mean), lambda index: constant)[0, 0])
    return found if 0 < found < math.inf else 1.0


class _End:
    """From the individuals of a finished search to its models."""

    def __init__(
        self,
        task: Task,
        settings: TranslatedSettings,
        loss: Loss,
        objective: Objective,
        threads: int,
        out_of_time: Callable[[], bool],
        rules: Callable[..., CompiledConstraints] | None,
    ) -> None:
        self._rules = rules
        self._task, self._settings, self._loss, self._objective = task, settings, loss, objective
        self._threads, self._out_of_time = threads, out_of_time
        self._known: dict[Tree, Floats] = {}
        self._domain = Domain(task.dataset)
        self.primitives: PrimitiveSet = with_functions(task.primitives, LINE_FUNCTIONS)

    def trees(self, outcome: Outcome, kept: Sequence[Tree], most: float) -> list[Tree]:
        """The constant, the individuals on the front, those kept for further objectives, and, up to a number of
        individuals, those nearly on the front.
        """
        rows = self._task.dataset
        population, scores = individuals_to_refine(outcome, self._domain, NEARLY, most)
        lines = zip(scores.slopes.tolist(), scores.intercepts.tolist(), strict=True)
        found = [with_line(population.tree(index), *line) for index, line in enumerate(lines)]
        ranges = rows.ranges
        simple = [simplify(tree, self.primitives, functions=COMPILED, ranges=ranges) for tree in (*found, *kept)]
        constant = Tree(rows.features, ast.Constant(rows.target_mean))
        return list(dict.fromkeys([constant, *simple, *found, *kept]))

    def polished(self, trees: Sequence[Tree], floor: float) -> list[Model]:
        """The formulas as models, with constants as simple as the objective allows; the loss proposes them.

        Parameters
        ----------
        trees : sequence of Tree
        floor : float
            Objective below which two formulas are equally right.
        """
        rows, plain = self._task.dataset, self.models(trees)
        if self._out_of_time():
            return plain
        least_error = partial(rounding_error, loss=self._loss)
        polishing = Polishing(self._loss, self._threads, TOLERANCE, self._out_of_time, least_error)
        fitted = polishing.fitted(population_of(trees, self.primitives), rows)
        versions = polishing.versions(fitted, self.primitives, rows)

        def nats(worse: Model, better: Model) -> float:
            return POWER * rows.effective_rows * math.log(max(worse.loss, floor) / max(better.loss, floor))

        every = [plain]
        for version in versions:
            if not self._out_of_time():
                every.append(self.models(version))
        return [preferred(models, nats) for models in zip(*every, strict=True)]

    def models(self, trees: Sequence[Tree]) -> list[Model]:
        """The formulas as models, with what the objective says of them."""
        weights = self._settings.evolution.complexity
        new = [tree for tree in dict.fromkeys(trees) if tree not in self._known]
        if new:
            self._known.update(zip(new, self._judged(population_of(new, self.primitives)), strict=True))
        losses = [self._known[tree] for tree in trees]
        found = measured(trees, self._task.dataset, LOSSES["mse"], weights, self.primitives, self._threads)
        judged = zip(found, losses, strict=True)
        return [replace(model, loss=float(own[0]), objectives=tuple(own[1:].tolist())) for model, own in judged]

    def front(self, models: Sequence[Model]) -> list[Model]:
        """The models that no other beats in complexity, loss and further objectives."""
        finite = [model for model in models if math.isfinite(model.loss)]
        finite = [model for model in finite if model.tree.size <= self._settings.evolution.max_size]
        finite = without_poles(finite, 0.0, self._domain)
        if not any(model.objectives for model in finite):
            return list(pareto_front(finite, 0.0))
        finite.sort(key=lambda model: (model.complexity, model.loss, model.objectives))
        front: list[Model] = []
        for model in finite:
            own = (model.loss, *model.objectives)
            if not any(all(a <= b for a, b in zip((each.loss, *each.objectives), own, strict=True)) for each in front):
                front.append(model)
        return front

    def moved(self, tree: Tree) -> Tree:
        """A formula with constants moved while its first objective becomes smaller."""
        population = population_of([tree], self.primitives)
        columns = places(population)[1]
        if not len(columns):
            return tree
        # Steps of a constant at the end, as shares of it: they are halved where none makes the objective smaller
        best, step, calls = float(self._judged(population)[0, 0]), 0.05, 0
        # Most steps of a formula at the end, each of them a call of the objective.
        while step > 1e-5 and calls < 60 and not self._out_of_time():
            calls += 1
            trials = np.repeat(population.values, 2 * len(columns), axis=0)
            for number, column in enumerate(columns.tolist()):
                trials[2 * number, column] *= 1 + step
                trials[2 * number + 1, column] *= 1 - step
            everyone = replace(population.take(np.zeros(len(trials), np.int64)), values=trials)
            losses = self._judged(everyone)[:, 0]
            at = int(np.argmin(losses))
            if losses[at] < best:
                best, population, step = float(losses[at]), everyone.take([at]), 1.5 * step
            else:
                step /= 2
        return population.tree(0)

    def unscaled(self, model: Model) -> Model:
        """A model of the given data."""
        return replace(model, tree=self._task.scaling.leaving(model.tree, self._task.user_rows))

    def _judged(self, population: Population) -> Floats:
        evaluator = MachineEvaluator(self._task.dataset, "mse", False, "float64", self._threads)
        predictions: Any = evaluator.predict(population)
        judged = self._objective(predictions, population.tree)
        if self._rules is not None:
            ones = np.ones(len(population))
            charges = self._rules(population.primitives).charged(population, ones, ones)
            judged[:, 0] = np.where(np.isfinite(charges), judged[:, 0] * charges, np.inf)
        return judged
