"""Formulas with constants fitted to convergence, and then replaced by simple numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from shine.arrays import COMPILED
from shine.data.dataset import Dataset
from shine.fitness.protocols import Linearizer
from shine.gp.oddity import oddities
from shine.gp.snapping import snapped
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.lang.simplify.simplifier import simplify
from shine.lang.tape import functions_of
from shine.lang.tree import Tree
from shine.search.lines import with_functions
from shine.search.model import Model

POLISHING_ROWS = 10_000
"""Rows that constants are polished and made simple on; on all rows they are fitted once more."""

_STEPS, _LAST_STEPS = 50, 5
"""Most steps of the first fit of all constants, and of the last fit, on all rows."""

_NATS_A_NODE = 0.5
"""Log-likelihood that simple constants may cost, for each node of the formula."""


def polished(
    population: Population,
    primitives: PrimitiveSet,
    dataset: Dataset,
    linearizer_of: Callable[[Dataset], Linearizer],
    least_error: Callable[[Dataset], float],
    *,
    log_likelihood: float,
    tolerance: float,
    out_of_time: Callable[[], bool],
) -> Iterator[list[Tree]]:
    """The formulas with fitted constants, and then with simple ones, both simplified.

    Parameters
    ----------
    population : Population
        Complete formulas: linear scaling adds nothing to them.
    primitives : PrimitiveSet
        Functions that simplified formulas may use.
    dataset : Dataset
    linearizer_of : callable
        Makes the linearizer of the loss over some rows.
    least_error : callable
        Sum of errors that rounding alone may leave on some rows.
    log_likelihood, out_of_time
        See `shine.gp.snapping.snapped`.
    tolerance : float
        Relative change of the loss at which a fit has converged.
    """
    sample = dataset.sampled(POLISHING_ROWS, np.random.default_rng(0))
    linearizer = linearizer_of(sample)
    fitted = _fitted(population, linearizer, _STEPS, tolerance)
    simple = snapped(
        fitted,
        linearizer,
        sample.effective_rows,
        least_error(sample),
        log_likelihood=log_likelihood,
        out_of_time=out_of_time,
    )
    if sample is not dataset:
        fitted = _fitted(fitted, linearizer_of(dataset), _LAST_STEPS, tolerance)
    for individuals in (fitted, simple):
        complete = (individuals.tree(index) for index in range(len(individuals)))
        yield [simplify(tree, primitives, functions=COMPILED) for tree in complete]


def preferred(models: Sequence[Model], nats: Callable[[Model, Model], float]) -> Model:
    """The last version of a formula if it is as good as the best within the noise; else the best.

    Parameters
    ----------
    models : sequence of Model
        Versions of one formula, the simplest last.
    nats : callable
        Log-likelihood by which the second of two models is better than the first.
    """
    best, last = min(models, key=lambda model: model.loss), models[-1]
    if not math.isfinite(last.loss):
        return best
    return last if nats(last, best) <= _NATS_A_NODE * last.complexity else best


def population_of(trees: Sequence[Tree], primitives: PrimitiveSet) -> Population:
    """Trees as a population of the search's primitives, which are compiled already, and of others only if needed."""
    used = {name for tree in trees for name in functions_of(tree)}
    return Population.from_trees(trees, with_functions(primitives, sorted(used)))


def oddities_of(trees: Sequence[Tree], primitives: PrimitiveSet) -> list[float]:
    """Nats by which each formula looks odd (see `shine.gp.oddity`)."""
    return oddities(population_of(trees, primitives)).tolist() if trees else []


def _fitted(population: Population, linearizer: Linearizer, steps: int, tolerance: float) -> Population:
    ones = np.ones(len(population))
    return linearizer.fit(population, ones, 0 * ones, steps, tolerance=tolerance, scaled=False).population
