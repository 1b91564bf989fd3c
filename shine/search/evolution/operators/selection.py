"""Selection of parents, and of the individuals that survive, by loss and complexity."""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.tapes import find_largest, order_survivors
from shine.lang.growth import uniform

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
    # Complexity takes the place of the noise; those beyond a million are equal.
    keys = rounded(fitness) << NOISE_BITS | np.minimum(complexities, (1 << NOISE_BITS) - 1)
    return np.argsort(keys, kind="stable")


def tournament(stream: int, competitors: int, count: int) -> int:
    """Rank of the winner among individuals drawn with replacement from ranks 0 .. count - 1.

    As native code, too (see `shine.compiler.kernels`); `stream` is that of `shine.lang.growth.uniform`.
    """
    best = count - 1
    for turn in range(competitors):
        best = min(best, int(uniform(stream, turn) * count))
    return best


def winners(ranked: Indices, n: int, competitors: int, rng: np.random.Generator) -> Indices:
    """Individuals that win `n` tournaments, shape (n,); `ranked` has the fittest first."""
    found: Indices = ranked[rng.integers(0, len(ranked), (competitors, n)).min(axis=0)]
    return found


def rounded(losses: Floats) -> Indices:
    """Integers with the order of the losses (which must not be negative), equal if losses differ by noise only."""
    # The bits of non-negative floats, read as integers, have the order of the floats.
    rounded: Indices = np.ascontiguousarray(losses).view(np.int64) >> NOISE_BITS
    return rounded


def best_of_each_complexity(losses: Floats, complexities: Indices, n: int) -> Indices:
    """The best few of every complexity, without repeated losses.

    Individuals with equal losses are mostly variants of one formula and would crowd out the others: only the simplest
    competes. Each individual is ranked within its complexity, and the best ranks survive. So large approximate formulas
    do not drive out small ones, which are the building blocks of the exact formula. Individuals with repeated or
    infinite losses fill the places left.

    Parameters
    ----------
    losses : ndarray of shape (n_individuals,), float64
    complexities : ndarray of shape (n_individuals,), int64
    n : int
        Individuals to keep; all are kept if there are fewer.

    Returns
    -------
    ndarray of shape (min(n, n_individuals),), int64
    """
    count, most = len(losses), int(complexities.max(initial=0))
    found = np.empty(count, np.int64)
    room = np.empty(most + 1, np.int64), np.empty(count, np.int64), np.empty(count + 2, np.int64)
    order_survivors(count, most, rounded(losses), complexities, ranking(losses, complexities), *room, found)
    return found[:n]


def largest_of_each_complexity(losses: Floats, complexities: Indices, wanted: Indices) -> Floats:
    """The largest loss among the individuals of each wanted complexity; inf where there are none.

    Offspring with a larger one hardly survive.
    """
    most, found = int(complexities.max(initial=0)), np.empty(len(wanted))
    largest = np.empty(most + 1)
    find_largest(len(losses), len(wanted), most, losses, complexities, wanted, largest, found)
    return found
