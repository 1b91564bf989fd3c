"""A whole run from Python: data in, the Pareto front of formulas out."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shine.data import Dataset
from shine.errors import DataError
from shine.evaluators.evaluator import evaluator_of
from shine.evaluators.reference import ReferenceEvaluator, ReferenceMeasure
from shine.evaluators.rows import target_of
from shine.fitness import LOSSES, best_lines, score
from shine.gp import evolution
from shine.gp.evolution import Outcome, Progress
from shine.gp.settings import EvolutionSettings, StopSettings
from shine.lang.parse import Source, parse, primitive_table
from shine.lang.population import Population
from shine.lang.primitives import Primitive, PrimitiveSet, select
from shine.lang.tape import application
from shine.lang.tree import Tree
from shine.model import Model, Result, choose

Array = NDArray[np.float64]
Settings = TypeVar("Settings", EvolutionSettings, StopSettings)

DEFAULT_PRIMITIVES = ("add", "sub", "mul", "div", "sqrt", "square", "exp", "log", "sin", "cos")
"""Functions a search draws from unless told otherwise."""


def search(
    dataset: Dataset,
    primitives: Sequence[str | Callable[..., object]],
    settings: EvolutionSettings,
    stop: StopSettings,
    *,
    loss: str = "mse",
    linear_scaling: bool = True,
    dtype: str = "float64",
    tier: str = "auto",
    threads: int | None = None,
    seed: int = 0,
    seeds: Sequence[Source] = (),
    report: Callable[[Progress], None] | None = None,
) -> Result:
    """Evolve formulas that explain a data set.

    Parameters
    ----------
    dataset : Dataset
    primitives : sequence of str or function
        Names of Shine's primitives, or plain Python functions in the restricted language.
    settings : EvolutionSettings
    stop : StopSettings
    loss, linear_scaling, dtype, tier, threads
        See `shine.Evaluator`.
    seed : int
        Of the random generator: the same seed gives the same front.
    seeds : sequence of formulas
        Join the first population.
    report : callable, optional
        Receives the `Progress` of every generation.

    Returns
    -------
    Result
        Interrupting the run (Ctrl-C) ends it early and returns what was found so far.

    Raises
    ------
    DataError, UnsupportedSyntaxError, ValueError
        If the data, a formula or a setting is unfit.
    """
    table, names = primitive_table(primitives)
    primitive_set = PrimitiveSet(select(table, names), dataset.features)
    evaluator = evaluator_of(dataset, loss, linear_scaling, dtype, tier, threads)
    trees = [parse(source, dataset.features, table) for source in seeds]
    outcome = evolution.evolve(
        evaluator,
        primitive_set,
        settings,
        stop,
        np.random.default_rng(seed),
        initial=Population.from_trees(trees, primitive_set) if trees else None,
        clock=time.monotonic,
        **({} if report is None else {"report": report}),
    )
    front = pareto_front(_models(outcome, dataset, loss, linear_scaling), stop.loss)
    if not front:
        raise DataError(f"no formula has a finite {loss}, not even a constant; rescale the target")
    return Result(
        front,
        choose(front, stop.loss, dataset.n_rows, LOSSES[loss].kind == "squared" and loss != "rmse"),
        outcome.generations,
        outcome.evaluations,
        outcome.seconds,
        seed,
        outcome.stopped_by,
    )


def pareto_front(models: Iterable[Model], enough: float) -> tuple[Model, ...]:
    """Models that no simpler one equals or betters; it ends with the first whose loss is at most `enough`."""
    front: list[Model] = []
    for model in sorted(models, key=lambda model: (model.complexity, model.loss)):
        if not front or enough < front[-1].loss > model.loss:
            front.append(model)
    return tuple(front)


def _models(outcome: Outcome, dataset: Dataset, loss: str, linear_scaling: bool) -> Iterator[Model]:
    """Models of an evolution's front, and the constant that everything has to beat."""
    reference = ReferenceEvaluator(dataset, loss, False, "float64")
    constant = ast.Constant(dataset.target_mean)
    yield from _measured_models([constant], [np.full(dataset.n_rows, dataset.target_mean)], dataset, loss, {})
    for index in range(len(outcome.front)):
        tree, prediction = outcome.front.tree(index), reference.predict_one(outcome.front, index)
        nodes, predictions = [tree.result], [prediction]
        if linear_scaling:
            for slope, intercept in _scalings(prediction, dataset):
                nodes.append(_scaled(tree.result, slope, intercept))
                predictions.append(intercept + slope * prediction)
        yield from _measured_models(nodes, predictions, dataset, loss, tree.functions)


def _scalings(prediction: Array, dataset: Dataset) -> Iterator[tuple[float, float]]:
    """Best slope alone, best intercept alone, and both; the formula is to carry no more of them than it needs."""
    weights, target = dataset.row_weights, dataset.target
    with np.errstate(all="ignore"):
        products = _measure([prediction], dataset).products(np.arange(1))
        slope, intercept = best_lines(products, target_of(dataset, "float64"))
        candidates = (
            (float(weights * prediction @ target / (weights * prediction @ prediction)), 0.0),
            (1.0, dataset.target_mean - float(products.mean[0])),
            (float(slope[0]), float(intercept[0])),
        )
    yield from (pair for pair in candidates if np.isfinite(pair).all() and pair[0] != 0)


def _measure(predictions: Sequence[Array], dataset: Dataset) -> ReferenceMeasure:
    return ReferenceMeasure(lambda which: [predictions[index] for index in which], dataset)


def _scaled(node: ast.expr, slope: float, intercept: float) -> ast.expr:
    if slope != 1:
        node = application("mul", [ast.Constant(slope), node])
    if intercept != 0:
        node = application("add" if intercept > 0 else "sub", [node, ast.Constant(abs(intercept))])
    return node


def _measured_models(
    nodes: Sequence[ast.expr],
    predictions: Sequence[Array],
    dataset: Dataset,
    loss: str,
    functions: Mapping[str, Primitive],
) -> Iterator[Model]:
    """Models with their losses, those with a finite one."""
    count = len(nodes)
    measure, square = _measure(predictions, dataset), dataset.target_square
    losses = score(measure, count, target_of(dataset, "float64"), loss, linear_scaling=False).losses
    with np.errstate(all="ignore"):
        errors = measure.errors(np.arange(count), "squared", np.ones(count), np.zeros(count))
        # As scikit-learn has it: a constant target is explained fully or not at all.
        r2 = 1 - errors / square if square > 0 else np.where(errors > 0, 0.0, 1.0)
    for node, value, share in zip(nodes, losses, r2, strict=True):
        if np.isfinite(value):
            yield Model(Tree(dataset.features, node, functions=functions), float(value), float(share))


def evolve(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    features: Sequence[str] | None = None,
    primitives: Sequence[str | Callable[..., object]] = DEFAULT_PRIMITIVES,
    loss: str = "mse",
    linear_scaling: bool = True,
    dtype: str = "float64",
    tier: str = "auto",
    threads: int | None = None,
    generations: int = 100,
    seconds: float | None = 60.0,
    stop_loss: float = 1e-12,
    seed: int = 0,
    seeds: Sequence[Source] = (),
    report: Callable[[Progress], None] | None = None,
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
    primitives : sequence of str or function
        What formulas are made of: names of Shine's primitives, or plain Python functions in the restricted language.
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
    seed : int
        The same seed gives the same front.
    seeds : sequence of formulas
        Formulas to start from.
    report : callable, optional
        Receives the `Progress` of every generation.
    **settings
        Fields of `shine.gp.settings.EvolutionSettings`: population, max_size, max_depth, ...

    Returns
    -------
    Result
        ``best`` is the recommended formula, ``front`` the Pareto front, ``predict(X)`` applies the best.

    Raises
    ------
    DataError, UnsupportedSyntaxError, ValueError
        If the data, a formula or a setting is unfit.

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
        _valid(EvolutionSettings, settings),
        _valid(StopSettings, {"generations": generations, "seconds": seconds, "loss": stop_loss}),
        loss=loss,
        linear_scaling=linear_scaling,
        dtype=dtype,
        tier=tier,
        threads=threads,
        seed=seed,
        seeds=seeds,
        report=report,
    )


def _valid(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Settings within their bounds; a `ValueError` names those that are not."""
    from pydantic import TypeAdapter, ValidationError  # a fifth of the import time of Shine, and needed here alone

    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, e['loc']))}={e['input']!r}: {e['msg']}" for e in error.errors())
        raise ValueError("; ".join(problems)) from None
