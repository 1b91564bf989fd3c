"""The problem of a formula for a target: rows, noise, constraints, samples, and the end."""

from __future__ import annotations

import ast
import math
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Self

import numpy as np

from shine.base.errors import DataError
from shine.data.datasets.dataset import AllRows, Dataset
from shine.data.datasets.serial import Serial
from shine.evaluate.losses import loss_for
from shine.evaluate.losses.form import LOSSES
from shine.evaluate.losses.rows import data_for_loss, takes_noise
from shine.evaluate.protocols import ConstantFitter, PopulationEvaluator
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.population import Population
from shine.search.constraints.compiled import CompiledConstraints, ConstrainedEvaluator
from shine.search.description import DescriptionLength
from shine.search.evolution.evolution import Outcome, Start
from shine.search.evolution.observers import Observers, Progress, SearchView
from shine.search.evolution.operators.slots import formula_depths
from shine.search.evolution.run_state import State
from shine.search.evolution.settings import StopSettings
from shine.search.finishing.end import Finish
from shine.search.finishing.kept_rows import Split, check_validation
from shine.search.kinds.problem import Problem
from shine.search.models.certainty import Choice, choose
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.models.user_units import report_in_user_units, tell_best, teller
from shine.search.problem.budget import FEWER_PASSES, planned, steps_of, with_affordable_rows
from shine.search.problem.names import TranslatedSettings
from shine.search.problem.noise import SIZES, check_noise, estimated_noise, resolved_noise
from shine.search.problem.noise_choice import (
    HURRIED_WORK,
    PROBING,
    PROBING_WORK,
    with_noise,
)
from shine.search.problem.outliers import gross_outliers, named, rows_of_seeding, without
from shine.search.problem.preparation import (
    SEEDING_ROWS,
    Task,
    constraint_compiler,
    evaluator_for,
    prepared,
    seeding_task,
)
from shine.search.problem.reference_losses import description_length, good_enough
from shine.search.problem.serial_noise import with_serial_noise
from shine.search.problem.unwritten import description_of
from shine.search.seeding import Guesses, SeedingSettings, Slices, guesses_in_slices
from shine.search.seeding.effort import Deadline, Effort
from shine.search.view import view_of

PROBE, RENEWING = 1, 3
"""Numbers of the random generators that examine the noise and renew samples, beside that of the search; 2 is the one
that keeps rows back."""


MANY_ROWS = 20
"""Rows to score on, for each row to fit constants to, from which offspring are fitted first and scored once. Of 20
searches over 10 000 rows, a generation took 0.57 of the time, and as many fronts were better as worse."""


class OneFormula(Problem):
    """Base of problems whose individuals are one formula of the features.

    Attributes
    ----------
    task : Task
    rules : callable or None
        Compiles the constraints for a primitive set and a kind of scaling.
    degree : int
        Power of the target's unit in the loss.
    predicts : bool
        Whether formulas predict the target itself.
    """

    task: Task
    rules: Callable[..., CompiledConstraints] | None
    degree: int = 0
    predicts: bool = True
    _noise: str = "absolute"

    @property
    def scaled(self) -> bool:
        """As the settings say."""
        return self.fitness.linear_scaling

    @property
    def start(self) -> Start:
        """Features and functions, guesses over the scaled data, and the seeding."""
        return Start(self.task.primitives, self.task.guesses, Slices(self._seeded))

    def alone(self) -> Self:
        """Its task has few rows, too."""
        own = super().alone()
        own.task = replace(self.task, dataset=self.sample, user_rows=self.sample)
        return own

    @property
    def longest(self) -> int:
        """Most nodes of a formula that fits exactly."""
        return self.evolving.max_size

    @property
    @abstractmethod
    def seeding_rows(self) -> tuple[Dataset, str]:
        """Rows that the seeding looks at, with the model of their noise."""

    def _seeded(self, rng: np.random.Generator, effort: Effort) -> Generator[Guesses]:
        rows, noise = self.seeding_rows
        rows = rows.sampled(SEEDING_ROWS, rng)
        # The seeding measures errors of wide targets in both ways itself, and needs even weights for its derivatives.
        rows = rows if noise == "sigma" else rows.without_deviations
        evolving = self.evolving
        task = seeding_task(
            rows,
            self.task.primitives,
            self.threads,
            max_size=evolving.max_size,
            max_depth=evolving.max_depth,
            longest=self.longest,
            linear_scaling=self.scaled,
            settings=SeedingSettings(members=evolving.seeding_members, exact=self.settings.stop.loss),
            pool=self.observers.pool,
            noise=self.seeding_noise(rows),
            found=teller(self.task),
        )
        return self._with_required(guesses_in_slices(task, rng, effort))

    def _with_required(self, slices: Generator[Guesses]) -> Generator[Guesses]:
        """The guesses, each with 0 times the required features that it lacks: the end judges what the rows see."""
        required = self.settings.constraints.required
        if not required or not {"add", "mul"} <= self.task.primitives.function_codes.keys():
            yield from slices
            return
        for found in slices:
            given, trees = found.candidates, []
            for tree in map(given.tree, range(len(given))):
                lacking = [ast.Name(name) for name in required if name not in tree.used_parameters]
                terms = [ast.BinOp(ast.Constant(0.0), ast.Mult(), name) for name in lacking]
                whole = reduce(lambda one, other: ast.BinOp(one, ast.Add(), other), terms, tree.result)
                if tree.size + 4 * len(terms) <= given.width:
                    trees.append(replace(tree, result=whole))
            longer = Population.from_trees(trees, given.primitives, given.width)
            fits = np.flatnonzero(formula_depths(longer)[:, 0] <= self.evolving.max_depth)
            yield replace(found, candidates=longer.take(fits))

    def seeding_noise(self, rows: Dataset) -> float:
        """The share of the target's variance that noise leaves in rows of the seeding; 0 if it is not known."""
        return 0.0

    def evaluator(self, rows: Dataset) -> PopulationEvaluator:
        """The evaluator of the loss; it charges for broken constraints if there are any."""
        plain = self.unconstrained(rows)
        if self.rules is None:
            return plain
        return ConstrainedEvaluator(plain, self.rules(self.task.primitives, "implied" if self.scaled else "none"))

    @abstractmethod
    def unconstrained(self, rows: Dataset) -> PopulationEvaluator:
        """The evaluator without constraints."""

    def linearizer(self, rows: Dataset) -> ConstantFitter:
        """By the loss."""
        return MachineLinearizer(rows, self.loss, self.island_threads)

    @abstractmethod
    def choose_now(self, models: Sequence[Model]) -> Choice:
        """The formula to recommend while the search runs."""

    def view(self) -> SearchView:
        """Formulas of the given columns."""
        return view_of(
            self.user_rows,
            self.task,
            self.settings,
            enough=self.enough,
            degree=self.degree,
            choose=self.choose_now,
            loss=self.loss,
            noise=self._noise,
            fits=self.predicts,
        )

    def report_for_users(self, report: Callable[[Progress], object]) -> Callable[[Progress], object]:
        """It gets the units of the given data."""
        return report_in_user_units(report, self.task, self.degree)


class FormulaProblem(OneFormula):
    """A formula that predicts the target (see `Problem` for the parameters).

    Raises
    ------
    DataError, UnsupportedSyntaxError, GraphImportError, ValueError
        If the data, a formula, a graph or a setting is invalid.
    """

    def __init__(
        self, dataset: Dataset, settings: TranslatedSettings, observers: Observers, rng: np.random.Generator
    ) -> None:
        super().__init__(dataset, settings, observers, rng)
        fitness, evolving, state = self.fitness, self.evolving, observers.state
        self.loss = loss = loss_for(fitness.loss, dataset)
        self.degree = loss.degree
        read = data_for_loss(loss, dataset, fitness.noise)
        check_noise(fitness.noise)
        check_validation(fitness.validation, fitness.validation_fraction)
        task = prepared(read, settings, loss, linear_scaling=self.scaled, scale_target=loss.name in LOSSES)
        task, read = self._affordable(task, read)
        outliers = gross_outliers(task.dataset, loss, fitness.outliers)
        rows, self._left_out = without(task.dataset, outliers), named(read.target[outliers])
        self._rows_in_memory = read.n_rows
        order = Serial.of(rows.n_rows, rows.groups, rows.times)
        ways = fitness.validation, fitness.validation_fraction, settings.seed
        self._split = Split.of(replace(rows, serial=order), *ways)
        # A resumed search goes on with the model that it began with, however long the examination may take now.
        noise = state.noise if state is not None and state.noise in ("absolute", *SIZES) else fitness.noise
        self._examine_noise(replace(task, dataset=self._split.learned), noise)
        self.rows = self.task.dataset
        found = self.rows.serial and replace(order, correlation=self.rows.serial.correlation)
        self._split = replace(self._split, dataset=replace(rows, serial=found))
        self.enough = good_enough(self.rows, loss, settings.stop.loss, fitness.dtype)
        self.sample = self.rows.sampled(evolving.rows, rng)
        self.rules = constraint_compiler(settings.constraints, self.sample, self.island_threads)
        self.fitting = self.sample.sampled(evolving.fitting_rows, rng)
        self._floor = estimated_noise(self.sample, self._noise) if loss.name == "mse" else None
        if self.sample is not self.rows:
            # Generations that a sample of streamed rows lasts: renewing it costs about as much as one of them.
            lasting = 50 if dataset.all_rows is not None else 0
            self.interval = lasting if evolving.renewal is None else evolving.renewal

    def _affordable(self, task: Task, read: Dataset) -> tuple[Task, Dataset]:
        """As many rows as the end can work on within the seconds; notes all rows if they are streamed and it can."""
        all_rows, work = read.all_rows, steps_of(task.primitives, self.loss, self.threads)
        if all_rows is not None and task.scaling:
            raise DataError("columns with numbers beyond 3e38, or below 3e-39 alone, are not streamed; scale them")
        self.budget = planned(self.budget, task.dataset, work)
        self._all_rows: AllRows | None = None
        if all_rows is not None:
            everywhere = planned(self.budget, all_rows, work, FEWER_PASSES)
            if everywhere.affordable() == 1:
                self.budget, self._all_rows = everywhere, all_rows
        self.budget, task, read = with_affordable_rows(self.budget, task, read)
        return task, read

    def _examine_noise(self, task: Task, model: str) -> None:
        """Note the task with the weights of its noise, and the model; the user may interrupt its choice."""
        self.task = replace(task, dataset=replace(task.dataset, serial=None))
        self._noise, self._interrupted = "absolute", False
        if not takes_noise(self.loss):
            return
        # A generator of its own: the search is the same whether the noise was examined or not.
        probing, stop = np.random.default_rng((self.settings.seed, PROBE)), self.settings.stop
        hurried = not self.evolving.seeding or stop.generations == 0
        work = HURRIED_WORK if hurried else PROBING_WORK
        try:
            clock = self.budget.clock
            effort = Effort(work, Deadline(clock, clock() + PROBING * self.budget.left()))
            rows, self._noise = with_noise(
                task.dataset, model, self.loss, task.primitives, probing, self.threads, effort
            )
            rows = with_serial_noise(rows)
        except KeyboardInterrupt:
            self._interrupted = True
        else:
            self.task = replace(task, dataset=rows)

    def alone(self) -> Self:
        """Without the rows of the end."""
        own = super().alone()
        del own._split, own._all_rows
        return own

    @property
    def stop(self) -> StopSettings:
        """After an interrupt: the first population, without seeding."""
        return replace(super().stop, generations=0) if self._interrupted else super().stop

    def samples(self, number: int) -> tuple[Dataset, Dataset]:
        """A sample that follows from the seed and the number."""
        drawing = np.random.default_rng((self.settings.seed, RENEWING, number))
        rows = self.rows.sampled(self.evolving.rows, drawing)
        return rows, rows.sampled(self.evolving.fitting_rows, drawing)

    def first(self, rows: Dataset, fitting: Dataset) -> PopulationEvaluator | None:
        """If there are many more rows to score on."""
        return self.evaluator(fitting) if rows.n_rows >= MANY_ROWS * fitting.n_rows else None

    def unconstrained(self, rows: Dataset) -> PopulationEvaluator:
        """The loss, with lines if individuals are scaled."""
        return evaluator_for(rows, self.on_islands, self.loss, self.evolving.fitting_rows)

    def description(self, rows: Dataset) -> DescriptionLength:
        """It knows the loss that noise alone leaves."""
        return replace(description_length(rows, self.loss), noise=math.inf if self._floor is None else self._floor.loss)

    @property
    def seeding_rows(self) -> tuple[Dataset, str]:
        """Rows that squared errors do not follow too far."""
        return rows_of_seeding(self.sample, self.loss, self._noise)

    @property
    def longest(self) -> int:
        """By the settings: sums of many terms that fit exactly may be longer than others."""
        return self.evolving.longest

    def seeding_noise(self, rows: Dataset) -> float:
        """By replicates or near rows, for squared errors."""
        return resolved_noise(rows) if self._floor is not None else 0.0

    def choose_now(self, models: Sequence[Model]) -> Choice:
        """By the shortest description of the sample."""
        return choose(models, self.enough, description_of(self.sample, self.loss, self.task.primitives))

    def kept(self, state: State) -> State:
        """It knows the model of the noise."""
        return replace(state, noise=self._noise)

    def finished(self, outcome: Outcome, earlier: Sequence[Model]) -> Result:
        """On all rows, those kept back, outliers and streamed ones included."""
        if self._interrupted:
            outcome = replace(outcome, stopped_by="interrupted")
        tell_best(outcome, self.task, self.degree)
        finish = Finish(
            task=self.task,
            split=self._split,
            settings=self.settings,
            loss=self.loss,
            noise=self._noise,
            rules=self.rules,
            threads=self.threads,
            budget=self.budget,
            left_out=self._left_out,
            all_rows=self._all_rows,
            earlier=tuple(model.tree for model in earlier),
        )
        result = finish.result(outcome)
        if self._all_rows is not None:
            return result
        return result.by_sample(self._rows_in_memory, (self.user_rows.all_rows or self.user_rows).n_rows)
