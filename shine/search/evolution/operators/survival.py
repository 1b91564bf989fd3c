"""Survival: three policies that choose the next generation by loss, complexity and age.

Each is a function ``(losses, complexities, ages, n) -> indices`` of the individuals to keep, the best first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import log
from shine.search.evolution.operators.selection import ranking, rounded

Survival = Callable[[Floats, Indices, Indices, int], Indices]


def best_of_each_complexity(losses: Floats, complexities: Indices, ages: Indices, n: int) -> Indices:
    """The best few of every complexity, without repeated losses.

    Individuals with equal losses are mostly variants of one formula and would crowd out the others: only the simplest
    competes. Each individual is ranked within its complexity, and the best ranks survive. So large approximate formulas
    do not drive out small ones, which are the building blocks of the exact formula. Individuals with repeated or
    infinite losses fill the places left.

    Parameters
    ----------
    losses : ndarray of shape (n_individuals,), float64
    complexities, ages : ndarray of shape (n_individuals,), int64
    n : int
        Individuals to keep; all are kept if there are fewer.

    Returns
    -------
    ndarray of shape (min(n, n_individuals),), int64
    """
    best, others = _distinct(losses, complexities)
    by_complexity = np.argsort(complexities[best], kind="stable")
    ordered = complexities[best][by_complexity]
    rank = np.empty(len(best), np.int64)
    rank[by_complexity] = np.arange(len(best)) - np.searchsorted(ordered, ordered)
    kept: Indices = np.concatenate([best[np.argsort(rank, kind="stable")], others])[:n]
    return kept


def nsga2(losses: Floats, complexities: Indices, ages: Indices, n: int) -> Indices:
    """The first Pareto fronts of loss and complexity, and the least crowded individuals of the last that fits in part.

    Repeated losses, parameters and result are as in `best_of_each_complexity`.

    References
    ----------
    K. Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE TEC 6(2), 2002.
    """
    best, others = _distinct(losses, complexities)
    return _by_fronts(best, others, losses, complexities, n)


def age_fitness(losses: Floats, complexities: Indices, ages: Indices, n: int) -> Indices:
    """The first Pareto fronts of loss and age: young individuals do not compete with older ones of lower loss.

    Parameters and result as in `best_of_each_complexity`.

    References
    ----------
    M. Schmidt and H. Lipson, "Age-fitness Pareto optimization", Genetic Programming Theory and Practice VIII, 2011.
    """
    best, others = _distinct(losses, complexities)
    return _by_fronts(best, others, losses, ages, n)


SURVIVAL: dict[str, Survival] = {
    "complexity": best_of_each_complexity,
    "nsga2": nsga2,
    "age": age_fitness,
}
"""The policies by name."""


def _distinct(losses: Floats, complexities: Indices) -> tuple[Indices, Indices]:
    """The simplest individual of each finite loss, in ascending order of loss; and all other individuals."""
    ranked = ranking(losses, complexities)
    keys = rounded(losses[ranked])
    distinct = np.isfinite(losses[ranked])
    distinct[1:] &= keys[1:] != keys[:-1]
    return ranked[distinct], ranked[~distinct]


def _by_fronts(best: Indices, others: Indices, losses: Floats, second: Indices, n: int) -> Indices:
    # In ascending order of loss, only earlier individuals can dominate one. It belongs to the first front whose least
    # second objective so far is larger than its own. These least values ascend from front to front.
    least: list[int] = []
    found: list[int] = []
    for value in second[best].tolist():
        rank = bisect_right(least, value)
        least[rank : rank + 1] = (value,)
        found.append(rank)
    ranks = np.array(found, np.int64)
    by_front = best[np.argsort(ranks, kind="stable")]
    if len(best) > n:
        # The last front with survivors, and its begin and end.
        ends = np.cumsum(np.bincount(ranks))
        last = int(np.searchsorted(ends, n))
        end = int(ends[last])
        begin = end - int(np.count_nonzero(ranks == last))
        front = by_front[begin:end]
        if end > n:
            front = front[np.argsort(-_crowding(losses[front], second[front]), kind="stable")]
        by_front = np.concatenate([by_front[:begin], front])[:n]
    return np.concatenate([by_front, others[: n - len(by_front)]]).astype(np.int64)


def _crowding(losses: Floats, second: Indices) -> Floats:
    """Distance between the two neighbours of each member of a front; inf for the ends.

    Losses differ by orders of magnitude along a front: their logarithms are compared.
    """
    distance = np.zeros(len(losses))
    with np.errstate(divide="ignore"):
        logarithms = log(np.maximum(losses, np.finfo(np.float64).tiny))
    for values in (logarithms, second.astype(np.float64)):
        span = max(float(np.ptp(values)), np.finfo(np.float64).tiny)
        # A front is sorted: losses ascend as the other objective descends.
        distance[1:-1] += np.abs(values[2:] - values[:-2]) / span
    distance[[0, -1]] = np.inf
    return distance
