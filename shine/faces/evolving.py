"""`shine.evolve`: a whole search as a function, from arrays, a data frame or a file to the Pareto front."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from shine.base.parallel import ExecutorSource, opened
from shine.data.columns.headings import LossColumns
from shine.data.datasets.dataset import Dataset
from shine.data.user_data import UserData
from shine.evaluate.losses import LossSource
from shine.faces.keywords import settings_from
from shine.faces.live.notebook import live_page
from shine.formats.read.guesses import Guess
from shine.lang.forms.names import value_text
from shine.lang.vocabulary import PrimitiveSource
from shine.search.constraints.constraints import Constraints
from shine.search.evolution.observers import Observers, Progress, ignore
from shine.search.kinds.objective import ObjectiveProblem
from shine.search.kinds.objective_function import Function, Objective
from shine.search.models.result import Result
from shine.search.problem import DEFAULT_PRIMITIVES
from shine.search.problem.settings import SearchSettings
from shine.search.problem.template_data import training_data
from shine.search.run import search
from shine.search.templates.reading import TemplateSource, with_names


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
    times: ArrayLike | None = None,
    objective: Function | None = None,
    loss_columns: LossColumns | None = None,
    validation: str | None = None,
    validation_fraction: float = 0.25,
    outliers: str = "auto",
    evidence: float | None = None,
    linear_scaling: bool = True,
    dtype: str = "float64",
    tier: str = "machine",
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
        `shine.data.open_dataset` returns. Then `y`, `sample_weight`, `sigma`, `groups` and `times` are headings of
        columns, and `features` and `loss_columns` lists of them. They may be so for a data frame, too.
    y : array-like of shape (n_rows,), or str
    sample_weight : array-like of shape (n_rows,), optional
        A whole weight counts like as many equal rows, in intervals, too.
    features : sequence of str, optional
        Headings of the columns; by default those of a data frame, or ``x0, x1, ...``. They are the names in formulas if
        they are identifiers; others are turned into one: ``unit price`` is ``unit_price``.
    primitives : sequence of str, function or Primitive
        Functions in formulas: names of Shine's primitives, Python functions in the restricted language, or functions
        of other languages, read by `shine.primitive_from_llvm`.
    loss : str or function
        The loss to minimize: ``"mse"``, ``"rmse"``, ``"mae"``, ``"nmse"``, ``"r2"``; one of `shine.losses`, such as
        ``"poisson"`` or ``"quantile(0.9)"``; or a function of `prediction`, `target`, and columns beside the data.
    noise : {"auto", "absolute", "relative", "log", "counts"}
        Growth of the target's noise: none, with its values, with their logarithms, or with their roots.
        "auto" lets evidence decide if the target has one sign and is wide (5 times), or has whole numbers from 0 (10
        times); otherwise it is "absolute". Losses are weighted accordingly.
    sigma : array-like of shape (n_rows,), optional
        Standard deviation of the noise in each row, if it is known; it replaces `noise`.
    groups : array-like of shape (n_rows,), optional
        Group of each row, if rows depend on one another: a patient, a day.
    times : array-like of shape (n_rows,), optional
        When each row was read, numbers or dates, if rows do not stand in their order or their steps differ: errors of
        rows that follow one another may correlate, and `validation` may keep the last back.
    loss_columns : mapping of str to array-like of shape (n_rows,), or sequence of str, optional
        Columns for the loss, which are no features: arrays by name, or headings of columns of the data frame.
    objective : callable, optional
        A Python function that judges whole formulas instead of the loss: ``objective(predictions)`` gets the
        predictions of many formulas, shape (n_formulas, n_rows), and returns their losses, shape (n_formulas,). It is
        slow; see `shine.search.kinds.objective_function.Objective`. The loss fits constants and lines.
    validation : {"random", "groups", "time"}, optional
        Rows to keep back from the search, to choose the formula by; its constants are then fitted to all rows. At
        random, whole groups, or the last rows; by default whole groups if there are groups, else none: then the
        shortest description of all rows decides.
    validation_fraction : float
        Least share of the rows to keep back.
    outliers : {"auto", "keep"}
        With "auto", rows whose target is far from that of all neighbours take no part, and `Result.front.reason` names
        them; with "keep", all rows count.
    evidence : float, optional
        Number of independent rows that the data are worth, if rows repeat one another: samples of a smooth function, of
        a network, of a slow process. All statistics use it; by default, all rows are independent, unless errors of
        successive ones correlate.
    linear_scaling : bool
        Whether each formula is judged with its best slope and intercept, which become part of the result.
    dtype : {"float64", "float32"}
    tier : {"machine", "native", "reference"}
        The evaluator of individuals; the fastest by default (see `shine.Evaluator`).
    threads : int, optional
        All processors by default; their number does not change the result.
    generations, seconds, stagnation, stop_loss
        Limits, the first of which ends the search; None sets none. `stagnation` is the number of generations without a
        shorter description of the data; None begins anew instead (see `shine.search.evolution.settings.StopSettings`).
        Without `seconds`, the front is the same on any machine.
    constraints : mapping or Constraints, optional
        Constraints on formulas, by the fields of `shine.search.constraints.constraints.Constraints`: limits, nesting,
        required and forbidden features, monotonicity, units.
    seed : int
        Seed of the random generator: the same seed gives the same front.
    guesses : sequence of formulas and graphs
        Formulas to start from, as `shine.jit` takes them, of the features; graphs read by `shine.load_graph` or paths
        of graph files, if their inputs are named like features; otherwise mappings such as
        ``{"graph": "model.pb", "features": {"input": "a"}}``, with ``output`` if the graph has several.
    template : Template, str, function or mapping, optional
        The known part of the law (see `shine.template`): the search finds its unknown functions and fits its
        parameters, without linear scaling. Its column of groups may hold texts. With several outputs, `y` has shape
        (n_rows, n_outputs).
    report : callable, optional
        Receives the `Progress` of every generation; it ends the run by returning True. If it has methods
        ``begin(settings)`` and ``end(result)``, they are called as well (see `shine.callbacks`).
    live : bool
        Whether to show the running search on a page, to pause it, end it, and put formulas in: below the cell of a
        notebook, else at a printed address.
    workers : int, optional
        Processes on this machine that share the islands and the seeding; see docs/parallel.md. Their number does not
        change the result, but if only `seconds` end the search: then each begins it anew, and the best of all stays.
    executor : Executor, dask.distributed.Client, str or int, optional
        In place of `workers`: any executor of PEP 3148, a Dask client, or the address of a Dask scheduler.
    **settings
        Fields of `shine.search.evolution.settings.EvolutionSettings`: population, max_size, max_depth, ...

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
    data = UserData(X, y, features, sample_weight, sigma, groups, times, loss_columns)
    if template is not None:
        data = data.opened()
        template = with_names(template, data.headings_by_name())
    every = settings_from(
        primitives=primitives,
        loss=loss,
        noise=noise,
        validation=validation,
        validation_fraction=validation_fraction,
        outliers=outliers,
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
    loaded = training_data(data, every.template)
    result = _searched(
        loaded.dataset,
        every,
        began=began,
        objective=objective,
        report=report,
        live=live,
        workers=workers,
        executor=executor,
    )
    return result.with_preparation(loaded.preparation)


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
    if report is not None and not callable(report):
        raise TypeError(f"report must be a function of the progress; it is {value_text(report)}")
    kind = None if objective is None else partial(ObjectiveProblem, Objective(objective))
    target = every.constraints.with_unit("y")
    with live_page(live, "Symbolic regression", target) as page, opened(executor, workers=workers) as pool:
        visitor = None if page is None else page.watch()
        observers = Observers(ignore if report is None else report, visitor, pool=pool, began=began)
        result = search(dataset, every, observers, kind=kind)
        if page is not None:
            units = dict(every.constraints.units)
            page.ended(result, {"constraints": {"units": units}} if units else None)
    return result
