"""Selection of parents, and of the individuals that survive, by loss, complexity and age.

A policy of survival is a function ``(losses, complexities, ages, n) -> indices`` of the individuals to keep, the best
first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import log
from shine.compiler.tapes import rank_by_fronts

NOISE_BITS = 20
"""Low bits of a loss that count as noise: losses tie if they differ by less than about 2^-32 of their size."""


def ranking(losses: Floats, complexities: Indices, parsimony: float = 0.0) -> Indices:
    """Indices of the individuals, the fittest first.

    Parameters
    ----------
    losses : ndarray of shape (n_individuals,), float64
        Not negative; inf ranks last, never NaN.
    complexities : ndarray of shape (n_individuals,), int64
        Among individuals of equal fitness the simplest comes first; ties are left in the order of the individuals.
    parsimony : float
        The fitness is ``loss * (1 + parsimony * complexity)``, which charges this share of the loss for each node.
    """
    fitness = losses * (1 + parsimony * complexities)
    return np.lexsort((complexities, rounded(fitness)))


def tournaments(ranked: Indices, n: int, competitors: int, rng: np.random.Generator) -> Indices:
    """Winners of `n` tournaments among individuals drawn with replacement.

    Parameters
    ----------
    ranked : ndarray of shape (n_individuals,), int64
        Indices of the individuals, the fittest first.
    n, competitors : int
        Tournaments, and individuals in each.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n,), int64
        Indices of the winners.
    """
    ranks = rng.integers(0, len(ranked), (competitors, n))
    winners: Indices = ranked[ranks.min(axis=0)]
    return winners


def lexicase(errors: Floats, n: int, rng: np.random.Generator) -> Indices:
    """Parents by epsilon-lexicase selection.

    Each selection goes through the cases in its own random order. Candidates that are worse than the best one left by
    more than the epsilon of the case drop out, until one candidate is left or the cases end.

    Parameters
    ----------
    errors : ndarray of shape (n_individuals, n_cases), float64
        Absolute errors on a sample of the rows; inf if an individual must not be selected. If that holds for all, any
        may be.
    n : int
        Parents to select.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n,), int64
        Indices of the parents, drawn from the candidates that are left.

    References
    ----------
    W. La Cava et al., "Epsilon-lexicase selection for regression", GECCO 2016 (epsilon is the median absolute deviation
    of a case's errors); T. Helmuth and L. Spector, "Explaining and exploiting the advantages of down-sampled lexicase
    selection", ALIFE 2020.
    """
    individuals, cases = errors.shape
    usable = np.isfinite(errors).all(axis=1)
    left = np.flatnonzero(usable) if usable.any() else np.arange(individuals)
    # A quarter of the largest number stands for infinity: sums and differences of two do not overflow.
    own = np.where(np.isfinite(errors[left]), errors[left], np.finfo(np.float64).max / 4).T
    epsilon = np.median(np.abs(own - np.median(own, axis=1, keepdims=True)), axis=1)
    alive = np.ones((n, len(left)), np.bool_)
    orders = rng.permuted(np.tile(np.arange(cases), (n, 1)), axis=1)
    open_, chosen = np.arange(n), rng.random(n)
    for place in range(cases):
        if not len(open_):
            break
        case = orders[open_, place]
        faced = np.where(alive[open_], own[case], np.inf)
        passed = faced <= (faced.min(axis=1) + epsilon[case])[:, None]
        alive[open_] &= passed
        open_ = open_[np.count_nonzero(alive[open_], axis=1) > 1]
    counts = np.count_nonzero(alive, axis=1)
    nth = (chosen * counts).astype(np.int64)
    winners = np.argmax(np.cumsum(alive, axis=1) > nth[:, None], axis=1)
    selected: Indices = left[winners]
    return selected


def rounded(losses: Floats) -> Indices:
    """Integers with the order of the losses (which must not be negative), equal if losses differ by noise only."""
    # The bits of non-negative floats, read as integers, have the order of the floats.
    rounded: Indices = np.ascontiguousarray(losses).view(np.int64) >> NOISE_BITS
    return rounded


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


def largest_of_each_complexity(losses: Floats, complexities: Indices, wanted: Indices) -> Floats:
    """The largest loss among the individuals of each wanted complexity; inf where there are none.

    Offspring with a larger one hardly survive.
    """
    known, places = np.unique(complexities, return_inverse=True)
    largest = np.full(len(known), -np.inf)
    np.maximum.at(largest, places, losses)
    at = np.searchsorted(known, wanted)
    return np.where(known.take(at, mode="clip") == wanted, largest.take(at, mode="clip"), np.inf)


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
    ranks, least = np.empty(len(best), np.int64), np.empty(len(best) + 1, np.int64)
    rank_by_fronts(len(best), second[best], least, ranks)
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
