"""A whole search: data in, the Pareto front of models out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from shine.base.errors import DataError
from shine.base.parallel import Pool
from shine.base.stages import stage
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset, Whole
from shine.evaluate.fitness.protocols import PopulationEvaluator
from shine.evaluate.losses import loss_for
from shine.evaluate.losses.form import LOSSES, Loss
from shine.evaluate.losses.rows import data_for_loss, takes_noise
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_tier import sampled_errors
from shine.search.constraints.compiled import CompiledConstraints, ConstrainedEvaluator
from shine.search.evolution import renewal
from shine.search.evolution.constants import fitter
from shine.search.evolution.evolution import Start
from shine.search.evolution.observers import NOBODY, Observers
from shine.search.evolution.run_state import State
from shine.search.evolution.scoring import Scoring
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.finishing.end import Finish
from shine.search.finishing.kept_rows import Split, check_validation
from shine.search.kinds.template.search import template_search
from shine.search.models.choice import choose
from shine.search.models.front import Result
from shine.search.models.given_units import report_in_given_units, tell_best, teller
from shine.search.models.model import Model
from shine.search.problem.all_rows_time import planned, steps_of, with_affordable_rows
from shine.search.problem.budget import FEWER_PASSES, TimeBudget
from shine.search.problem.evaluation import evaluator_for
from shine.search.problem.given_names import in_formulas
from shine.search.problem.noise import check_noise, resumed_noise
from shine.search.problem.noise_choice import HURRIED_WORK, PROBING_WORK, with_noise
from shine.search.problem.noise_estimate import estimated_noise
from shine.search.problem.outliers import rows_of_seeding, without_gross
from shine.search.problem.preparation import Task, constraint_compiler, prepared, seeded
from shine.search.problem.settings import SearchSettings
from shine.search.problem.sharing import shared
from shine.search.problem.yardsticks import description_length, good_enough
from shine.search.watching.visited import view_of

PROBE, RENEWING = 1, 3
"""Numbers of the random generators that examine the noise and renew samples, beside that of the search; 2 is the one
that keeps rows back."""

LASTING = 50
"""Generations that a sample of streamed rows lasts: renewing it costs about as much as one of them."""


@np.errstate(all="ignore")
def search(
    dataset: Dataset,
    settings: SearchSettings,
    observers: Observers = NOBODY,
    earlier: Sequence[Model] = (),
) -> Result:
    """Evolve formulas that explain a data set.

    Parameters
    ----------
    dataset : Dataset
    settings : SearchSettings
    observers : Observers
    earlier : sequence of Model
        The front of an earlier part of the run: it competes with what the search finds.

    Returns
    -------
    Result
        Ctrl-C ends the run early. It then returns what was found so far and skips the slow final fit of all constants.

    Raises
    ------
    DataError, UnsupportedSyntaxError, GraphImportError, ValueError
        If the data, a formula, a graph or a setting is invalid.
    """
    if settings.fitness.evidence is not None:
        dataset = replace(dataset, worth=settings.fitness.evidence)
    if settings.template is not None:
        return template_search(dataset, settings, observers, earlier)
    observers = observers.begun()
    state, pool = observers.state, observers.pool
    original = dataset
    settings, loss, whole = in_formulas(settings, dataset), loss_for(settings.fitness.loss, dataset), dataset.whole
    dataset = data_for_loss(loss, dataset, settings.fitness.noise)
    budget = TimeBudget(settings.stop.seconds, clock=observers.clock, began=observers.began)
    evolving, fitness = settings.evolution, settings.fitness
    apart = shared(fitness, evolving, pool)
    alone = apart.threads or 1
    scaled = fitness.linear_scaling

    check_noise(fitness.noise)
    check_validation(fitness.validation, fitness.validation_fraction)
    task = prepared(dataset, settings, linear_scaling=scaled, scale_target=loss.name in LOSSES)
    if whole is not None and task.scaling:
        raise DataError("columns with numbers beyond 3e38, or below 3e-39 alone, are not streamed; scale them")
    threads = fitness.threads or processors()
    work = steps_of(task.primitives, loss, threads)
    budget = planned(budget, task.dataset, work)
    if whole is not None:
        everywhere = planned(budget, whole, work, FEWER_PASSES)
        budget, whole = (everywhere, whole) if everywhere.affordable() == 1 else (budget, None)
    budget, task, dataset = with_affordable_rows(budget, task, dataset)
    rows = without_gross(task.dataset, loss)
    given = None if rows is task.dataset else dataset
    split = Split.of(rows, fitness.validation, fitness.validation_fraction, settings.seed)
    rng = np.random.default_rng(settings.seed)
    # A resumed search goes on with the model that it began with, however long the examination may take now.
    model = fitness.noise if state is None else resumed_noise(state.noise, fitness.noise)
    learned = replace(task, dataset=split.learned)
    task, noise, interrupted = _with_noise(learned, settings, loss, model, threads, budget.left())
    sample = task.dataset.sampled(evolving.rows, rng)
    rules = constraint_compiler(settings.constraints, sample, alone)
    fitting = sample.sampled(evolving.fitting_rows, rng)

    floor = estimated_noise(sample, noise) if loss.name == "mse" else None

    def scoring_on(number: int) -> Scoring:
        """How individuals are scored on a sample of the rows; the first is `sample`."""
        seen, fitted_on = sample, fitting
        if number:
            drawing = np.random.default_rng((settings.seed, RENEWING, number))
            seen = task.dataset.sampled(evolving.rows, drawing)
            fitted_on = seen.sampled(evolving.fitting_rows, drawing)
        linearizer = MachineLinearizer(fitted_on, loss, alone)
        return Scoring(
            _evaluator(seen, task, replace(settings, fitness=apart), loss, rules),
            fitter(linearizer, evolving.constant_steps, scaled=scaled) if evolving.constant_steps else None,
            partial(sampled_errors, seen, scaled, evolving.lexicase_rows),
            replace(description_length(seen, loss), noise=math.inf if floor is None else floor.loss),
        )

    stop = _stop(task, settings, loss, budget, interrupted)
    if observers.visitor is not None:
        choose_now = partial(choose, enough=stop.loss, description=description_length(sample, loss))
        observers.visitor.enter(
            view_of(original, task, settings, enough=stop.loss, degree=loss.degree, choose=choose_now)
        )
    told = report_in_given_units(observers.report, task, loss.degree)
    kept = replace(observers, report=told, save=lambda state: observers.save(replace(state, noise=noise)))
    outcome = renewal.evolve(
        scoring_on,
        _generations_of_a_sample(evolving, sample, task.dataset, original.whole),
        Start(
            task.primitives,
            task.guesses,
            partial(
                seeded,
                *rows_of_seeding(sample, loss, noise),
                task.primitives,
                evolving,
                scaled,
                threads,
                pool=pool,
                found=teller(task),
            ),
        ),
        evolving,
        stop,
        rng,
        kept.with_visitor(),
    )
    if interrupted:
        outcome = replace(outcome, stopped_by="interrupted")
    before = tuple(model.tree for model in earlier)
    with stage("refining the best formulas"):
        tell_best(outcome, task, loss.degree)
        result = Finish(task, split, settings, loss, noise, rules, threads, budget, given, whole, before).result(
            outcome
        )
    return result if whole is not None else result.by_sample(dataset.n_rows, (original.whole or original).n_rows)


def _generations_of_a_sample(evolving: EvolutionSettings, sample: Dataset, rows: Dataset, whole: Whole | None) -> int:
    """Generations after which the evolution sees another sample; 0 for never."""
    if sample is rows:
        return 0
    return (LASTING if whole is not None else 0) if evolving.renewal is None else evolving.renewal


def _with_noise(
    task: Task, settings: SearchSettings, loss: Loss, model: str, threads: int, seconds: float
) -> tuple[Task, str, bool]:
    """The task with the weights of its noise, the model of the noise, and whether the user interrupted its choice."""
    # A generator of its own: the search is the same whether the noise was examined or not.
    probing = np.random.default_rng((settings.seed, PROBE))
    stop = settings.stop
    hurried = not settings.evolution.seeding or stop.generations == 0
    if not takes_noise(loss):
        return task, "absolute", False
    work = HURRIED_WORK if hurried else math.inf if stop.generations is None else PROBING_WORK
    try:
        rows, noise = with_noise(task.dataset, model, task.primitives, probing, threads, seconds, loss, work)
    except KeyboardInterrupt:
        return task, "absolute", True
    return replace(task, dataset=rows), noise, False


def _stop(task: Task, settings: SearchSettings, loss: Loss, budget: TimeBudget, interrupted: bool) -> StopSettings:
    """When the evolution ends."""
    enough = good_enough(task.dataset, loss, settings.stop.loss, settings.fitness.dtype)
    stop = replace(settings.stop, loss=enough, seconds=budget.for_evolution())
    # After an interrupt: the first population, without seeding.
    return replace(stop, generations=0) if interrupted else stop


def _evaluator(
    sample: Dataset,
    task: Task,
    settings: SearchSettings,
    loss: Loss,
    rules: Callable[..., CompiledConstraints] | None,
) -> PopulationEvaluator:
    """The evaluator of the individuals; it charges for broken constraints if there are any constraints."""
    plain = evaluator_for(sample, settings.fitness, loss, settings.evolution.fitting_rows)
    if rules is None:
        return plain
    return ConstrainedEvaluator(plain, rules(task.primitives, "implied" if settings.fitness.linear_scaling else "none"))
