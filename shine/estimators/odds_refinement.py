"""From the individuals of a search for odds to its models."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.arrays import COMPILED
from shine.data.dataset import Dataset
from shine.domain import Domain
from shine.estimators.classes import Classes, entropy
from shine.estimators.odds import LINE, lined
from shine.evaluators.logistic import LogisticEvaluator, LogisticLinearizer
from shine.gp.constraints.compiled import CompiledConstraints
from shine.gp.evolution import Outcome
from shine.gp.snapping import snapped
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.lang.simplify.simplifier import simplify
from shine.lang.tape import functions_of
from shine.lang.tree import Tree
from shine.search.lines import with_functions
from shine.search.model import Model
from shine.search.refinement import POLISHING_ROWS, effective_rows
from shine.search.usable import individuals_to_refine, preferred_and_defined, usable

_STEPS, _LAST_STEPS = 50, 5
"""Steps of the fit of all constants, and of the last one on all rows."""

_NATS_A_NODE = 0.5
"""Likelihood, in nats a node, that a formula may lose for being simpler."""


@dataclass(frozen=True, eq=False)
class OddsRefinement:
    """From the individuals of a search for odds to its models (see `shine.search.refinement.refined`).

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
            squared=True,
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
        explained = 1 - losses / entropy(share)
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
