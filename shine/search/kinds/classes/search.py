"""The search for formulas of the odds of a class: as `shine.search.run.search`, with log-loss instead of errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from shine.base.errors import DataError
from shine.base.parallel import Pool
from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_tier import sampled_errors
from shine.lang.forms.names import value_text
from shine.search.constraints.compiled import ConstrainedEvaluator
from shine.search.description.lengths import DescriptionLength
from shine.search.evolution import evolution
from shine.search.evolution.constants import fitter
from shine.search.evolution.evolution import Start
from shine.search.evolution.observers import NOBODY, Observers
from shine.search.evolution.scoring import Scoring
from shine.search.finishing.supported_digits import by_odds, with_supported_digits
from shine.search.kinds.classes.classes import Classes
from shine.search.kinds.classes.lines import LOG_LOSS, OddsEvaluator
from shine.search.kinds.classes.refinement import OddsRefinement
from shine.search.models.choice import shortest
from shine.search.models.front import Front, Result, pareto_front
from shine.search.models.given_units import (
    basis_in_given_units,
    front_in_given_units,
    model_in_given_units,
    report_in_given_units,
)
from shine.search.problem.all_rows_time import planned, steps_of, with_affordable_rows
from shine.search.problem.budget import TimeBudget
from shine.search.problem.given_names import in_formulas
from shine.search.problem.preparation import constraint_compiler, prepared, seeded
from shine.search.problem.settings import SearchSettings
from shine.search.problem.sharing import shared
from shine.search.watching.visited import view_of

LINE_ROWS = 2000
"""Rows that the slope and the intercept of individuals are fitted on."""

DEGREE = 0
"""Power of the target's unit in the unit of log-loss."""


@np.errstate(all="ignore")
def search_odds(
    dataset: Dataset,
    settings: SearchSettings,
    observers: Observers = NOBODY,
) -> Result:
    """Evolve formulas for the logarithm of the odds that a row belongs to a class.

    Parameters
    ----------
    dataset : Dataset
        The target is 1 for rows of the class and 0 for others; both must occur.
    settings : SearchSettings
        Only ``fitness.dtype`` and ``fitness.threads`` matter among the fitness settings: the search minimizes log-loss,
        always with a slope and an intercept. Constraints hold for the logarithm of the odds. The search ends when a
        formula has less than the share ``stop.loss`` of the best constant's loss, not counting the loss that smoothing
        leaves to every formula.
    observers : Observers

    Returns
    -------
    Result
        The loss of each model is the mean log-loss in nats, and its r2 the share of the constant's log-loss that it
        removes (McFadden 1974). The recommended model has the shortest description (see `shine.search.models.choice`).

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
    settings, whole = in_formulas(settings, dataset), dataset
    observers = observers.begun()
    budget = TimeBudget(settings.stop.seconds, clock=observers.clock, began=observers.began)
    evolving, dtype = settings.evolution, settings.fitness.dtype
    if dtype not in ("float64", "float32"):
        raise ValueError(f"unknown dtype {value_text(dtype)}; use one of float64, float32")
    threads = settings.fitness.threads or processors()

    task = prepared(dataset, settings, linear_scaling=True, scale_target=False)
    budget = planned(budget, task.dataset, steps_of(task.primitives, LOG_LOSS, threads))
    budget, task, dataset = with_affordable_rows(budget, task, dataset)
    if not 0 < task.dataset.target_mean < 1:
        raise DataError("the weights of one class vanish beside those of the other; give both classes larger weights")
    rng = np.random.default_rng(settings.seed)
    sample = task.dataset.sampled(evolving.rows, rng)
    classes = Classes.of(sample)
    rows = replace(sample, target=classes.smoothed(sample.target))
    alone = shared(settings.fitness, evolving, observers.pool).threads or 1
    odds = OddsEvaluator(rows, MachineLinearizer(rows.sampled(LINE_ROWS, rng), LOG_LOSS, alone), dtype, alone)
    rules = constraint_compiler(settings.constraints, rows, alone)
    linearizer = MachineLinearizer(rows.sampled(evolving.fitting_rows, rng), LOG_LOSS, alone)

    stop = replace(settings.stop, loss=classes.enough(settings.stop.loss), seconds=budget.for_evolution())
    description = _description_length(sample)
    if observers.visitor is not None:
        choose_now = partial(shortest, description=description)
        seen = view_of(whole, task, settings, enough=stop.loss, degree=DEGREE, choose=choose_now, fits=False)
        observers.visitor.enter(seen)
    told = replace(observers, report=report_in_given_units(observers.report, task, DEGREE))
    outcome = evolution.evolve(
        Scoring(
            odds if rules is None else ConstrainedEvaluator(odds, rules(task.primitives, "implied")),
            fitter(linearizer, evolving.constant_steps, scaled=True) if evolving.constant_steps else None,
            partial(sampled_errors, sample, True, evolving.lexicase_rows),
            description,
        ),
        Start(
            task.primitives,
            task.guesses,
            partial(seeded, rows, "absolute", task.primitives, evolving, True, threads),
        ),
        evolving,
        stop,
        rng,
        told.with_visitor(),
    )

    refinement = OddsRefinement(
        task.dataset,
        Classes.of(task.dataset),
        evolving.complexity,
        evolving.max_size,
        threads,
        rules,
        budget.is_closing,
    )
    stopped_by = outcome.stopped_by
    try:
        models = refinement.models(outcome, polish=stopped_by != "interrupted")
    except KeyboardInterrupt:
        stopped_by, models = "interrupted", refinement.models(outcome, polish=False)
    front = pareto_front(models, 0.0)
    if not front:
        raise DataError("found no formula of finite log-loss that the constraints allow; search longer, or relax them")
    front = with_supported_digits(front, task.dataset, by_odds)
    front = front_in_given_units(front, task, 0.0, evolving.max_size)

    basis = basis_in_given_units(task.dataset, task, LOG_LOSS, "absolute")
    models = [replace(model_in_given_units(model, task, DEGREE), basis=basis) for model in front]
    choice = shortest(models, _description_length(task.dataset))
    found = outcome.generations, outcome.evaluations, budget.spent(), settings.seed, stopped_by
    return Result(Front(tuple(models), choice.index, choice.reason), choice.index, *found)


def _description_length(sample: Dataset) -> DescriptionLength:
    """The length of the sample's description by formulas with given log-losses, in nats per row."""
    rows = sample.effective_rows
    return DescriptionLength(rows, lambda losses, constants: rows * losses)
