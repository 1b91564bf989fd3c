"""Complexity of individuals: the sum of the weights of their nodes, as people write them.

Weights may be fractions; the sum is then rounded, a half upwards, because the front has whole complexities.

A free power such as `x**1.37` is `exp(1.37*log(x))` in a search without `pow`. It counts as three nodes, not as five:
so it competes with formulas of the complexity that it has in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shine.base.typing import Indices
from shine.compiler.tapes import count_powers
from shine.lang.forms.names import listed, normalized, shown
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.population import Population

CONSTANT_NAME = "constant"
"""Name of constants among complexity weights and constraints."""

POWER = ("exp", "mul", "log")
"""Functions that a power is written with if the search has no `pow`."""

SLACK = 1e-9
"""Keeps sums of the same weights in another order from being rounded to different numbers."""


def normalized_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights by normalized names; whole ones are integers."""
    return {
        normalized(name): int(weight) if isinstance(weight, float) and weight.is_integer() else weight
        for name, weight in weights.items()
    }


def complexities(population: Population, weights: Mapping[str, float]) -> Indices:
    """Complexity of each individual, shape (n_individuals,), int64 (see `weighed`)."""
    return rounded(weighed(population, weights))


def rounded(sums: NDArray[Any]) -> Indices:
    """Sums of weights as complexities, which are whole numbers of at least 1."""
    if sums.dtype.kind == "i":
        return sums
    whole: Indices = np.maximum(np.floor(sums + (0.5 + SLACK)), 1).astype(np.int64)
    return whole


def weighed(population: Population, weights: Mapping[str, float]) -> NDArray[Any]:
    """Sum of the weights of each individual; ``exp(c*log(...))`` with a constant c counts as a power.

    Parameters
    ----------
    population : Population
    weights : mapping of str to float
        Weight of primitives, features and `CONSTANT_NAME` by name; 1 if not listed.

    Returns
    -------
    ndarray of shape (n_individuals,), int64, or float64 if a weight is a fraction
    """
    saved = sum(weights.get(name, 1) for name in POWER) - weights.get("pow", 1)
    powers = max(saved, 0) * _power_counts(population)
    frame = population.primitives.frame
    if not weights:
        return population.sizes.astype(np.int64) - (powers + frame)
    by_code = code_weights(population.primitives, weights)
    # Cells beyond the end of a tape have code 0, like constants; a frame is constants and a root, of weight 1.
    beyond = (population.width - population.sizes + max(frame - 1, 0)) * by_code[CONSTANT] + min(frame, 1)
    totals: NDArray[Any] = by_code[population.codes].sum(axis=1) - beyond - powers
    return totals


def _power_counts(population: Population) -> Indices:
    """Number of nodes exp(c*log(...)) or exp(log(...)*c) in each individual."""
    known = population.primitives.function_codes
    counts = np.zeros(len(population), np.int64)
    if not all(name in known for name in POWER):
        return counts
    exp, mul, log = (known[name] for name in POWER)
    tapes = population.codes, population.sizes, population.primitives.arities
    count_powers(len(population), population.width, exp, mul, log, *tapes, counts)
    return counts


def line_costs(weights: Mapping[str, float]) -> tuple[float, float, float]:
    """Weights that a slope other than 1, a positive intercept and a negative one add to an individual."""
    constant, mul, add, sub = (weights.get(name, 1) for name in (CONSTANT_NAME, "mul", "add", "sub"))
    return constant + mul, constant + add, constant + sub


def code_weights(primitives: PrimitiveSet, weights: Mapping[str, float]) -> NDArray[Any]:
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
    return np.array([weights.get(name, 1) for name in names])


def tree_complexity(tree: Tree, weights: Mapping[str, float]) -> int:
    """Complexity of a tree, assignments counted once (see `complexities`)."""
    return trees_complexity([tree], weights)


def trees_complexity(trees: Iterable[Tree], weights: Mapping[str, float]) -> int:
    """Complexity of several trees together."""
    return int(rounded(np.array(sum(_tree_weight(tree, weights) for tree in trees))))


def _tree_weight(tree: Tree, weights: Mapping[str, float]) -> float:
    if not weights:
        return tree.size
    tokens = [token for token in tree.tokens[1:] if token[0] != "assign"]
    names = (CONSTANT_NAME if kind == "constant" else detail if kind == "name" else kind for kind, detail in tokens)
    return sum(weights.get(name, 1) for name in names)
