"""Complexity of individuals: their nodes, each counted as often as its weight says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shine.lang.names import listed, shown
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.lang.tree import Tree
from shine.typing import Indices

CONSTANT_NAME = "constant"
"""What constants are called where complexity weights are given by name."""


def complexities(population: Population, weights: Mapping[str, int]) -> Indices:
    """Complexity of each individual.

    Parameters
    ----------
    population : Population
    weights : mapping of str to int
        Weight of primitives, features, or `CONSTANT_NAME` by name; 1 for those that are not in it.

    Returns
    -------
    ndarray of shape (n_individuals,), int64
    """
    if not weights:
        return population.sizes.astype(np.int64)
    by_code = code_weights(population.primitives, weights)
    # Behind the end of a tape, codes are 0, which is that of a constant.
    behind = (population.width - population.sizes) * by_code[CONSTANT]
    totals: Indices = by_code[population.codes].sum(axis=1) - behind
    return totals


def code_weights(primitives: PrimitiveSet, weights: Mapping[str, int]) -> Indices:
    """Weight of each code, shape (n_codes,).

    Raises
    ------
    ValueError
        If a name is none of the primitive set's.
    """
    names = [CONSTANT_NAME, *primitives.features, *(function.name for function in primitives.functions)]
    unknown = sorted(set(weights) - set(names))
    if unknown:
        raise ValueError(
            f"complexity of {shown(unknown[0])}, which is not part of the search; known are {listed(names, 100)}"
        )
    return np.array([weights.get(name, 1) for name in names], dtype=np.int64)


def tree_complexity(tree: Tree, weights: Mapping[str, int]) -> int:
    """Complexity of a tree, assignments counted once (see `complexities`)."""
    if not weights:
        return tree.size
    tokens = [token for token in tree.tokens[1:] if token[0] != "assign"]
    names = (CONSTANT_NAME if kind == "constant" else detail if kind == "name" else kind for kind, detail in tokens)
    return sum(weights.get(name, 1) for name in names)
