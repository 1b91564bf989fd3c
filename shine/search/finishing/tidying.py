"""Models in the form that people write, if that form has the same values and keeps the constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import COMPILED
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.interpret import evaluate
from shine.lang.simplify.terms import Range
from shine.lang.simplify.tidy import tidy
from shine.search.constraints.compiled import CompiledConstraints
from shine.search.evolution.complexity import tree_complexity
from shine.search.finishing.polishing import population_of
from shine.search.models.model import Model

Rules = Callable[[PrimitiveSet], CompiledConstraints]
"""Compiles the constraints for a primitive set."""

CHECKED_ROWS = 1000
"""Rows on which a tidy formula must have the values of the formula that the search found."""

_SAME_CHARGE = 1e-6
"""Relative change of a penalty that counts as none."""

_ALIKE = 1e-11
"""Largest difference of the values, as a share of the largest value, that counts as rounding."""


def tidied(
    models: Sequence[Model], dataset: Dataset, primitives: PrimitiveSet, rules: Rules | None = None
) -> list[Model]:
    """The models in the form that people write, given the ranges of the features in all rows.

    A model stays as it is if that form is not simpler, has other values on the data, or breaks a constraint.

    Parameters
    ----------
    models : sequence of Model
    dataset : Dataset
    primitives : PrimitiveSet
        The functions of the models; others are Shine's own.
    rules : callable, optional
        Compiles the constraints for a primitive set.
    """
    columns = list(dataset.sampled(CHECKED_ROWS, np.random.default_rng(0)).columns)
    result = [_tidied(model, columns, dataset.ranges) for model in models]
    changed = [at for at, model in enumerate(models) if result[at] is not model]
    if rules is not None and changed:
        kept = _keep_constraints([(models[at].tree, result[at].tree) for at in changed], primitives, rules)
        for at, is_kept in zip(changed, kept, strict=True):
            result[at] = result[at] if is_kept else models[at]
    return result


def _tidied(model: Model, columns: Sequence[Floats], ranges: Mapping[str, Range]) -> Model:
    tree = tidy(model.tree, COMPILED, ranges)
    if tree == model.tree or tree_complexity(tree, model.weights) > model.complexity:
        return model
    return replace(model, tree=tree) if same_values(model.tree, tree, columns) else model


def _keep_constraints(pairs: Sequence[tuple[Tree, Tree]], primitives: PrimitiveSet, rules: Rules) -> list[bool]:
    """Whether the second formula of each pair keeps the constraints as well as the first."""
    trees = [tree for pair in pairs for tree in pair]
    population = population_of(trees, primitives)
    ones = np.ones(len(trees))
    # What a loss of 1 becomes: more for broken monotonicity, inf for formulas that are not allowed.
    charges = rules(population.primitives).charged(population, ones, ones)
    return (charges[1::2] <= charges[::2] * (1 + _SAME_CHARGE)).tolist()


def same_values(tree: Tree, other: Tree, columns: Sequence[Floats]) -> bool:
    """Whether two formulas have the same values on all rows, up to rounding."""
    with np.errstate(all="ignore"):
        expected, found = (evaluate(form, columns, np.float64, COMPILED) for form in (tree, other))
        return bool((np.abs(found - expected) <= _ALIKE * np.max(np.abs(expected), initial=0.0)).all())
