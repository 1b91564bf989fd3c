"""From the individuals a search leaves to the models it hands over: complete, polished, short."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from shine.arrays import COMPILED
from shine.data.dataset import Dataset, stable_sum
from shine.domain import Domain
from shine.evaluators.gradients import MachineLinearizer
from shine.evaluators.machine_tier import MachineEvaluator
from shine.evaluators.rows import target_of
from shine.fitness.losses import loss_of
from shine.fitness.scores import best_lines
from shine.gp.constraints.compiled import CompiledConstraints
from shine.gp.evolution import Outcome
from shine.gp.phase_reduction import reduced_phases
from shine.gp.snapping import snapped
from shine.lang.library import STANDARD
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet, select
from shine.lang.simplify.simplifier import simplify
from shine.lang.tape import functions_of
from shine.lang.tree import Tree
from shine.search.model import Model
from shine.search.scaling import Scaling
from shine.search.usable import individuals_to_refine, preferred_and_defined, usable, with_line

POLISHING_ROWS = 10_000
"""Rows that constants are polished and made simple on; on all rows they are fitted once more."""

MOST_SEEN = 1e9
"""Weights from which on whole ones are no counts."""

_STEPS, _LAST_STEPS = 50, 5
"""Steps of the fit of all constants, and of the last one on all rows."""


SCALING = ("add", "sub", "mul")
"""What writes slope and intercept into a formula, whatever the search draws from."""

_NATS_A_NODE = 0.5
"""What simple constants may cost, in units of the log-likelihood, a node of the formula."""


def refined(
    outcome: Outcome,
    dataset: Dataset,
    loss: str,
    linear_scaling: bool,
    weights: Mapping[str, int],
    enough: float,
    threads: int,
    rules: Callable[[PrimitiveSet], CompiledConstraints] | None = None,
    polish: bool = True,
    out_of_time: Callable[[], bool] = lambda: False,
) -> tuple[Model, ...]:
    """The Pareto front of what a search found.

    Linear scaling is written into the formulas, which are simplified; their constants are fitted to convergence and
    replaced by simple numbers where the loss does not suffer. A formula that this would make worse stays what it was.

    Parameters
    ----------
    outcome : Outcome
    dataset : Dataset
        All rows.
    loss : str
    linear_scaling : bool
    weights : mapping of str to int
        What complexity is.
    enough : float
        Loss below which two formulas are equally right.
    threads : int
    rules : callable, optional
        What formulas over a primitive set must keep to; the front has no others, and the penalties in its losses.
    polish : bool
        Whether to fit constants and make them simple, which takes nearly all of the time.
    out_of_time : callable
        Whether to make no further constant simple.
    """
    primitives = with_functions(outcome.front.primitives, SCALING)
    domain = Domain(dataset)
    individuals, _ = individuals_to_refine(outcome, domain)
    constant = Tree(dataset.features, ast.Constant(dataset.target_mean))
    found = [constant, *_completed(individuals, dataset, linear_scaling, threads)]
    trees = [simplify(tree, primitives, functions=COMPILED) for tree in found]
    if polish:
        versions = [trees, *_polished(trees, dataset, loss, primitives, threads, out_of_time)]
    else:
        # A function that the search did not use would have to be compiled first.
        known = primitives.table.keys()
        versions = [[s if functions_of(s) <= known else tree for s, tree in zip(trees, found, strict=True)]]
    if rules is not None:
        versions.insert(0, found)  # what is simpler need not be allowed
    models = [_measured(version, dataset, loss, weights, primitives, threads, rules) for version in versions]
    # The constant, which comes first, is the measure of all others: the best one, not a simple one.
    constant_model = min((version[0] for version in models), key=lambda model: model.loss)
    preference = partial(
        _preferred,
        power=loss_of(loss).log_likelihood * effective_rows(dataset),
        floor=rounding_loss(dataset, loss),
    )
    versions_of_each = zip(*(version[1:] for version in models), strict=True)
    preferred = [constant_model, *preferred_and_defined(versions_of_each, preference, domain)]
    finite = [model for model in preferred if math.isfinite(model.loss)]
    return pareto_front(usable(finite, enough, domain), enough)


def in_given_units(front: Iterable[Model], scaling: Scaling, given: Dataset, enough: float) -> tuple[Model, ...]:
    """The front of a search over scaled data, with formulas of the data as they were given; the losses stay.

    Factors that formulas get back make them more complex: some may be on the front no more.
    """
    return pareto_front([replace(model, tree=scaling.leaving(model.tree, given)) for model in front], enough)


def pareto_front(models: Iterable[Model], enough: float) -> tuple[Model, ...]:
    """Models that no simpler one equals or betters; it ends with the first whose loss is at most `enough`."""
    front: list[Model] = []
    for model in sorted(models, key=lambda model: (model.complexity, model.loss)):
        if not front or enough < front[-1].loss > model.loss:
            front.append(model)
    return tuple(front)


def _completed(individuals: Population, dataset: Dataset, linear_scaling: bool, threads: int) -> Iterator[Tree]:
    """The individuals with their best slope and intercept."""
    if not len(individuals):
        return
    slopes, intercepts = np.ones(len(individuals)), np.zeros(len(individuals))
    if linear_scaling:
        products = MachineEvaluator(dataset, "mse", False, "float64", threads).products(individuals)
        with np.errstate(all="ignore"):
            slopes, intercepts = best_lines(products, target_of(dataset, "float64"))
    for index, (slope, intercept) in enumerate(zip(slopes.tolist(), intercepts.tolist(), strict=True)):
        if math.isfinite(slope) and math.isfinite(intercept):
            yield with_line(individuals.tree(index), slope, intercept)


def _polished(
    trees: Sequence[Tree],
    dataset: Dataset,
    loss: str,
    primitives: PrimitiveSet,
    threads: int,
    out_of_time: Callable[[], bool],
) -> Iterator[list[Tree]]:
    """The formulas with constants fitted, and then with simple ones in their place."""
    population = _population(trees, primitives)
    sample = dataset.sampled(POLISHING_ROWS, np.random.default_rng(0))
    linearizer = MachineLinearizer(sample, loss, threads)
    fitted = _fitted(reduced_phases(population), linearizer, _STEPS)
    simple = snapped(
        fitted,
        linearizer,
        effective_rows(sample),
        _rounding_error(sample, loss),
        log_likelihood=loss_of(loss).kind.log_likelihood,
        out_of_time=out_of_time,
    )
    if sample is not dataset:
        fitted = _fitted(fitted, MachineLinearizer(dataset, loss, threads), _LAST_STEPS)
    for individuals in (fitted, simple):
        complete = (individuals.tree(index) for index in range(len(individuals)))
        yield [simplify(tree, primitives, functions=COMPILED) for tree in complete]


def _preferred(models: Sequence[Model], power: float, floor: float) -> Model:
    """Of the versions of a formula the last, if it is as good as the best within the noise; else the best."""
    best, last = min(models, key=lambda model: model.loss), models[-1]
    if not math.isfinite(last.loss):
        return best
    worse = power * math.log(max(last.loss, floor) / max(best.loss, floor))
    return last if worse <= _NATS_A_NODE * last.complexity else best


def effective_rows(dataset: Dataset) -> float:
    """How many rows of equal weight tell as much (Kish 1965); whole weights are how often a row was seen."""
    weights = dataset.row_weights
    # Nobody has seen a row a billion times, and very large numbers are always whole.
    if (weights == np.floor(weights)).all() and weights.max() < MOST_SEEN:
        return dataset.weight
    return dataset.weight**2 / float(stable_sum(weights * weights))


def _population(trees: Sequence[Tree], primitives: PrimitiveSet) -> Population:
    """Trees as tapes, of the search's primitives where they do: those are compiled already."""
    used = {name for tree in trees for name in functions_of(tree)}
    return Population.from_trees(trees, with_functions(primitives, sorted(used)))


def with_functions(primitives: PrimitiveSet, names: Sequence[str]) -> PrimitiveSet:
    """The primitive set with those standard functions that it lacks."""
    added = select(STANDARD, [name for name in names if name not in primitives.table])
    return replace(primitives, functions=(*primitives.functions, *added)) if added else primitives


def _fitted(population: Population, linearizer: MachineLinearizer, steps: int) -> Population:
    ones = np.ones(len(population))
    return linearizer.fit(population, ones, 0 * ones, steps, tolerance=1e-13, scaled=False).population


def rounding_loss(dataset: Dataset, loss: str, dtype: str = "float64") -> float:
    """Loss that rounding alone may leave."""
    total = np.array(_rounding_error(dataset, loss, dtype))
    least = float(loss_of(loss).of_sum(total, dataset.weight, dataset.target_square or 1.0))
    return max(least, float(np.finfo(np.float64).tiny))


def _rounding_error(dataset: Dataset, loss: str, dtype: str = "float64") -> float:
    """Sum of errors that rounding alone may leave."""
    size = 8 * np.finfo(dtype).eps * np.abs(dataset.target)
    errors = loss_of(loss).kind.of_residuals(size)
    return max(float(stable_sum(dataset.row_weights * errors)), float(np.finfo(np.float64).tiny))


def _measured(
    trees: Sequence[Tree],
    dataset: Dataset,
    loss: str,
    weights: Mapping[str, int],
    primitives: PrimitiveSet,
    threads: int,
    rules: Callable[[PrimitiveSet], CompiledConstraints] | None = None,
) -> list[Model]:
    """The formulas as models; the loss of one that is not allowed is inf."""
    population = _population(trees, primitives)
    measured = {
        name: MachineEvaluator(dataset, name, False, "float64", threads).score(population).losses
        for name in {loss, "mse"}
    }
    losses, errors = measured[loss], measured["mse"]
    if rules is not None:
        losses = rules(population.primitives).charged(population, losses, np.ones(len(trees)))
    variance = dataset.target_square / dataset.weight
    with np.errstate(all="ignore"):
        # As scikit-learn has it: a constant target is explained fully or not at all.
        r2 = 1 - errors / variance if variance > 0 else np.where(errors > 0, 0.0, 1.0)
    return [Model(*measures, weights) for measures in zip(trees, losses.tolist(), r2.tolist(), strict=True)]
