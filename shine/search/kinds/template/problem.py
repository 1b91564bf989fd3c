"""The problem of a template: its unknown functions and its parameters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from shine.base.errors import DataError
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import AllRows, Dataset
from shine.evaluate.inference.inference import Basis
from shine.evaluate.losses import loss_for
from shine.evaluate.losses.form import LOSSES, SIGMA, Loss
from shine.evaluate.losses.rows import data_for_loss, takes_noise
from shine.evaluate.protocols import ConstantFitter, PopulationEvaluator
from shine.lang.forms.names import shown
from shine.lang.forms.tree import Tree
from shine.lang.growth import Terminals
from shine.lang.interpret import evaluate
from shine.lang.presentation import for_people
from shine.search.description import DescriptionLength
from shine.search.evolution.complexity import CONSTANT_NAME
from shine.search.evolution.evolution import Outcome, Start
from shine.search.evolution.observers import Observers, Progress, SearchView
from shine.search.evolution.operators.slot_breeding import created_with_slots
from shine.search.evolution.settings import EvolutionSettings
from shine.search.finishing.polishing import not_beaten, unless_interrupted
from shine.search.finishing.supported_digits import with_supported_digits
from shine.search.kinds.problem import Problem
from shine.search.kinds.template.constraints import ConstrainedTemplates, SlotConstraints, check_unknowns
from shine.search.kinds.template.finishing import TemplateFinish, least_rows, oddities
from shine.search.kinds.template.scaling import TemplateScaling
from shine.search.kinds.template.seeding import template_seeding
from shine.search.kinds.template.view import guessed, template_view
from shine.search.models.certainty import choose
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.models.template_model import TemplateModel
from shine.search.problem.budget import FEWER_PASSES, FRONT, LEAST, Work, affordable, planned
from shine.search.problem.names import TranslatedSettings
from shine.search.problem.noise import estimated_noise, with_model
from shine.search.problem.preparation import warn_of_bitwise
from shine.search.problem.reference_losses import Evidence, description_length, good_enough
from shine.search.templates.composition import Composition, bound, resolved
from shine.search.templates.fits.linearizer import TemplateEvaluator, TemplateLinearizer
from shine.search.templates.fits.sections import OUTPUT
from shine.search.templates.grouping import in_values, numbered_by_group
from shine.search.templates.law import Groups, law_of
from shine.search.templates.template import Template

NEAR = 16.0
"""Starts within this factor of 1 are 1: a fit goes that far by itself."""

ROWS = 1000
"""Rows that sizes are medians of."""


def with_starts(template: Template, dataset: Dataset) -> Template:
    """The template with starts of parameters that the user gave none, where their size is far from 1."""
    rows = dataset.sampled(ROWS, np.random.default_rng(0))
    names = {each.name for each in template.parameters}
    found = _Sizes(rows, names, template.calls)
    for output in template.outputs:
        found.of_parameters(output)
    parameters = []
    for each in template.parameters:
        size, (low, high) = found.sizes.get(each.name), each.bounds
        free = each.value is None and each.start is None and not each.integer
        known = free and size is not None and not 1 / NEAR <= size <= NEAR and low <= size <= high
        parameters.append(replace(each, start=size) if known else each)
    return replace(template, parameters=tuple(parameters))


@dataclass
class _Sizes:
    """Sizes of parameters; of each, the first that something tells.

    Parameters
    ----------
    rows : Dataset
    parameters : set of str
    calls : mapping
        What is called by the template: functions of unknown size.
    """

    rows: Dataset
    parameters: set[str]
    calls: Mapping[str, object]
    sizes: dict[str, float] = field(default_factory=dict)

    def of_parameters(self, output: Tree) -> None:
        """Note the sizes that an output tells."""
        waiting: list[tuple[ast.AST, float | None]] = [(output.result, None)]
        waiting += [(value, None) for _, value in output.assignments]
        while waiting:
            node, wanted = waiting.pop()
            match node:
                case ast.Name(name) if name in self.parameters:
                    if wanted is not None and np.isfinite(wanted) and wanted > 0:
                        self.sizes.setdefault(name, wanted)
                case ast.BinOp(left, ast.Mult(), right):
                    waiting += [(right, _over(wanted, self._size(output, left)))]
                    waiting += [(left, _over(wanted, self._size(output, right)))]
                case ast.BinOp(left, ast.Div(), right):
                    above, below = self._size(output, left), self._size(output, right)
                    waiting += [(right, None if wanted is None else (above or 1.0) / wanted)]
                    waiting += [(left, None if wanted is None else wanted * (below or 1.0))]
                case ast.BinOp(left, ast.Add() | ast.Sub(), right):
                    waiting += [
                        (right, self._size(output, left) or wanted),
                        (left, self._size(output, right) or wanted),
                    ]
                case ast.UnaryOp(ast.USub(), operand):
                    waiting.append((operand, wanted))
                case ast.Call(_, arguments):
                    waiting += [(argument, 1.0) for argument in arguments]
                case ast.BinOp(left, ast.Pow(), right):
                    waiting += [(right, None), (left, 1.0)]
                case _:
                    waiting += [(child, None) for child in ast.iter_child_nodes(node)]

    def _size(self, output: Tree, node: ast.expr) -> float | None:
        """Median size of the values of a part that only columns decide; None of others, and where it is 0."""
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if not names <= set(self.rows.features) or names & set(self.calls):
            return None
        tree = replace(output, parameters=self.rows.features, result=node, assignments=())
        with np.errstate(all="ignore"):
            values = np.abs(evaluate(tree, list(self.rows.columns), np.float64, COMPILED))
        values = values[np.isfinite(values) & (values > 0)]
        return float(np.sort(values)[len(values) // 2]) if len(values) else None


def _over(wanted: float | None, size: float | None) -> float | None:
    """The size of a factor of what has a size."""
    return None if wanted is None else wanted / (size or 1.0)


TOLERANCE_ROWS = 1.0
"""A fit stops when its next step promises to remove less than the error of about so many rows: half a nat for each.
Many parameters by group converge slowly, and what is left to remove would hide which of two formulas is better."""

DIGITS = 5
"""Significant digits of the numbers of a formula that is still evolving."""


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
    scaling : TemplateScaling, optional
        How the template and the target were scaled; None in most cases.
    """

    composition: Composition
    dataset: Dataset
    groups: Groups | None
    noise: str
    loss: Loss
    scaling: TemplateScaling | None = None


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
    groups = None
    if template.groups is not None:
        labels = dataset.labels.get(template.groups)
        dataset, groups = numbered_by_group(dataset, template.groups, labels)
    features = tuple(name for name in dataset.features if name != OUTPUT or len(template.outputs) == 1)
    scaling = TemplateScaling.of(resolved(template, features), dataset) if loss.name in LOSSES else None
    if scaling is not None:
        template, dataset = scaling.template, scaling.target.applied(dataset)
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
    return TemplateTask(composition, with_model(dataset, model, loss), groups, model, loss, scaling)


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
    def scaled(self) -> bool:
        """Never: the template says the form."""
        return False

    @property
    def start(self) -> Start:
        """Slots for the unknown functions, the user's values, and a seeding that solves the template for them."""
        own = self.composition
        seeding = template_seeding(own, self.sample, self.evolving, self.loss, self.threads, self.observers.pool)
        return Start(own.genome, guessed(self.settings.guesses, own), seeding)

    def evaluator(self, rows: Dataset) -> PopulationEvaluator:
        """Composed individuals; constraints are those of the unknown functions."""
        plain = TemplateEvaluator(self.composition, rows, self.loss, self.island_threads)
        return ConstrainedTemplates(plain, self._rules) if self._rules else plain

    def linearizer(self, rows: Dataset) -> ConstantFitter:
        """Functions and parameters together."""
        return TemplateLinearizer(self.composition, rows, self.loss, self.island_threads)

    def description(self, rows: Dataset) -> DescriptionLength:
        """By the loss."""
        return description_length(rows, self.loss)

    def view(self) -> SearchView:
        """The composed formulas."""
        choose_now = partial(choose, enough=self.enough, description=self.description(self.sample))
        return template_view(
            self.user_rows, self.composition, self.task.groups, self.settings, self.enough, self._headings, choose_now
        )

    def report_for_users(self, report: Callable[[Progress], object]) -> Callable[[Progress], object]:
        """It gets the composed formulas."""
        task = self.task

        def converted(progress: Progress) -> object:
            def write(position: int) -> str:
                law = law_of(task.composition, progress.front, position, task.groups)
                of_tree = partial(for_people, precision=DIGITS)
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
        choice = choose(front, enough, description_length(rows, loss), oddities(front))
        scaling = task.scaling
        if scaling is not None:
            front = tuple(scaling.in_user_units(model, loss.degree) for model in front)
        plain = task.groups is None and one_output and scaling is None
        noise = estimated_noise(rows, task.noise) if plain else None
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
    individuals = created_with_slots(FRONT, own.genome, settings, Terminals(), rng, 0)

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
