"""Complexity of individuals: the sum of the weights of their nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shine.lang.names import listed, shown
from shine.lang.population import Population
from shine.lang.primitives import CONSTANT, PrimitiveSet
from shine.lang.tree import Tree
from shine.typing import Floats, Indices

CONSTANT_NAME = "constant"
"""Name of constants among complexity weights and constraints."""


def complexities(population: Population, weights: Mapping[str, int]) -> Indices:
    """Complexity of each individual.

    Parameters
    ----------
    population : Population
    weights : mapping of str to int
        Weight of primitives, features and `CONSTANT_NAME` by name; 1 if not listed.

    Returns
    -------
    ndarray of shape (n_individuals,), int64
    """
    if not weights:
        return population.sizes.astype(np.int64)
    by_code = code_weights(population.primitives, weights)
    # Cells beyond the end of a tape have code 0, like constants.
    beyond = (population.width - population.sizes) * by_code[CONSTANT]
    totals: Indices = by_code[population.codes].sum(axis=1) - beyond
    return totals


def constant_counts(population: Population) -> Indices:
    """Number of constants in each individual, shape (n_individuals,), int64."""
    inside = np.arange(population.width) < population.sizes[:, None]
    counts: Indices = np.count_nonzero((population.codes == CONSTANT) & inside, axis=1)
    return counts


def line_complexities(slopes: Floats, intercepts: Floats, weights: Mapping[str, int]) -> Indices:
    """Complexity that slope and intercept add to individuals; none for a slope of 1 and for an intercept of 0.

    Parameters
    ----------
    slopes, intercepts : ndarray of shape (n_individuals,)
    weights : mapping of str to int
        See `complexities`.

    Returns
    -------
    ndarray of shape (n_individuals,), int64
    """
    constant, mul, add, sub = (weights.get(name, 1) for name in (CONSTANT_NAME, "mul", "add", "sub"))
    factor = np.where(slopes != 1, constant + mul, 0)
    summand = np.where(intercepts != 0, constant + np.where(intercepts > 0, add, sub), 0)
    total: Indices = (factor + summand).astype(np.int64)
    return total


def code_weights(primitives: PrimitiveSet, weights: Mapping[str, int]) -> Indices:
    """Weight of each code, shape (n_codes,).

    Raises
    ------
    ValueError
        If a name is not in the primitive set.
    """
    names = [CONSTANT_NAME, *primitives.features, *(function.name for function in primitives.functions)]
    unknown = sorted(set(weights) - set(names))
    if unknown:
        raise ValueError(
            f"complexity has {shown(unknown[0])}, which is not part of the search; known are {listed(names, 100)}"
        )
    return np.array([weights.get(name, 1) for name in names], dtype=np.int64)


def tree_complexity(tree: Tree, weights: Mapping[str, int]) -> int:
    """Complexity of a tree, assignments counted once (see `complexities`)."""
    if not weights:
        return tree.size
    tokens = [token for token in tree.tokens[1:] if token[0] != "assign"]
    names = (CONSTANT_NAME if kind == "constant" else detail if kind == "name" else kind for kind, detail in tokens)
    return sum(weights.get(name, 1) for name in names)
