"""A whole search: data in, the Pareto front of models out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shine.data.beside import Beside, taken_apart, with_columns, without_roles
from shine.data.dataset import Dataset, Whole
from shine.data.headings import frame_headings, names_of_headings
from shine.errors import DataError
from shine.evaluators.gradients import MachineLinearizer
from shine.evaluators.machine_tier import sampled_errors
from shine.evaluators.workers import processors
from shine.fitness.losses import LOSSES, Loss
from shine.fitness.protocols import PopulationEvaluator
from shine.frontends.guesses import Guess
from shine.gp import renewal
from shine.gp.constants import fitter
from shine.gp.constraints.compiled import CompiledConstraints, ConstrainedEvaluator
from shine.gp.constraints.constraints import Constraints
from shine.gp.evolution import Progress
from shine.gp.renewal import View
from shine.gp.run_state import State
from shine.gp.settings import EvolutionSettings, StopSettings
from shine.lang.vocabulary import PrimitiveSource
from shine.live.notebook import live_page
from shine.live.visit import Visitor, watched
from shine.losses import LossSource, loss_for
from shine.parallel import ExecutorSource, Pool, opened
from shine.search.all_rows_time import affordable, planned
from shine.search.budget import TimeBudget
from shine.search.choice import choose
from shine.search.defaults import DEFAULT_PRIMITIVES
from shine.search.evaluation import evaluator_for
from shine.search.finishing import Finish
from shine.search.following import followed
from shine.search.front import Result
from shine.search.given_names import in_formulas
from shine.search.given_units import report_in_given_units, tell_best, teller
from shine.search.kept_rows import Split, check_validation
from shine.search.keywords import settings_from
from shine.search.losses import read_by, rows_of_seeding, takes_noise
from shine.search.model import Model
from shine.search.noise import check_noise, resumed_noise
from shine.search.noise_choice import HURRIED_WORK, PROBING_WORK, with_noise
from shine.search.noise_estimate import estimated_noise
from shine.search.objective import Function
from shine.search.objective_search import searched_with
from shine.search.opened_data import is_opened, opened_dataset, opened_once
from shine.search.outliers import without_gross
from shine.search.preparation import Task, constraint_compiler, prepared, seeded
from shine.search.settings import SearchSettings
from shine.search.sharing import shared
from shine.search.template_data import headings_by_name, with_template
from shine.search.template_search import template_search
from shine.search.visited import place_of
from shine.search.yardsticks import description_length, good_enough
from shine.stages import stage
from shine.templates.headings import with_names
from shine.templates.reading import TemplateSource

PROBE, RENEWING = 1, 3
"""Numbers of the random generators that examine the noise and renew samples, beside that of the search; 2 is the one
that keeps rows back."""

LASTING = 50
"""Generations that a sample of streamed rows lasts: renewing it costs about as much as one of them."""


@np.errstate(all="ignore")
def search(
    dataset: Dataset,
    settings: SearchSettings,
    *,
    report: Callable[[Progress], object] | None = None,
    state: State | None = None,
    save: Callable[[State], None] | None = None,
    visitor: Visitor | None = None,
    pool: Pool | None = None,
    earlier: Sequence[Model] = (),
    began: float | None = None,
) -> Result:
    """Evolve formulas that explain a data set.

    Parameters
    ----------
    dataset : Dataset
    settings : SearchSettings
    report : callable, optional
        Receives the `Progress` of every generation; it ends the run by returning True.
    state : State, optional
        Go on from there: the same data and settings give the same front as a search that never stopped.
    save : callable, optional
        Receives the `State` after every generation; see `shine.gp.evolution.evolve`.
    visitor : Visitor, optional
        Watches the search, and may put formulas into it, hold it up, and end it.
    pool : Pool, optional
        Workers that share the islands and the seeding (see `shine.parallel.opened`). They change no bit of the front.
    earlier : sequence of Model
        The front of an earlier part of the run: it competes with what the search finds.
    began : float, optional
        When the user's call began, on `time.monotonic`: reading the data is part of the user's seconds. By default now.

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
        return template_search(
            dataset, settings, report=report, state=state, save=save, visitor=visitor, pool=pool,
            earlier=earlier, began=began,
        )  # fmt: skip
    original = dataset
    settings, loss, whole = in_formulas(settings, dataset), loss_for(settings.fitness.loss, dataset), dataset.whole
    dataset = read_by(loss, dataset, settings.fitness.noise)
    clock = time.monotonic if visitor is None else visitor.clock
    budget = TimeBudget(settings.stop.seconds, 0.0 if state is None else state.seconds, clock, began)
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
    budget = planned(budget, task, threads)
    if whole is None:
        budget, task, dataset = affordable(budget, task, dataset)
    rows = without_gross(task.dataset, loss)
    given = None if rows is task.dataset else dataset
    split = Split.of(rows, fitness.validation, fitness.validation_fraction, settings.seed)
    rng = np.random.default_rng(settings.seed)
    # A resumed search goes on with the model that it began with, however long the examination may take now.
    model = fitness.noise if state is None else resumed_noise(state.noise, fitness.noise)
    task, noise, interrupted = _with_noise(replace(task, dataset=split.learned), settings, loss, model, threads)
    sample = task.dataset.sampled(evolving.rows, rng)
    rules = constraint_compiler(settings.constraints, sample, alone)
    fitting = sample.sampled(evolving.fitting_rows, rng)

    floor = estimated_noise(sample, noise) if loss.name == "mse" else None

    def view(number: int) -> View:
        """What the evolution sees of a sample of the rows; the first is `sample`."""
        seen, fitted_on = sample, fitting
        if number:
            drawing = np.random.default_rng((settings.seed, RENEWING, number))
            seen = task.dataset.sampled(evolving.rows, drawing)
            fitted_on = seen.sampled(evolving.fitting_rows, drawing)
        linearizer = MachineLinearizer(fitted_on, loss, alone)
        return View(
            _evaluator(seen, task, replace(settings, fitness=apart), loss, rules),
            fitter(linearizer, evolving.constant_steps, scaled=scaled) if evolving.constant_steps else None,
            partial(sampled_errors, seen, scaled, evolving.lexicase_rows),
            replace(description_length(seen, loss), noise=math.inf if floor is None else floor.loss),
        )

    def save_with_noise(state: State) -> None:
        assert save is not None
        save(replace(state, noise=noise))

    stop = _stop(task, settings, loss, budget, interrupted)
    if state is not None:
        state = replace(state, seconds=budget.spent())
    if visitor is not None:
        choose_now = partial(choose, enough=stop.loss, description=description_length(sample, loss))
        visitor.enter(place_of(original, task, settings, enough=stop.loss, degree=loss.degree, choose=choose_now))
    own = None if report is None else report_in_given_units(report, task, loss.degree)
    reported, saved, arrivals = watched(visitor, own, None if save is None else save_with_noise)
    outcome = renewal.evolve(
        view,
        _generations_of_a_sample(evolving, sample, task.dataset, whole),
        task.primitives,
        evolving,
        stop,
        rng,
        initial=task.guesses,
        seeding=partial(
            seeded,
            *rows_of_seeding(sample, loss, noise),
            task.primitives,
            evolving,
            scaled,
            threads,
            pool=pool,
            found=teller(task),
        ),
        clock=clock,
        report=reported,
        state=state,
        save=saved,
        arrivals=arrivals,
        pool=pool,
        spent=budget.spent(),
    )
    if interrupted:
        outcome = replace(outcome, stopped_by="interrupted")
    before = tuple(model.tree for model in earlier)
    with stage("refining the best formulas"):
        tell_best(outcome, task, loss.degree)
        result = Finish(task, split, settings, loss, noise, rules, threads, budget, given, whole, before).result(
            outcome
        )
    return (
        result
        if dataset.n_rows == original.n_rows
        else result.noting(f"by a sample of {dataset.n_rows} of {original.n_rows} rows; more seconds allow all")
    )


def _generations_of_a_sample(evolving: EvolutionSettings, sample: Dataset, rows: Dataset, whole: Whole | None) -> int:
    """Generations after which the evolution sees another sample; 0 for never."""
    if sample is rows:
        return 0
    return (LASTING if whole is not None else 0) if evolving.renewal is None else evolving.renewal


def _with_noise(task: Task, settings: SearchSettings, loss: Loss, model: str, threads: int) -> tuple[Task, str, bool]:
    """The task with the weights of its noise, the model of the noise, and whether the user interrupted its choice."""
    # A generator of its own: the search is the same whether the noise was examined or not.
    probing = np.random.default_rng((settings.seed, PROBE))
    stop = settings.stop
    hurried = not settings.evolution.seeding or stop.generations == 0
    if not takes_noise(loss):
        return task, "absolute", False
    work = HURRIED_WORK if hurried else math.inf if stop.generations is None else PROBING_WORK
    try:
        rows, noise = with_noise(task.dataset, model, task.primitives, probing, threads, stop.seconds, loss, work)
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


def evolve(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    features: Sequence[str] | None = None,
    primitives: Sequence[PrimitiveSource] = DEFAULT_PRIMITIVES,
    loss: LossSource = "mse",
    noise: str = "auto",
    sigma: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    objective: Function | None = None,
    beside: Beside | None = None,
    validation: str | None = None,
    validation_fraction: float = 0.25,
    evidence: float | None = None,
    linear_scaling: bool = True,
    dtype: str = "float64",
    tier: str = "auto",
    threads: int | None = None,
    generations: int | None = None,
    seconds: float | None = 60.0,
    stagnation: int | None = 300,
    stop_loss: float = 1e-20,
    constraints: Constraints | Mapping[str, Any] | None = None,
    seed: int = 0,
    guesses: Sequence[Guess] = (),
    template: TemplateSource | None = None,
    report: Callable[[Progress], object] | None = None,
    live: bool = False,
    workers: int | None = None,
    executor: ExecutorSource = None,
    **settings: Any,
) -> Result:
    """Find short formulas for `y` in the columns of `X`.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features), or data of any size
        A path, a `pyarrow.dataset.Dataset`, a LazyFrame of Polars, a relation of DuckDB, or what
        `shine.data.open_dataset` returns. Then `y`, `sample_weight`, `sigma` and `groups` are headings of columns, and
        `features` and `beside` lists of them. They may be so for a data frame, too.
    y : array-like of shape (n_rows,), or str
    sample_weight : array-like of shape (n_rows,), optional
    features : sequence of str, optional
        Headings of the columns; by default those of a data frame, or ``x0, x1, ...``. They are the names in formulas if
        they are identifiers; others are turned into one: ``unit price`` is ``unit_price``.
    primitives : sequence of str, function or Primitive
        Functions that formulas are made of: names of Shine's primitives, plain Python functions in the restricted
        language, or functions of other languages, read by `shine.primitive_from_llvm`.
    loss : str or function
        What is minimized: ``"mse"``, ``"rmse"``, ``"mae"``, ``"nmse"``, ``"r2"``; one of `shine.losses`, such as
        ``"poisson"`` or ``"quantile(0.9)"``; or a function of `prediction`, `target`, and columns beside the data.
    noise : {"auto", "absolute", "relative", "log", "counts"}
        How the noise of the target grows: not at all, with its values, with their logarithms, or with their roots.
        "auto" lets evidence decide if the target has one sign and is wide (5 times), or has whole numbers from 0 (10
        times); otherwise it is "absolute". Losses are weighted accordingly.
    sigma : array-like of shape (n_rows,), optional
        Standard deviation of the noise in each row, if it is known; it replaces `noise`.
    groups : array-like of shape (n_rows,), optional
        Label of the group of each row, of rows that depend on one another: one patient, one day.
    beside : mapping of str to array-like of shape (n_rows,), or sequence of str, optional
        Columns that are no features, and that the loss reads: arrays by name, or headings of columns of the data frame.
    objective : callable, optional
        A Python function that judges whole formulas instead of the loss: ``objective(predictions)`` gets the
        predictions of many formulas, shape (n_formulas, n_rows), and returns their losses, shape (n_formulas,). It is
        slow; see `shine.search.objective.Objective`. The loss fits constants and lines.
    validation : {"random", "groups", "time"}, optional
        Rows that the search never sees, and whose errors choose the formula; its constants are then fitted to all rows.
        At random, whole groups, or the last rows; by default whole groups if there are groups, else none: then the
        shortest description of all rows decides.
    validation_fraction : float
        Least share of the rows to keep back.
    evidence : float, optional
        Independent rows that the data are worth, if their rows repeat one another: samples of a smooth function, of a
        network, of a slow process. It is the number of rows for all statistics; by default, all are independent.
    linear_scaling : bool
        Whether each formula is judged with its best slope and intercept, which become part of the result.
    dtype : {"float64", "float32"}
    tier : {"auto", "machine", "native", "reference"}
        How individuals are evaluated.
    threads : int, optional
        All processors by default; their number does not change the result.
    generations, seconds, stagnation, stop_loss
        When to stop: whichever comes first; None sets no limit. `stagnation` is the number of generations without a
        shorter description of the data (see `shine.gp.settings.StopSettings`). Without `seconds`, the front is the
        same on any machine.
    constraints : mapping or Constraints, optional
        Constraints on formulas, by the fields of `shine.gp.constraints.constraints.Constraints`: limits, nesting,
        required and forbidden features, monotonicity, units.
    seed : int
        Seed of the random generator: the same seed gives the same front.
    guesses : sequence of formulas and graphs
        Guesses, formulas to start from: text, functions, trees, SymPy expressions; graphs as `shine.load_graph` reads
        them, or paths of graph files, if their inputs are named like features; otherwise mappings such as
        ``{"graph": "model.pb", "features": {"input": "a"}}``, with ``output`` if the graph has several.
    template : Template, str, function or mapping, optional
        The known part of the law, as `shine.template` takes it: the search finds its unknown functions and fits its
        parameters. Linear scaling is then off: the template says the form. Its column of groups may hold texts. With
        several outputs, `y` has shape (n_rows, n_outputs).
    report : callable, optional
        Receives the `Progress` of every generation; it ends the run by returning True. If it has methods
        ``begin(settings)`` and ``end(result)``, they are called as well (see `shine.callbacks`).
    live : bool
        Whether to show the search on a page while it runs: below the cell of a notebook, else at an address that is
        printed. One can pause it there, end it, and put formulas in.
    workers : int, optional
        Processes on this machine that share the islands and the seeding; see docs/parallel.md. Their number does not
        change the result.
    executor : Executor, dask.distributed.Client, str or int, optional
        In place of `workers`: any executor of PEP 3148, a Dask client, or the address of a Dask scheduler.
    **settings
        Fields of `shine.gp.settings.EvolutionSettings`: population, max_size, max_depth, ...

    Returns
    -------
    Result
        ``best`` is the recommended formula, ``front`` the Pareto front, ``predict(X)`` applies the best.

    Raises
    ------
    DataError, UnsupportedSyntaxError, GraphImportError, ValueError
        If the data, a formula, a graph or a setting is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(1, 5, (200, 2))
    >>> evolve(X, X[:, 0] * X[:, 1], primitives=["add", "mul"], features=["a", "b"]).best.expression
    'a*b'
    """
    began = time.monotonic()
    if template is not None:
        X = opened_once(X) if is_opened(X, y) else X
        template = with_names(template, headings_by_name(X, features))
    every = settings_from(
        primitives=primitives,
        loss=loss,
        noise=noise,
        validation=validation,
        validation_fraction=validation_fraction,
        evidence=evidence,
        linear_scaling=linear_scaling,
        dtype=dtype,
        tier=tier,
        threads=threads,
        generations=generations,
        seconds=seconds,
        stagnation=stagnation,
        stop_loss=stop_loss,
        constraints=constraints,
        seed=seed,
        guesses=guesses,
        template=template,
        **settings,
    )
    searched = partial(
        _searched,
        began=began,
        every=every,
        objective=objective,
        report=report,
        live=live,
        workers=workers,
        executor=executor,
    )
    if is_opened(X, y):
        loaded = opened_dataset(X, y, features, sample_weight, sigma, groups, beside, every.template)
        return searched(loaded.dataset).with_preparation(loaded.preparation)
    X, given = without_roles(X, {"y": y, "sample_weight": sample_weight, "sigma": sigma, "groups": groups})
    X, columns = taken_apart(X, beside)
    if isinstance(y, str) and features is not None:
        X = with_columns(X, features)
    y, sample_weight, sigma, groups = given.values()
    headings = frame_headings(X) if features is None else features
    names = None if headings is None else names_of_headings(headings)
    if every.template is not None:
        dataset = with_template(every.template, X, y, sample_weight, names, headings, sigma, groups, beside=columns)
    else:
        dataset = Dataset.from_arrays(X, y, sample_weight, names, sigma, groups, headings, columns)
    return searched(dataset)


def _searched(
    dataset: Dataset,
    every: SearchSettings,
    *,
    began: float,
    objective: Function | None,
    report: Callable[[Progress], object] | None,
    live: bool,
    workers: int | None,
    executor: ExecutorSource,
) -> Result:
    """The result of a search that may be followed, watched and shared (see `evolve`)."""
    sharing = workers is not None or executor is not None
    judged = None if objective is None else searched_with(objective, every.template is not None, sharing)
    with live_page(live, "Symbolic regression", "y") as page, opened(executor, workers=workers) as pool:
        visitor = None if page is None else page.watch()
        searching = partial(judged or search, pool=pool, began=began)
        result = followed(report, every, partial(searching, dataset, every, report=report, visitor=visitor))
        if page is not None:
            page.ended(result)
    return result
