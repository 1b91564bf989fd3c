"""A whole run from Python: data in, the Pareto front of formulas out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from shine.data.dataset import Dataset, stable_sum
from shine.errors import DataError
from shine.evaluators.evaluator import evaluator_of
from shine.evaluators.gradients import MachineLinearizer
from shine.evaluators.machine_tier import MachineEvaluator
from shine.evaluators.monotonic import Monotonicity
from shine.evaluators.sampling import sampled_errors
from shine.evaluators.workers import processors
from shine.fitness.losses import loss_of
from shine.frontends.seeds import Seed, seed_tree
from shine.gp import evolution
from shine.gp.constants import fitter
from shine.gp.constraints.compiled import CompiledConstraints, ConstrainedEvaluator
from shine.gp.constraints.constraints import Constraints, check_constraints
from shine.gp.evolution import Outcome, Progress
from shine.gp.run_state import State
from shine.gp.seeding import Guesses, SeedingSettings, find_guesses
from shine.gp.settings import EvolutionSettings, StopSettings
from shine.lang.parse import PrimitiveSource, primitive_table
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet, select
from shine.search.model import Front, Model, Result, choose
from shine.search.refinement import (
    effective_rows,
    in_given_units,
    refined,
    rounding_loss,
    with_functions,
)
from shine.search.scaling import Scaling

Settings = TypeVar("Settings", EvolutionSettings, StopSettings, Constraints)

DEFAULT_PRIMITIVES = ("add", "sub", "mul", "div", "sqrt", "square", "exp", "log", "sin", "cos")
"""Functions a search draws from unless told otherwise."""


FINISHING = 0.1
"""Share of the seconds that is kept for fitting the constants of the front to convergence and making them simple."""

SEEDING_ROWS = 1000
"""Rows that formulas to start from are looked for in."""


@np.errstate(all="ignore")
def search(
    dataset: Dataset,
    primitives: Sequence[PrimitiveSource],
    settings: EvolutionSettings,
    stop: StopSettings,
    *,
    loss: str = "mse",
    linear_scaling: bool = True,
    dtype: str = "float64",
    tier: str = "auto",
    threads: int | None = None,
    constraints: Constraints | None = None,
    seed: int = 0,
    seeds: Sequence[Seed] = (),
    report: Callable[[Progress], object] | None = None,
    state: State | None = None,
    save: Callable[[State], None] | None = None,
) -> Result:
    """Evolve formulas that explain a data set.

    Parameters
    ----------
    dataset : Dataset
    primitives : sequence of str, function or Primitive
        Names of Shine's primitives, plain Python functions in the restricted language, or what
        `shine.primitive_from_llvm` makes.
    settings : EvolutionSettings
    stop : StopSettings
    loss, linear_scaling, dtype, tier, threads
        See `shine.Evaluator`.
    constraints : Constraints, optional
        What formulas must keep to.
    seed : int
        Of the random generator: the same seed gives the same front.
    seeds : sequence of formulas and graphs
        Join the first population; those that the constraints do not allow die out at once. What they can be given as
        says `shine.frontends.seeds.seed_tree`.
    report : callable, optional
        Receives the `Progress` of every generation; it ends the run by returning True.
    state : State, optional
        Go on from there: the same data and settings give the same front as a search that never stopped.
    save : callable, optional
        Receives the `State` after every generation; see `shine.gp.evolution.evolve`.

    Returns
    -------
    Result
        Interrupting the run (Ctrl-C) ends it early and returns what was found so far, without the time that fitting all
        constants to convergence takes.

    Raises
    ------
    DataError, UnsupportedSyntaxError, GraphImportError, ValueError
        If the data, a formula, a graph or a setting is unfit.
    """
    entered = time.monotonic()
    began = entered - (0.0 if state is None else state.seconds)
    table, names = primitive_table(primitives)
    functions, features = select(table, names), dataset.features
    trees = [seed_tree(source, features, table, names) for source in seeds]
    constraints = constraints or Constraints()
    check_constraints(constraints, functions, features, linear_scaling)
    # What no formula may have is not there to be drawn.
    given = dataset.without(constraints.forbidden)
    scaling = Scaling.of(given)
    dataset = scaling.applied(given)
    primitive_set = PrimitiveSet(functions, dataset.features)
    trees = [tree for tree in trees if not any(("name", name) in tree.tokens for name in constraints.forbidden)]
    trees = [scaling.entering(tree) for tree in trees]
    workers = threads or processors()
    rng = np.random.default_rng(seed)
    sample = dataset.sampled(settings.rows, rng)
    evaluator = evaluator_of(sample, loss, linear_scaling, dtype, tier, threads)
    rules = constraint_rules(constraints, sample, workers)
    if rules is not None:
        evaluator = ConstrainedEvaluator(evaluator, rules(primitive_set, "implied" if linear_scaling else "none"))
    linearizer = MachineLinearizer(sample.sampled(settings.fitting_rows, rng), loss, workers)
    enough = max(stop.loss * _constant_loss(dataset, loss), rounding_loss(dataset, loss, dtype))
    outcome = evolution.evolve(
        evaluator,
        primitive_set,
        settings,
        replace(stop, loss=enough, seconds=searching_seconds(stop, time.monotonic() - entered)),
        rng,
        fitter=fitter(linearizer, settings.constant_steps, scaled=linear_scaling) if settings.constant_steps else None,
        errors=partial(sampled_errors, sample, linear_scaling, settings.lexicase_rows),
        initial=Population.from_trees(trees, primitive_set) if trees else None,
        seeding=partial(guesses_of, sample, primitive_set, settings, linear_scaling, workers),
        clock=time.monotonic,
        report=evolution.ignore if report is None else scaling_undone(report, scaling, given, loss),
        state=state,
        save=evolution.forget if save is None else save,
    )
    final = None if rules is None else partial(rules, scaling="written" if linear_scaling else "none")
    finish = partial(
        refined,
        dataset=dataset,
        loss=loss,
        linear_scaling=linear_scaling,
        weights=settings.complexity,
        enough=enough,
        threads=workers,
        rules=final,
    )
    outcome, front = _finished(outcome, partial(finish, out_of_time=out_of_time(stop, began)))
    if not front and rules is not None:
        raise DataError(f"found no formula of finite {loss} that the constraints allow; search longer, or relax them")
    if not front:
        raise DataError(f"no formula has a finite {loss}, not even a constant; rescale the target")
    front = in_given_units(front, scaling, given, enough)
    chosen = choose(front, enough, effective_rows(dataset), loss_of(loss).log_likelihood)
    models = tuple(
        replace(
            model,
            tree=replace(model.tree, parameters=features),
            loss=scaling.loss(model.loss, loss_of(loss).degree),
        )
        for model in front
    )
    seconds = time.monotonic() - began
    reason = outcome.stopped_by
    return Result(Front(models, chosen), chosen, outcome.generations, outcome.evaluations, seconds, seed, reason)


def _finished(outcome: Outcome, finish: Callable[..., tuple[Model, ...]]) -> tuple[Outcome, tuple[Model, ...]]:
    """The front; when the user does not want to wait, without what takes time."""
    if outcome.stopped_by != "interrupted":
        try:
            return outcome, finish(outcome, polish=True)
        except KeyboardInterrupt:
            outcome = replace(outcome, stopped_by="interrupted")
    return outcome, finish(outcome, polish=False)


def scaling_undone(
    report: Callable[[Progress], object], scaling: Scaling, dataset: Dataset, loss: str
) -> Callable[[Progress], object]:
    """What receives the progress of a search over scaled data, and passes it on in the units of the data."""
    if not scaling:
        return report

    def passed_on(progress: Progress) -> object:
        front, scores, degree = progress.front, progress.scores, loss_of(loss).degree
        trees = [scaling.leaving(front.tree(index), dataset) for index in range(len(front))]
        if trees:
            front = Population.from_trees(trees, with_functions(front.primitives, ["mul"]))
        losses = np.array([scaling.loss(value, degree) for value in scores.losses.tolist()])
        return report(replace(progress, front=front, scores=replace(scores, losses=losses)))

    return passed_on


def searching_seconds(stop: StopSettings, spent: float) -> float | None:
    """Seconds of the evolution, so that finishing comes to its end in time too; None without a limit."""
    return None if stop.seconds is None else max((1 - FINISHING) * stop.seconds - spent, 1e-3)


def out_of_time(stop: StopSettings, began: float) -> Callable[[], bool]:
    """Whether the seconds of a search that began at some time of the monotonic clock are over."""
    return lambda: stop.seconds is not None and time.monotonic() >= began + stop.seconds


def constraint_rules(
    constraints: Constraints, sample: Dataset, threads: int
) -> Callable[..., CompiledConstraints] | None:
    """What compiles constraints for a primitive set and a kind of scaling; None where there are no constraints."""
    if not constraints:
        return None
    wrong_shares = None
    if constraints.monotonic:
        # Its own generator: pairs of rows are measured with alike, however long the search has run.
        wrong_shares = Monotonicity(sample, constraints.monotonic, threads, np.random.default_rng(0)).wrong_shares
    return partial(CompiledConstraints, constraints, wrong_shares=wrong_shares)


def guesses_of(
    sample: Dataset,
    primitives: PrimitiveSet,
    settings: EvolutionSettings,
    linear_scaling: bool,
    threads: int,
    rng: np.random.Generator,
    deadline: float,
) -> Guesses:
    """Guesses for a data set, found on a sample of its rows (see `shine.gp.seeding`)."""
    rows = sample.sampled(SEEDING_ROWS, rng)
    return find_guesses(
        rows.columns,
        rows.target,
        rows.weights,
        primitives,
        MachineEvaluator(rows, "mse", False, "float64", threads).predict,
        rng,
        max_size=settings.max_size,
        max_depth=settings.max_depth,
        linear_scaling=linear_scaling,
        settings=SeedingSettings(members=settings.seeding_members),
        clock=time.monotonic,
        deadline=deadline,
    )


def _constant_loss(dataset: Dataset, loss: str) -> float:
    """Loss of the target's mean."""
    square = dataset.target_square
    of_loss = loss_of(loss)
    total = square
    if not of_loss.kind.follows_from_moments:
        errors = of_loss.kind.of_residuals(dataset.target - dataset.target_mean)
        total = float(stable_sum(dataset.row_weights * errors))
    return float(of_loss.of_sum(np.array(total), dataset.weight, square)) if square > 0 else 0.0


def evolve(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    features: Sequence[str] | None = None,
    primitives: Sequence[PrimitiveSource] = DEFAULT_PRIMITIVES,
    loss: str = "mse",
    linear_scaling: bool = True,
    dtype: str = "float64",
    tier: str = "auto",
    threads: int | None = None,
    generations: int = 100,
    seconds: float | None = 60.0,
    stop_loss: float = 1e-20,
    constraints: Constraints | Mapping[str, Any] | None = None,
    seed: int = 0,
    seeds: Sequence[Seed] = (),
    report: Callable[[Progress], object] | None = None,
    **settings: Any,
) -> Result:
    """Find short formulas that explain `y` by `X`.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
    sample_weight : array-like of shape (n_rows,), optional
    features : sequence of str, optional
        Names of the columns in formulas; ``x0, x1, ...`` by default.
    primitives : sequence of str, function or Primitive
        What formulas are made of: names of Shine's primitives, plain Python functions in the restricted language, or
        functions of other languages as `shine.primitive_from_llvm` makes them.
    loss : {"mse", "rmse", "mae", "nmse", "r2"}
    linear_scaling : bool
        Whether formulas are judged with their best slope and intercept, which become part of the result.
    dtype : {"float64", "float32"}
    tier : {"auto", "machine", "native", "reference"}
        How individuals are evaluated.
    threads : int, optional
        All processors by default; their number does not change the result.
    generations, seconds, stop_loss
        When to stop: whichever comes first. ``seconds=None`` sets no limit.
    constraints : mapping or Constraints, optional
        What formulas must keep to, by the fields of `shine.gp.constraints.constraints.Constraints`: limits, nesting,
        required and forbidden features, monotonicity, units.
    seed : int
        The same seed gives the same front.
    seeds : sequence of formulas and graphs
        Formulas to start from: text, functions, trees, SymPy's expressions; graphs as `shine.load_graph` reads them, or
        paths of their files, if their inputs are called like features; else mappings such as
        ``{"graph": "model.pb", "features": {"input": "a"}}``, with ``output`` where there are several.
    report : callable, optional
        Receives the `Progress` of every generation; it ends the run by returning True.
    **settings
        Fields of `shine.gp.settings.EvolutionSettings`: population, max_size, max_depth, ...

    Returns
    -------
    Result
        ``best`` is the recommended formula, ``front`` the Pareto front, ``predict(X)`` applies the best.

    Raises
    ------
    DataError, UnsupportedSyntaxError, GraphImportError, ValueError
        If the data, a formula, a graph or a setting is unfit.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(1, 5, (200, 2))
    >>> evolve(X, X[:, 0] * X[:, 1], primitives=["add", "mul"], features=["a", "b"]).best.expression
    'a*b'
    """
    unknown = sorted(set(settings) - {field.name for field in fields(EvolutionSettings)})
    if unknown:
        raise TypeError(f"evolve() got an unexpected keyword argument {unknown[0]!r}")
    return search(
        Dataset.from_arrays(X, y, sample_weight, features),
        primitives,
        valid_settings(EvolutionSettings, settings),
        valid_settings(StopSettings, {"generations": generations, "seconds": seconds, "loss": stop_loss}),
        loss=loss,
        linear_scaling=linear_scaling,
        dtype=dtype,
        tier=tier,
        threads=threads,
        constraints=constraints_of(constraints or {}),
        seed=seed,
        seeds=seeds,
        report=report,
    )


def constraints_of(given: Constraints | Mapping[str, Any]) -> Constraints:
    """Constraints, of which a mapping has fields by name."""
    if isinstance(given, Constraints):
        return given
    known = [field.name for field in fields(Constraints)]
    for name in given:
        if name not in known:
            raise ValueError(f"constraints has no {name!r}; it has {', '.join(known)}")
    return valid_settings(Constraints, given)


def valid_settings(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Settings within their bounds; a `ValueError` names those that are not."""
    from pydantic import TypeAdapter, ValidationError  # a fifth of the import time of Shine, and needed here alone

    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, e['loc']))}={e['input']!r}: {e['msg']}" for e in error.errors())
        raise ValueError("; ".join(problems)) from None
