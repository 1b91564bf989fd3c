"""The search for formulas of the odds of a class: what `shine.evolve` is for errors, for log-loss."""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shine.arrays import COMPILED
from shine.data.dataset import Dataset
from shine.domain import Domain
from shine.errors import DataError
from shine.estimators.odds import LINE, OddsEvaluator, lined
from shine.evaluators.logistic import LogisticEvaluator, LogisticLinearizer
from shine.evaluators.sampling import sampled_errors
from shine.fitness.losses import SQUARED
from shine.frontends.seeds import Seed, seed_tree
from shine.gp import evolution
from shine.gp.constraints.compiled import CompiledConstraints, ConstrainedEvaluator
from shine.gp.constraints.constraints import Constraints, check_constraints
from shine.gp.evolution import Outcome, Progress
from shine.gp.settings import EvolutionSettings, StopSettings
from shine.gp.snapping import snapped
from shine.lang.parse import PrimitiveSource, primitive_table
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet, select
from shine.lang.simplify.simplifier import simplify
from shine.lang.tape import functions_of
from shine.lang.tree import Tree
from shine.search.model import Front, Model, Result
from shine.search.refinement import POLISHING_ROWS, effective_rows, in_given_units, pareto_front, with_functions
from shine.search.run import (
    constraint_rules,
    constraints_of,
    guesses_of,
    out_of_time,
    scaling_undone,
    searching_seconds,
    valid_settings,
)
from shine.search.scaling import Scaling
from shine.search.usable import individuals_to_refine, preferred_and_defined, usable
from shine.typing import Floats

LINE_ROWS = 2000
"""Rows that the lines around individuals are fitted on."""

_STEPS, _LAST_STEPS = 50, 5
"""Steps of the fit of all constants, and of the last one on all rows."""

_DOUBT = 0.1
"""Rows of each class that count as being of the other: Platt has 1, which keeps good formulas from being certain."""

_NATS_A_NODE = 0.5
"""What a formula may lose in likelihood, in nats a node, for being simpler."""


@np.errstate(all="ignore")
def evolve_odds(
    X: Floats,
    y: Floats,
    *,
    sample_weight: Floats | None,
    features: Sequence[str],
    primitives: Sequence[PrimitiveSource],
    dtype: str,
    threads: int,
    generations: int,
    seconds: float | None,
    stop_loss: float,
    constraints: Mapping[str, Any],
    seed: int,
    seeds: Sequence[Seed],
    report: Callable[[Progress], object],
    **settings: Any,
) -> Result:
    """Find short formulas of the logarithm of the odds that a row is of a class.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        1 for rows of the class, 0 for others; both occur.
    stop_loss : float
        The search ends when formulas keep less than this share of what the best constant loses, beyond what smoothing
        leaves to every formula.
    sample_weight, features, primitives, dtype, threads, generations, seconds, constraints, seed, seeds, report
        See `shine.evolve`; constraints hold for the logarithm of the odds.
    **settings
        Fields of `shine.gp.settings.EvolutionSettings`.

    Returns
    -------
    Result
        The loss of each model is the mean log-loss in nats, and its r2 the share of the constant's log-loss that it
        takes away (McFadden 1974). Recommended is the model of the shortest description: log-likelihood, and half the
        logarithm of the number of rows for each node (Schwarz 1978).

    Notes
    -----
    While formulas are bred and fitted, classes are smoothed after Platt (1999), so that the constants of a formula that
    separates the classes have a best value. The search for formulas to start from knows squared errors only, and
    looks for such that explain y as a number.
    """
    began = time.monotonic()
    dataset = Dataset.from_arrays(X, y, sample_weight, features)
    evolving: EvolutionSettings = valid_settings(EvolutionSettings, settings)
    stop = valid_settings(StopSettings, {"generations": generations, "seconds": seconds, "loss": stop_loss})
    if dtype not in ("float64", "float32"):
        raise ValueError(f"unknown dtype {dtype!r}; use one of float64, float32")
    table, names = primitive_table(primitives)
    functions = select(table, names)
    trees = [seed_tree(source, dataset.features, table, names) for source in seeds]
    limits: Constraints = constraints_of(constraints)
    check_constraints(limits, functions, dataset.features, True)
    given = dataset.without(limits.forbidden)
    scaling = Scaling.of(given, target=False)
    allowed = scaling.applied(given)
    primitive_set = PrimitiveSet(functions, allowed.features)
    trees = [tree for tree in trees if not any(("name", name) in tree.tokens for name in limits.forbidden)]
    if not 0 < allowed.target_mean < 1:
        raise DataError("the rows of one class weigh nothing beside the others; give both classes weights that count")
    trees = [scaling.entering(tree) for tree in trees]
    rng = np.random.default_rng(seed)
    sample = allowed.sampled(evolving.rows, rng)
    classes = Classes.of(sample)
    rows = replace(sample, target=classes.smoothed(sample.target))
    odds = OddsEvaluator(rows, LogisticLinearizer(rows.sampled(LINE_ROWS, rng), threads), dtype, threads)
    rules = constraint_rules(limits, rows, threads)
    evaluator = odds if rules is None else ConstrainedEvaluator(odds, rules(primitive_set, "implied"))
    linearizer = LogisticLinearizer(rows.sampled(evolving.fitting_rows, rng), threads)
    outcome = evolution.evolve(
        evaluator,
        primitive_set,
        evolving,
        replace(stop, loss=classes.enough(stop_loss), seconds=searching_seconds(stop, time.monotonic() - began)),
        rng,
        fitter=odds.fitter(linearizer, evolving.constant_steps) if evolving.constant_steps else None,
        errors=partial(sampled_errors, sample, True, evolving.lexicase_rows),
        initial=Population.from_trees(trees, primitive_set) if trees else None,
        seeding=partial(guesses_of, rows, primitive_set, evolving, True, threads),
        clock=time.monotonic,
        report=scaling_undone(report, scaling, given, "r2"),
    )
    refinement = Refinement(allowed, Classes.of(allowed), evolving.complexity, threads, rules, out_of_time(stop, began))
    reason = outcome.stopped_by
    try:
        models = refinement.models(outcome, polish=reason != "interrupted")
    except KeyboardInterrupt:
        reason, models = "interrupted", refinement.models(outcome, polish=False)
    front = pareto_front(models, 0.0)
    if not front:
        raise DataError("found no formula of finite log-loss that the constraints allow; search longer, or relax them")
    front = in_given_units(front, scaling, given, 0.0)
    everything = [replace(model, tree=replace(model.tree, parameters=dataset.features)) for model in front]
    chosen = shortest(everything, effective_rows(allowed))
    seconds_spent = time.monotonic() - began
    return Result(
        Front(tuple(everything), chosen), chosen, outcome.generations, outcome.evaluations, seconds_spent, seed, reason
    )


def shortest(front: Sequence[Model], rows: float) -> int:
    """Position of the model of the shortest description, from log-losses in nats a row."""
    lengths = [rows * model.loss + 0.5 * model.tree.size * math.log(rows) for model in front]
    return lengths.index(min(lengths))


@dataclass(frozen=True)
class Classes:
    """How many rows are of a class, and how many are not; with weights, what they count as.

    Parameters
    ----------
    rows, others : float
        Both positive.
    """

    rows: float
    others: float

    @classmethod
    def of(cls, dataset: Dataset) -> Classes:
        """Those of a target of 1 and 0."""
        count, share = effective_rows(dataset), dataset.target_mean
        return cls(count * share, count * (1 - share))

    @property
    def targets(self) -> tuple[float, float]:
        """What becomes of 1 and of 0: the shares expected of so many rows, with a few doubtful ones of both."""
        rows, others = self.rows + 2 * _DOUBT, self.others + 2 * _DOUBT
        return (self.rows + _DOUBT) / rows, _DOUBT / others

    def smoothed(self, target: Floats) -> Floats:
        """The target with 1 and 0 drawn towards each other."""
        high, low = self.targets
        return np.where(target > 0.5, high, low)

    def enough(self, share: float) -> float:
        """Loss that keeps a share of what the constant loses beyond what a perfect formula does."""
        high, low = self.targets
        count = self.rows + self.others
        least = (self.rows * _entropy(high) + self.others * _entropy(low)) / count
        constant = _entropy((self.rows * high + self.others * low) / count)
        return least + share * (constant - least)


def _entropy(share: float) -> float:
    return -sum(part * math.log(part) for part in (share, 1 - share) if part > 0)


@dataclass(frozen=True, eq=False)
class Refinement:
    """From the individuals a search leaves to models: see `shine.search.refinement.refined`.

    Parameters
    ----------
    dataset : Dataset
        All rows; the target is 1 and 0.
    classes : Classes
    weights : mapping of str to int
        What complexity is.
    threads : int
    rules : callable, optional
        What formulas over a primitive set must keep to.
    out_of_time : callable
        Whether to make no further constant simple.
    """

    dataset: Dataset
    classes: Classes
    weights: Mapping[str, int]
    threads: int
    rules: Callable[..., CompiledConstraints] | None
    out_of_time: Callable[[], bool]

    def models(self, outcome: Outcome, polish: bool) -> list[Model]:
        """A model of each individual that can be used on fresh rows, and that of the best constant."""
        share = self.dataset.target_mean
        constant = Tree(self.dataset.features, ast.Constant(math.log(share / (1 - share))))
        primitives = with_functions(outcome.front.primitives, (*LINE, "sub"))
        domain = Domain(self.dataset)
        individuals, scores = individuals_to_refine(outcome, domain)
        found: list[Tree] = []
        if len(individuals):
            complete = lined(individuals, scores.slopes, scores.intercepts, primitives)
            found = [complete.tree(index) for index in range(len(complete))]
        versions = [found, [simplify(tree, primitives, functions=COMPILED) for tree in found]]
        if polish and found:
            versions += self._polished(versions[-1], primitives)
        measured = [self._measured(version, primitives) for version in versions]
        preferred = preferred_and_defined(zip(*measured, strict=True), self._preferred, domain)
        models = [*self._measured([constant], primitives), *preferred]
        return usable([model for model in models if math.isfinite(model.loss)], 0.0, domain)

    def _polished(self, trees: Sequence[Tree], primitives: PrimitiveSet) -> Iterator[list[Tree]]:
        """The formulas with constants fitted to convergence, and then with simple ones in their place."""
        smoothed = replace(self.dataset, target=self.classes.smoothed(self.dataset.target))
        sample = smoothed.sampled(POLISHING_ROWS, np.random.default_rng(0))
        linearizer = LogisticLinearizer(sample, self.threads)
        fitted = _fitted(_population(trees, primitives), linearizer, _STEPS)
        simple = snapped(
            fitted,
            linearizer,
            effective_rows(sample),
            float(np.finfo(np.float64).tiny),
            log_likelihood=SQUARED.log_likelihood,
            out_of_time=self.out_of_time,
        )
        if sample is not smoothed:
            fitted = _fitted(fitted, LogisticLinearizer(smoothed, self.threads), _LAST_STEPS)
        for individuals in (fitted, simple):
            complete = (individuals.tree(index) for index in range(len(individuals)))
            yield [simplify(tree, primitives, functions=COMPILED) for tree in complete]

    def _measured(self, trees: Sequence[Tree], primitives: PrimitiveSet) -> list[Model]:
        """The formulas with their log-loss by the classes as they are; inf where one is not allowed."""
        if not trees:
            return []
        population = _population(trees, primitives)
        losses = LogisticEvaluator(self.dataset, "float64", self.threads).losses(population)
        share = self.dataset.target_mean
        explained = 1 - losses / _entropy(share)
        if self.rules is not None:
            losses = self.rules(population.primitives, scaling="written").charged(
                population, losses, np.ones(len(trees))
            )
        measured = zip(trees, losses.tolist(), explained.tolist(), strict=True)
        return [Model(tree, loss, part, self.weights) for tree, loss, part in measured]

    def _preferred(self, models: Sequence[Model]) -> Model:
        """Of the versions of a formula the last, if it is as good as the best within the noise; else the best."""
        best, last = min(models, key=lambda model: model.loss), models[-1]
        if not math.isfinite(last.loss):
            return best
        worse = effective_rows(self.dataset) * (last.loss - best.loss)
        return last if worse <= _NATS_A_NODE * last.complexity else best


def _population(trees: Sequence[Tree], primitives: PrimitiveSet) -> Population:
    used = {name for tree in trees for name in functions_of(tree)}
    return Population.from_trees(trees, with_functions(primitives, sorted(used)))


def _fitted(population: Population, linearizer: LogisticLinearizer, steps: int) -> Population:
    ones = np.ones(len(population))
    return linearizer.fit(population, ones, 0 * ones, steps, tolerance=1e-5, scaled=False).population
