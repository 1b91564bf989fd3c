"""Models in the form that people write, if that form has the same values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shine.arrays import COMPILED
from shine.data.dataset import Dataset
from shine.gp.complexity import tree_complexity
from shine.lang.interpret import evaluate
from shine.lang.simplify.tidy import tidy
from shine.lang.tree import Tree
from shine.search.model import Model
from shine.typing import Floats

CHECKED_ROWS = 1000
"""Rows on which a tidy formula must have the values of the formula that the search found."""

_ALIKE = 1e-11
"""Largest difference of the values, as a share of the largest value, that counts as rounding."""


def tidied(models: Sequence[Model], dataset: Dataset) -> list[Model]:
    """The models in the form that people write; a model stays if that form is not simpler or not the same on the data.

    Parameters
    ----------
    models : sequence of Model
    dataset : Dataset
    """
    columns = list(dataset.sampled(CHECKED_ROWS, np.random.default_rng(0)).columns)
    return [_tidied(model, columns) for model in models]


def _tidied(model: Model, columns: Sequence[Floats]) -> Model:
    tree = tidy(model.tree, COMPILED)
    if tree == model.tree or tree_complexity(tree, model.weights) > model.complexity:
        return model
    return replace(model, tree=tree) if _alike(model.tree, tree, columns) else model


def _alike(tree: Tree, other: Tree, columns: Sequence[Floats]) -> bool:
    """Whether two formulas have the same values on all rows, up to rounding."""
    with np.errstate(all="ignore"):
        expected, found = (evaluate(form, columns, np.float64, COMPILED) for form in (tree, other))
        return bool((np.abs(found - expected) <= _ALIKE * np.max(np.abs(expected), initial=0.0)).all())
