"""The individuals of a finished search for odds -> its models."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.evaluate.domain import Domain
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.simplify.simplifier import simplify
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.evolution.evolution import Outcome
from shine.search.finishing.poles import individuals_to_refine, preferred_and_defined, without_poles
from shine.search.finishing.polishing import Polishing, population_of, preferred
from shine.search.finishing.tidying import tidied
from shine.search.kinds.classes.classes import Classes, entropy
from shine.search.kinds.classes.lines import LINE, LOG_LOSS, lined
from shine.search.models.model import Model
from shine.search.problem.lines import with_functions
from shine.search.problem.yardsticks import nats_of_errors

TOLERANCE = 1e-5
"""Relative gain below which constants count as fitted to convergence."""


@dataclass(frozen=True, eq=False)
class OddsRefinement:
    """Makes models of the individuals of a search for odds (see `shine.search.finishing.refinement.Refinement`).

    Parameters
    ----------
    dataset : Dataset
        All rows; the target is 1 and 0.
    classes : Classes
    weights : mapping of str to float
        Complexity of primitives, features and constants, by name (see `shine.search.models.model.Model`).
    max_size : int
        Most nodes of a formula, its line included.
    threads : int
    rules : callable, optional
        Compiles the constraints for a primitive set.
    out_of_time : callable
        Returns whether to stop making constants simple.
    """

    dataset: Dataset
    classes: Classes
    weights: Mapping[str, float]
    max_size: int
    threads: int
    rules: Callable[..., CompiledConstraints] | None
    out_of_time: Callable[[], bool]

    def models(self, outcome: Outcome, polish: bool) -> list[Model]:
        """A model of the best constant, and of each individual that can predict fresh rows."""
        share = self.dataset.target_mean
        constant = Tree(self.dataset.features, ast.Constant(math.log(share / (1 - share))))
        primitives = with_functions(outcome.front.primitives, (*LINE, "sub"))
        domain = Domain(self.dataset)
        individuals, scores = individuals_to_refine(outcome, domain)
        found: list[Tree] = []
        if len(individuals):
            complete = lined(individuals, scores.slopes, scores.intercepts, primitives)
            found = [complete.tree(index) for index in range(len(complete))]
        ranges = self.dataset.ranges
        versions = [found, [simplify(tree, primitives, functions=COMPILED, ranges=ranges) for tree in found]]
        if polish and found:
            versions += self._polished(versions[-1], primitives)
        measured = [self._measured(version, primitives) for version in versions]
        chosen = preferred_and_defined(zip(*measured, strict=True), partial(preferred, nats=self._nats), domain)
        rules = None if self.rules is None else partial(self.rules, scaling="written")
        models = [*self._measured([constant], primitives), *tidied(list(chosen), self.dataset, primitives, rules)]
        # Individuals have at most this size; with their lines they may be larger.
        kept = [model for model in models if math.isfinite(model.loss) and model.tree.size <= self.max_size]
        return without_poles(kept, 0.0, domain)

    def _polished(self, trees: Sequence[Tree], primitives: PrimitiveSet) -> Iterator[list[Tree]]:
        """The formulas with fitted constants, and then with simple ones (see `Polishing`)."""
        smoothed = replace(self.dataset, target=self.classes.smoothed(self.dataset.target))
        tiny = float(np.finfo(np.float64).tiny)
        polishing = Polishing(LOG_LOSS, self.threads, TOLERANCE, self.out_of_time, lambda rows: tiny)
        return polishing.versions(population_of(trees, primitives), primitives, smoothed)

    def _measured(self, trees: Sequence[Tree], primitives: PrimitiveSet) -> list[Model]:
        """The formulas as models, with their log-loss on the unsmoothed classes; inf if they break a constraint."""
        if not trees:
            return []
        population = population_of(trees, primitives)
        losses = MachineEvaluator(self.dataset, LOG_LOSS, False, "float64", self.threads).score(population).losses
        share = self.dataset.target_mean
        explained = 1 - losses / entropy(share)
        if self.rules is not None:
            losses = self.rules(population.primitives, scaling="written").charged(
                population, losses, np.ones(len(trees))
            )
        measured = zip(trees, losses.tolist(), explained.tolist(), strict=True)
        return [Model(tree, loss, part, self.weights) for tree, loss, part in measured]

    def _nats(self, worse: Model, better: Model) -> float:
        """Log-likelihood by which one model is worse than another, in nats."""
        return self.dataset.effective_rows * (worse.loss - better.loss)
