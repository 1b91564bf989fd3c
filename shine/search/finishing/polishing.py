"""Formulas with constants fitted to convergence, and then replaced by simple numbers.

Digits beyond the standard error of a constant are noise: rounding them off costs next to no likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED, exp
from shine.data.datasets.dataset import Dataset, stable_sum
from shine.evaluate.losses.form import Loss
from shine.evaluate.protocols import Linearizer
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.rounding import ALL_DIGITS, rounded_tree
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.population import Population
from shine.lang.presentation import presented
from shine.lang.simplify.simplifier import simplify
from shine.lang.simplify.terms import Range
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.snapping import Nats, rounded_off, snapped, with_affordable, without_idle_digits
from shine.search.models.front import pareto_front
from shine.search.models.model import Model
from shine.search.problem.reference_losses import nats_of_errors
from shine.search.problem.scaling import with_functions

FEWEST = 2
"""Fewest digits that are shown, even of constants that the data hardly determine."""

ROWS = 1000
"""Rows that the change of the predictions is measured on."""

_FLAT = 700.0
"""Log-odds beyond which a class is certain; the exponential of more would overflow."""

Weighing = Callable[[Dataset, Floats], Floats]
"""For each row, given the predictions: the root of the log-likelihood that a change of its prediction by 1 costs."""


def with_supported_digits(
    models: Iterable[Model], dataset: Dataset, weighing: Weighing | None = None, rows: float | None = None
) -> tuple[Model, ...]:
    """The models, each with the number of digits that the rows support.

    Parameters
    ----------
    models : iterable of Model
        Formulas of the data set's features.
    dataset : Dataset
    weighing : callable, optional
        What a change costs in each row; by default that of errors as large as the model's own.
    rows : float, optional
        Effective number of rows, if the data set is a sample of them.
    """
    sample = dataset.sampled(ROWS, np.random.default_rng(0))
    weigh = by_own_errors if weighing is None else weighing
    return tuple(
        replace(model, digits=_digits(model.tree, sample, rows or dataset.effective_rows, weigh)) for model in models
    )


def by_own_errors(sample: Dataset, predictions: Floats) -> Floats:
    """Normal errors of the size that the predictions have; their mean absolute size, which outliers hardly change."""
    roots = np.sqrt(sample.row_weights / np.max(sample.row_weights))
    there = np.isfinite(predictions)
    errors = np.where(there, roots * np.abs(sample.target - predictions), 0.0)
    spread = float(stable_sum(errors)) / max(int(there.sum()), 1)
    # Error of each prediction, as a share of the largest target, that is rounding anyway.
    least = (8 * 2.0**-53) * float(np.max(np.abs(sample.target), initial=0.0))
    # The mean absolute error of normal noise is its standard deviation times sqrt(2/pi).
    return roots / (max(spread, least, float(np.finfo(np.float64).tiny)) * math.sqrt(math.pi))


def by_odds(sample: Dataset, predictions: Floats) -> Floats:
    """Log-loss of classes: its curvature is the variance of the class, for predictions of log-odds."""
    shares = 1 / (1 + exp(-np.clip(predictions, -_FLAT, _FLAT)))
    return np.sqrt(sample.row_weights / np.mean(sample.row_weights) * shares * (1 - shares) / 2)


def _digits(tree: Tree, sample: Dataset, rows: float, weigh: Weighing) -> int:
    """The least number of digits that is as good as all."""
    # Log-likelihood that rounding may cost for each constant: what an error of a third of its standard error costs.
    allowed = 0.05 * sum(kind == "constant" for kind, _ in tree.tokens[1:])
    # The sample lacks columns that no formula may use.
    written = replace(presented(tree), parameters=sample.features)
    values = partial(evaluate, columns=list(sample.columns), functions=COMPILED)
    with np.errstate(all="ignore"):
        exact = values(written)
        there = np.isfinite(exact)
        costs = np.where(there, weigh(sample, exact), 0.0)
        for digits in range(FEWEST, ALL_DIGITS):
            change = np.where(there, values(rounded_tree(written, digits)) - exact, 0.0)
            if rows * float(stable_sum((costs * change) ** 2)) <= allowed * len(exact):
                return digits
    return ALL_DIGITS


AnyModel = TypeVar("AnyModel", bound=Model)
Found = TypeVar("Found")

POLISHING_ROWS = 10_000
"""Rows that constants are polished and made simple on; on all rows they are fitted once more."""

_STEPS, _LAST_STEPS = 50, 5
"""Most steps of the first fit of all constants, and of the last fit, on all rows."""

_NATS_A_NODE = 0.5
"""Log-likelihood that simple constants may cost, for each node of the formula."""


def unless_interrupted(outcome: Outcome, refine: Callable[[bool], Found]) -> tuple[Outcome, Found]:
    """The outcome and what refining it gives, without its slow part if the user interrupts, now or before.

    Parameters
    ----------
    outcome : Outcome
    refine : callable
        Gets whether to do the slow part.
    """
    if outcome.stopped_by != "interrupted":
        try:
            return outcome, refine(True)
        except KeyboardInterrupt:
            outcome = replace(outcome, stopped_by="interrupted")
    return outcome, refine(False)


@dataclass(frozen=True, eq=False)
class Polishing:
    """Fits constants of formulas, and makes them simple where the loss allows.

    Parameters
    ----------
    loss : Loss
    threads : int
    tolerance : float
        Relative change of the loss at which a fit has converged.
    out_of_time : callable
        Says whether to stop making constants simple.
    least_error : callable
        Sum of errors that rounding alone may leave on some rows.
    """

    loss: Loss
    threads: int
    tolerance: float
    out_of_time: Callable[[], bool]
    least_error: Callable[[Dataset], float]

    def fitted(self, population: Population, dataset: Dataset) -> Population:
        """Complete formulas with their constants fitted to convergence: linear scaling adds nothing to them."""
        sample = dataset.sampled(POLISHING_ROWS, np.random.default_rng(0))
        return converged(population, self._linearizer(sample), self.tolerance)

    def versions(self, fitted: Population, primitives: PrimitiveSet, dataset: Dataset) -> Iterator[list[Tree]]:
        """The formulas with fitted constants, and then with simple ones, both simplified.

        Parameters
        ----------
        fitted : Population
        primitives : PrimitiveSet
            Functions that simplified formulas may use.
        dataset : Dataset
        """
        sample = dataset.sampled(POLISHING_ROWS, np.random.default_rng(0))
        linearizer = self._linearizer(sample)
        rows, least, nats = sample.effective_rows, self.least_error(sample), self._nats(sample)
        simple = snapped(fitted, linearizer, rows, least, nats=nats, out_of_time=self.out_of_time)
        # Simplified in between: the product of two constants needs fewer digits than both of them.
        known: dict[Tree, Tree] = {}
        simple = population_of(_simplified(simple, primitives, dataset.ranges, known), primitives)
        simple = rounded_off(simple, linearizer, rows, least, nats=nats, out_of_time=self.out_of_time)
        if sample is not dataset:
            everywhere = self._linearizer(dataset)
            fitted = converged(fitted, everywhere, self.tolerance, _LAST_STEPS)
            simple = with_affordable(simple, everywhere, dataset.effective_rows, nats=self._nats(dataset))
            rows, least, linearizer = dataset.effective_rows, self.least_error(dataset), everywhere
        for individuals in (fitted, simple):
            exact = without_idle_digits(individuals, linearizer, rows, least)
            yield _simplified(exact, primitives, dataset.ranges, known)

    def _linearizer(self, rows: Dataset) -> Linearizer:
        return MachineLinearizer(rows, loss=self.loss, threads=self.threads)

    def _nats(self, rows: Dataset) -> Nats:
        """The nats between sums of errors (see `shine.search.evolution.snapping.snapped`)."""
        return nats_of_errors(rows, loss=self.loss)


def _simplified(
    individuals: Population, primitives: PrimitiveSet, ranges: Mapping[str, Range], known: dict[Tree, Tree]
) -> list[Tree]:
    """The simplified formulas; `known` has those of earlier calls, which stay as they are, and gets these."""
    complete = [individuals.tree(index) for index in range(len(individuals))]
    for tree in complete:
        if tree not in known:
            known[tree] = simplify(tree, primitives, functions=COMPILED, ranges=ranges)
            known.setdefault(known[tree], known[tree])
    return [known[tree] for tree in complete]


def preferred(models: Sequence[Model], nats: Callable[[Model, Model], float]) -> Model:
    """The last version of a formula if it is as good as the best within the noise; else the last that is as good.

    Parameters
    ----------
    models : sequence of Model
        Versions of one formula, the simplest last.
    nats : callable
        Log-likelihood by which the second of two models is better than the first.
    """
    best, last = min(models, key=lambda model: model.loss), models[-1]
    if math.isfinite(last.loss) and nats(last, best) <= _NATS_A_NODE * last.complexity:
        return last
    # Digits that the data do not determine are not worth keeping, even if they make the loss a little smaller.
    # Log-likelihood that nobody misses
    found = (model for model in reversed(models) if math.isfinite(model.loss) and nats(model, best) <= 0.1)
    return next(found, best)


def not_beaten(
    front: Sequence[AnyModel], before: Sequence[AnyModel], nats: Callable[[Model, Model], float], enough: float
) -> tuple[AnyModel, ...]:
    """The front of a run that was resumed, with those formulas of its front before that are better.

    Parameters
    ----------
    front, before : sequence of Model
        With losses on the same rows.
    nats : callable
        Log-likelihood by which the second of two models is better than the first.
    enough : float
        Loss below which two formulas are equally right.
    """

    def is_beaten(old: Model) -> bool:
        """Whether a formula that is no longer is as good, but for what simple constants may cost."""
        least = [new for new in front if new.complexity <= old.complexity and math.isfinite(new.loss)]
        return any(new.loss <= enough or nats(new, old) <= _NATS_A_NODE * old.complexity for new in least)

    better = [old for old in before if math.isfinite(old.loss) and not is_beaten(old)]
    return pareto_front([*front, *better], enough) if better else tuple(front)  # type: ignore[return-value]


def population_of(trees: Sequence[Tree], primitives: PrimitiveSet) -> Population:
    """Trees as a population of the search's primitives, which are compiled already, and of others only if needed."""
    used = {name for tree in trees for name in functions_of(tree)}
    return Population.from_trees(trees, with_functions(primitives, sorted(used)))


def converged(population: Population, linearizer: Linearizer, tolerance: float, steps: int = _STEPS) -> Population:
    """Complete formulas with their constants fitted until the next step promises less than a share of the error."""
    return linearizer.fit(population, steps, tolerance=tolerance).population
