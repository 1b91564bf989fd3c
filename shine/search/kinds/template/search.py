"""A whole search with a template: data in, the Pareto front of the unknown functions and parameters out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shine.base.errors import DataError
from shine.base.parallel import Pool
from shine.base.stages import stage
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset, Whole
from shine.evaluate.fitness.protocols import PopulationEvaluator
from shine.evaluate.inference.inference import Basis
from shine.evaluate.losses import loss_for
from shine.evaluate.losses.form import LOSSES, SIGMA, Loss
from shine.evaluate.losses.rows import data_for_loss, takes_noise
from shine.lang.forms.names import shown
from shine.lang.growth import Terminals
from shine.lang.presentation import for_people
from shine.search.evolution import evolution
from shine.search.evolution.complexity import CONSTANT_NAME
from shine.search.evolution.constants import fitter
from shine.search.evolution.evolution import Outcome, Start
from shine.search.evolution.observers import NOBODY, Observers, Progress
from shine.search.evolution.operators.slot_breeding import created_with_slots
from shine.search.evolution.run_state import State
from shine.search.evolution.scoring import Scoring
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.finishing.polishing import not_beaten
from shine.search.finishing.supported_digits import with_supported_digits
from shine.search.kinds.template.constraints import ConstrainedTemplates, SlotConstraints, check_unknowns
from shine.search.kinds.template.finishing import TemplateFinish, least_rows, oddities
from shine.search.kinds.template.guesses import guessed
from shine.search.kinds.template.scaling import TemplateScaling
from shine.search.kinds.template.seeding import template_seeding
from shine.search.kinds.template.view import template_view
from shine.search.models.choice import Choice, choose
from shine.search.models.front import Front, Result
from shine.search.models.model import Model
from shine.search.models.template_model import TemplateModel
from shine.search.problem.all_rows_time import LEAST, Work, affordable, planned
from shine.search.problem.bitwise import warn_of_bitwise
from shine.search.problem.budget import FEWER_PASSES, FRONT, TimeBudget
from shine.search.problem.noise import with_model
from shine.search.problem.noise_estimate import estimated_noise
from shine.search.problem.settings import SearchSettings
from shine.search.problem.sharing import shared
from shine.search.problem.yardsticks import Evidence, description_length, good_enough
from shine.search.templates.binding import bound, resolved
from shine.search.templates.composition import Composition
from shine.search.templates.fits.linearizer import TemplateLinearizer
from shine.search.templates.fits.scores import TemplateEvaluator
from shine.search.templates.fits.sections import OUTPUT
from shine.search.templates.grouping import in_values, numbered_by_group
from shine.search.templates.law import Groups, law_of

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


def prepared_template(dataset: Dataset, settings: SearchSettings) -> TemplateTask:
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
    if dataset.whole is not None:
        raise DataError("a template needs all rows in memory: read fewer rows or columns, or set stream to false")
    _check_settings(settings)
    loss = loss_for(settings.fitness.loss, dataset)
    if len(template.outputs) > 1 and not takes_noise(loss) and SIGMA not in dataset.beside:
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


def _check_settings(settings: SearchSettings) -> None:
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
    if fitness.tier not in ("auto", "machine"):
        raise ValueError("a search with a template uses the tile machine; leave tier out")
    if settings.evolution.selection == "lexicase":
        raise ValueError("a search with a template selects by tournament; leave selection out")


@np.errstate(all="ignore")
def template_search(
    dataset: Dataset,
    settings: SearchSettings,
    observers: Observers = NOBODY,
    earlier: Sequence[Model] = (),
) -> Result:
    """Find the unknown functions of a template and fit its parameters (see `shine.search.run.search`)."""
    observers, whole = observers.begun(), dataset
    budget = TimeBudget(settings.stop.seconds, clock=observers.clock, began=observers.began)
    evolving = settings.evolution
    threads = settings.fitness.threads or processors()
    task = prepared_template(dataset, settings)
    composition, loss = task.composition, task.loss
    budget = planned(budget, task.dataset, _steps_of(task, evolving, threads), FEWER_PASSES)
    given = task.dataset.n_rows
    most = affordable(budget, given, max(LEAST, least_rows(composition)))
    if most < given:
        budget = budget.with_share(most / given)
        task = replace(task, dataset=task.dataset.sampled(most, np.random.default_rng(0)))
    rows, rng = task.dataset, np.random.default_rng(settings.seed)
    sample = rows.sampled(evolving.rows, rng)
    fitted_on = sample.sampled(max(evolving.fitting_rows, least_rows(composition)), rng)
    alone = shared(settings.fitness, evolving, observers.pool).threads or 1
    linearizer = TemplateLinearizer(composition, fitted_on, loss, alone)
    enough = good_enough(rows, loss, settings.stop.loss, "float64")
    rules = SlotConstraints.of(composition, sample, alone)
    evaluator: PopulationEvaluator = TemplateEvaluator(composition, sample, loss, alone)
    description = description_length(sample, loss)
    headings = {name: dataset.headings.get(name, name) for name in composition.features}
    if observers.visitor is not None:
        choose_now = partial(choose, enough=enough, description=description)
        observers.visitor.enter(template_view(whole, composition, task.groups, settings, enough, headings, choose_now))
    steps, tolerance = evolving.constant_steps, TOLERANCE_ROWS / fitted_on.n_rows
    outcome = evolution.evolve(
        Scoring(
            ConstrainedTemplates(evaluator, rules) if rules else evaluator,
            fitter(linearizer, steps, scaled=False, tolerance=tolerance) if steps else None,
            description=description,
        ),
        Start(
            composition.genome,
            guessed(settings.guesses, composition),
            template_seeding(composition, sample, evolving, loss, threads, observers.pool),
        ),
        evolving,
        _stop(settings, budget, enough),
        rng,
        replace(observers, report=_written(observers.report, task)).with_visitor(),
    )
    finish = TemplateFinish(
        composition,
        task.groups,
        rows,
        loss,
        evolving.complexity,
        rules,
        enough,
        threads,
        budget.is_closing,
        budget.refinable(),
        headings,
    )
    with stage("refining the best formulas"):
        outcome, front = _finished(finish, outcome)
    if earlier:
        evidence = Evidence.of(rows, loss)
        before = [model for model in earlier if isinstance(model, TemplateModel)]
        kept = finish.without_poles([*front, *before])
        front = not_beaten(
            front, [model for model in before if model in kept], lambda a, b: evidence.nats(a.loss, b.loss), enough
        )
    if not front:
        relax = "search longer, or relax the constraints" if rules else "check the ranges of the columns"
        if outcome.stopped_by == "seconds":
            relax = f"the {settings.stop.seconds:g} seconds were over, give more; or {relax}"
        raise DataError(f"no formula of the template has a finite {loss.name}; {relax}")
    return _result(task, settings, outcome, front, enough, budget.spent()).by_sample(rows.n_rows, given)


def _result(
    task: TemplateTask,
    settings: SearchSettings,
    outcome: Outcome,
    front: tuple[TemplateModel, ...],
    enough: float,
    seconds: float,
) -> Result:
    """The front with digits and the data of intervals, and the formula to recommend."""
    rows, loss, one_output = task.dataset, task.loss, len(task.composition.template.outputs) == 1
    front = tuple(_with_digits(model, rows, task.groups) for model in front)
    if one_output:
        # Formulas compare the values of the column of groups, which are numbers from 0 only in the search.
        basis = Basis(in_values(rows, task.groups), loss, task.noise)
        front = tuple(replace(model, basis=basis) for model in front)
    front = tuple(replace(model, noise=task.noise) for model in front)
    choice = _chosen(front, rows, loss, enough)
    scaling = task.scaling
    if scaling is not None:
        front = tuple(scaling.given_back(model, loss.degree) for model in front)
    plain = task.groups is None and one_output and scaling is None
    return Result(
        Front(front, choice.index, choice.reason),
        choice.index,
        outcome.generations,
        outcome.evaluations,
        seconds,
        settings.seed,
        outcome.stopped_by,
        estimated_noise(rows, task.noise) if plain else None,
    )


def _steps_of(task: TemplateTask, settings: EvolutionSettings, threads: int) -> Work:
    """The work of the search's end for one individual."""
    own, rng, ones = task.composition, np.random.default_rng(0), np.ones(FRONT)
    individuals = created_with_slots(FRONT, own.genome, settings, Terminals(), rng, 0)

    def work(rows: Dataset | Whole) -> object:
        assert isinstance(rows, Dataset)
        return TemplateLinearizer(own, rows, task.loss, threads).fit(individuals, ones, 0 * ones, 1, tolerance=0.0)

    return work


def _stop(settings: SearchSettings, budget: TimeBudget, enough: float) -> StopSettings:
    """When the evolution ends."""
    return replace(settings.stop, loss=enough, seconds=budget.for_evolution())


def _written(report: Callable[[Progress], object], task: TemplateTask) -> Callable[[Progress], object]:
    """A report that receives the formulas composed."""

    def passed_on(progress: Progress) -> object:
        def write(position: int) -> str:
            law = law_of(task.composition, progress.front, position, task.groups)
            of_tree = partial(for_people, precision=DIGITS)
            return ", ".join(law.shown(output, of_tree) for output in range(law.n_outputs))

        return report(replace(progress, write=write))

    return passed_on


def _finished(finish: TemplateFinish, outcome: Outcome) -> tuple[Outcome, tuple[TemplateModel, ...]]:
    """The front; without the slow part if the user interrupts, now or before."""
    if outcome.stopped_by != "interrupted":
        try:
            return outcome, finish.front(outcome, polish=True)
        except KeyboardInterrupt:
            outcome = replace(outcome, stopped_by="interrupted")
    return outcome, finish.front(outcome, polish=False)


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


def _chosen(front: Sequence[TemplateModel], rows: Dataset, loss: Loss, enough: float) -> Choice:
    """The formula to recommend."""
    return choose(front, enough, description_length(rows, loss), oddities(front))
