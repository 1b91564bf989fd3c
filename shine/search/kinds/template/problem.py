"""The problem of a template: its unknown functions and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shine.base.errors import DataError
from shine.data.datasets.dataset import AllRows, Dataset
from shine.evaluate.confirmation import Confirmation
from shine.evaluate.domain.levels import Levels
from shine.evaluate.inference.inference import Basis
from shine.evaluate.losses import loss_for
from shine.evaluate.losses.form import LOSSES, SIGMA, Loss
from shine.evaluate.losses.rows import data_for_loss, takes_noise
from shine.evaluate.protocols import ConstantFitter, PopulationEvaluator
from shine.lang.forms.names import shown
from shine.lang.growth import Terminals
from shine.lang.presentation import for_people
from shine.search.description import DescriptionLength
from shine.search.evolution.complexity import CONSTANT_NAME
from shine.search.evolution.evolution import Outcome, Start
from shine.search.evolution.observers import Observers, Progress, SearchView
from shine.search.evolution.operators.slot_breeding import created_with_slots
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.finishing.polishing import not_beaten, unless_interrupted, with_supported_digits
from shine.search.kinds.problem import Problem
from shine.search.kinds.template.constraints import ConstrainedTemplates, SlotConstraints, check_unknowns
from shine.search.kinds.template.finishing import TemplateFinish, least_rows
from shine.search.kinds.template.seeding import template_seeding
from shine.search.kinds.template.starts import fitted_starts, with_starts
from shine.search.kinds.template.view import guessed, template_view
from shine.search.models.certainty import Choice, choose
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.models.template_model import TemplateModel
from shine.search.problem.budget import FEWER_PASSES, FRONT, LEAST, Work, affordable, planned
from shine.search.problem.names import TranslatedSettings
from shine.search.problem.noise import estimated_noise, with_model
from shine.search.problem.outliers import gross_outliers, named, without
from shine.search.problem.preparation import warn_of_bitwise
from shine.search.problem.reference_losses import Evidence, description_length, good_enough
from shine.search.templates.composition import Composition, bound, resolved
from shine.search.templates.fits.linearizer import TemplateEvaluator, TemplateLinearizer
from shine.search.templates.fits.sections import OUTPUT
from shine.search.templates.grouping import in_values, numbered_by_group
from shine.search.templates.law import Groups, law_of

TOLERANCE_ROWS = 1.0
"""A fit stops when its next step promises to remove less than the error of about so many rows: half a nat for each.
Many parameters by group converge slowly, and what is left to remove would hide which of two formulas is better."""


@dataclass(frozen=True, eq=False)
class TemplateTask:
    """The data of a search with a template, and what its individuals are.

    Parameters
    ----------
    composition : Composition
    dataset : Dataset
        All rows, with the weights of the noise and the numbers of groups.
    groups : Groups, optional
    noise : str
        The model of the noise.
    loss : Loss
    left_out : str
        What is told of rows that take no part (see `shine.search.problem.outliers`).
    """

    composition: Composition
    dataset: Dataset
    groups: Groups | None
    noise: str
    loss: Loss
    left_out: str


def prepared_template(dataset: Dataset, settings: TranslatedSettings) -> TemplateTask:
    """The task of a search with a template.

    Raises
    ------
    DataError
        If the data lack a column of the template, have no groups, or are not in memory.
    ValueError
        If a setting does not go with a template.
    UnsupportedSyntaxError, TypeError
        If a primitive cannot be used.
    """
    template, evolving = settings.template, settings.evolution
    assert template is not None
    if dataset.all_rows is not None:
        raise DataError("a template needs all rows in memory: read fewer rows or columns, or set stream to false")
    if dataset.groups is not None:
        raise ValueError("groups do not go with a template, which names its column of groups itself: k[patient]")
    _check_settings(settings)
    loss = loss_for(settings.fitness.loss, dataset)
    if len(template.outputs) > 1 and not takes_noise(loss) and SIGMA not in dataset.loss_columns:
        # The spread of each output stands for the unknown noise, of which such a loss has its own idea.
        dataset = dataset.without_deviations
    dataset = data_for_loss(loss, dataset, settings.fitness.noise)
    groups, left_out = None, ""
    alone = template.groups is None and len(template.outputs) == 1
    if template.unknowns and alone:
        # Neighbours by features are no neighbours where groups or outputs tell rows apart. A given formula is fitted as
        # it is.
        outliers = gross_outliers(dataset, loss, settings.fitness.outliers)
        dataset, left_out = without(dataset, outliers), named(dataset.target[outliers])
    if template.groups is not None:
        labels = dataset.labels.get(template.groups)
        dataset, groups = numbered_by_group(dataset, template.groups, labels)
        if len(groups.values) == dataset.n_rows:
            raise DataError(f"each row is a group of its own by {shown(template.groups)}: groups need several rows")
    features = tuple(name for name in dataset.features if name != OUTPUT or len(template.outputs) == 1)
    largest = float(np.abs(dataset.target).max(initial=0.0))
    # Squares of errors have digits to spare within these bounds.
    if loss.name in LOSSES and largest and not 1e-120 <= largest <= 1e120:
        raise DataError(f"the target is up to {largest:.2g}; with a template, give it in a unit that is nearer to it")
    template = with_starts(resolved(template, features), dataset)
    count = 0 if groups is None else len(groups.values)
    composition = bound(template, features, count, settings.primitives, evolving.max_size, evolving.max_depth)
    check_unknowns(composition)
    warn_of_bitwise(composition.primitives.functions, dataset)
    known = {CONSTANT_NAME, *(name for slot in composition.genome.slots for name in slot.primitives.table)}
    for name in evolving.complexity:
        if name not in known:
            raise ValueError(f"complexity has {shown(name)}; with a template it has functions and {CONSTANT_NAME!r}")
    noise = settings.fitness.noise
    model = "sigma" if dataset.deviations is not None else "absolute" if noise == "auto" else noise
    return TemplateTask(composition, with_model(dataset, model, loss), groups, model, loss, left_out)


def _check_settings(settings: TranslatedSettings) -> None:
    """Raise a `ValueError` if a setting does not go with a template."""
    fitness = settings.fitness
    if settings.constraints:
        raise ValueError(
            "constraints: with a template, each unknown function has its own: "
            "unknown={'f': {'arguments': ['x'], 'constraints': {...}}}"
        )
    if fitness.validation is not None:
        raise ValueError("validation does not go with a template; the shortest description of all rows decides")
    if fitness.dtype != "float64":
        raise ValueError("a search with a template computes in float64; leave dtype out")
    if fitness.tier != "machine":
        raise ValueError("a search with a template uses the tile machine; leave tier out")


class TemplateProblem(Problem):
    """The unknown functions and the parameters of a template (see `Problem` for the parameters)."""

    def __init__(
        self, dataset: Dataset, settings: TranslatedSettings, observers: Observers, rng: np.random.Generator
    ) -> None:
        super().__init__(dataset, settings, observers, rng)
        evolving, threads = self.evolving, self.island_threads
        self.task = task = prepared_template(dataset, settings)
        self.composition, self.loss = task.composition, task.loss
        needed = least_rows(self.composition)
        work = _steps_of(task, evolving, self.threads)
        self.budget = planned(self.budget, task.dataset, work, FEWER_PASSES)
        self._prepared_rows = task.dataset.n_rows
        most = affordable(self.budget, self._prepared_rows, max(LEAST, needed))
        self.rows = task.dataset
        if most < self._prepared_rows:
            self.budget = self.budget.with_share(most / self._prepared_rows)
            self.rows = task.dataset.sampled(most, np.random.default_rng(0))
        self.sample = self.rows.sampled(evolving.rows, rng)
        self.fitting = self.sample.sampled(max(evolving.fitting_rows, needed), rng)
        self.tolerance = TOLERANCE_ROWS / self.fitting.n_rows
        self.enough = good_enough(self.rows, self.loss, settings.stop.loss, "float64")
        self._rules = SlotConstraints.of(self.composition, self.sample, threads)
        self._headings = {name: dataset.headings.get(name, name) for name in self.composition.features}

    @property
    def stop(self) -> StopSettings:
        """Without unknown functions, the fits of the start are all there is to do."""
        return super().stop if self.composition.genome.slots else replace(super().stop, generations=0)

    @property
    def scaled(self) -> bool:
        """Never: the template says the form."""
        return False

    @property
    def start(self) -> Start:
        """Slots for the unknown functions, the user's values, and a seeding that solves the template for them."""
        own = self.composition
        if not own.genome.slots:
            return Start(own.genome, fitted_starts(own, self.linearizer(self.fitting), self.fitting, self.rng))
        seeding = template_seeding(own, self.sample, self.evolving, self.loss, self.threads, self.observers.pool)
        return Start(own.genome, guessed(self.settings.guesses, own), seeding)

    def evaluator(self, rows: Dataset) -> PopulationEvaluator:
        """Composed individuals; constraints are those of the unknown functions."""
        plain = TemplateEvaluator(self.composition, rows, self.loss, self.island_threads)
        return ConstrainedTemplates(plain, self._rules) if self._rules else plain

    def confirmation(self, rows: Dataset) -> Confirmation:
        """It does not look between groups and outputs."""
        one_output = len(self.composition.template.outputs) == 1
        levels = Levels.of(rows, self.composition.template.groups) if one_output else ()
        predictor = partial(TemplateEvaluator, self.composition, loss="mse")
        return Confirmation(rows, self.loss, levels, predictor, self.enough)

    def linearizer(self, rows: Dataset) -> ConstantFitter:
        """Functions and parameters together."""
        return TemplateLinearizer(self.composition, rows, self.loss, self.island_threads)

    def description(self, rows: Dataset) -> DescriptionLength:
        """By the loss."""
        return description_length(rows, self.loss)

    def view(self) -> SearchView:
        """The composed formulas."""
        choose_now = partial(choose, enough=self.enough, description=self.description(self.sample))
        task, rest = self.task, (self.settings, self.enough, self._headings, choose_now)
        return template_view(self.user_rows, self.composition, task.groups, *rest, task.loss, task.noise)

    def report_for_users(self, report: Callable[[Progress], object]) -> Callable[[Progress], object]:
        """It gets the composed formulas."""
        task = self.task

        def converted(progress: Progress) -> object:
            def write(position: int) -> str:
                law = law_of(task.composition, progress.front, position, task.groups)
                # Significant digits of the numbers of a formula that is still evolving.
                of_tree = partial(for_people, precision=5)
                return ", ".join(law.shown(output, of_tree) for output in range(law.n_outputs))

            return report(replace(progress, write=write))

        return converted

    def finished(self, outcome: Outcome, earlier: Sequence[Model]) -> Result:
        """On all rows, with digits and the data of intervals."""
        task, rows, loss, enough = self.task, self.rows, self.loss, self.enough
        outcome, front = self._refined(outcome, earlier)
        front = tuple(_with_digits(model, rows, task.groups) for model in front)
        one_output = len(self.composition.template.outputs) == 1
        if one_output:
            # Formulas compare the values of the column of groups, which are numbers from 0 only in the search.
            basis = Basis(in_values(rows, task.groups), loss, task.noise)
            front = tuple(replace(model, basis=basis) for model in front)
        front = tuple(replace(model, noise=task.noise) for model in front)
        choice = choose(front, enough, description_length(rows, loss))
        if not task.composition.genome.slots:
            choice = Choice(0, "the given formula, with the most likely parameters")
        plain = task.groups is None and one_output
        noise = estimated_noise(rows, task.noise) if plain else None
        choice = replace(choice, reason=choice.reason + self.task.left_out)
        return self.result(outcome, front, choice, noise).by_sample(rows.n_rows, self._prepared_rows)

    def _refined(self, outcome: Outcome, earlier: Sequence[Model]) -> tuple[Outcome, tuple[TemplateModel, ...]]:
        """The front, fitted to convergence and simplified, with what it does not replace of an earlier one."""
        finish = TemplateFinish(
            composition=self.composition,
            groups=self.task.groups,
            rows=self.rows,
            loss=self.loss,
            weights=self.evolving.complexity,
            rules=self._rules,
            enough=self.enough,
            threads=self.threads,
            is_closing=self.budget.is_closing,
            most=self.budget.refinable(),
            headings=self._headings,
        )
        before = outcome
        outcome, front = unless_interrupted(outcome, lambda polish: finish.front(before, polish))
        if earlier:
            evidence = Evidence.of(self.rows, self.loss)
            those = [model for model in earlier if isinstance(model, TemplateModel)]
            kept = finish.without_poles([*front, *those])
            those = [model for model in those if model in kept]
            front = not_beaten(front, those, lambda a, b: evidence.nats(a.loss, b.loss), self.enough)
        if not front:
            relax = "search longer, or relax the constraints" if self._rules else "check the ranges of the columns"
            if outcome.stopped_by == "seconds":
                relax = f"the seconds were over, give more; or {relax}"
            raise DataError(f"no formula of the template has a finite {self.loss.name}; {relax}")
        return outcome, front


def _steps_of(task: TemplateTask, settings: EvolutionSettings, threads: int) -> Work:
    """The work of the search's end for one individual."""
    own, rng = task.composition, np.random.default_rng(0)
    individuals = created_with_slots(FRONT, own.genome, settings, Terminals(), rng)

    def work(rows: Dataset | AllRows) -> object:
        assert isinstance(rows, Dataset)
        return TemplateLinearizer(own, rows, task.loss, threads).fit(individuals, 1, tolerance=0.0)

    return work


def _with_digits(model: TemplateModel, rows: Dataset, groups: Groups | None) -> TemplateModel:
    """The model with the number of digits that the rows support."""
    rows = in_values(rows, groups)
    if model.output is not None:
        (found,) = with_supported_digits([model], rows)
        return replace(model, digits=found.digits)
    which = rows.columns[rows.features.index(OUTPUT)]
    digits = []
    for each in model.outputs:
        own = rows.take(np.flatnonzero(which == each.output)).without([OUTPUT])
        (found,) = with_supported_digits([each], own)
        digits.append(found.digits or 0)
    return replace(model, digits=max(digits))
