"""Who becomes a parent, and who survives: by loss, with a price on size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NOISE_BITS = 20
"""Low bits of a loss's mantissa that are noise: losses within about 2^-32 of each other, relative, tie."""


def ranking(losses: Floats, sizes: Integers, parsimony: float = 0.0) -> Integers:
    """Indices of the individuals, the fittest first.

    Parameters
    ----------
    losses : ndarray of shape (n_individuals,), float64
        Not negative; inf ranks last, never NaN.
    sizes : ndarray of shape (n_individuals,), int64
        Decide between equal losses, the smaller one first; then the order of the individuals decides.
    parsimony : float
        The fitness is ``loss * (1 + parsimony * size)``: the share of its loss that a node has to earn.
    """
    fitness = losses * (1 + parsimony * sizes)
    return np.lexsort((sizes, _rounded(fitness)))


def survivors(losses: Floats, sizes: Integers, n: int) -> Integers:
    """Individuals that go on to the next generation: the best few of every size, without repeated losses.

    Parameters
    ----------
    losses, sizes
        As in `ranking`.
    n : int
        Individuals to keep; all are kept if there are fewer.

    Returns
    -------
    ndarray of shape (min(n, n_individuals),), int64
        Indices of the survivors.

    Notes
    -----
    Individuals of one loss are mostly the same formula in another guise, and would crowd out everything else; only
    the smallest of them competes. The others are ranked among those of their own size, and the ranks compared:
    small formulas, the building blocks of the exact one, are not driven out by large approximate ones. Repeated
    and infinite losses only fill what is left.
    """
    ranked = ranking(losses, sizes)
    rounded = _rounded(losses[ranked])
    distinct = np.isfinite(losses[ranked])
    distinct[1:] &= rounded[1:] != rounded[:-1]
    best = ranked[distinct]
    by_size = np.argsort(sizes[best], kind="stable")
    ordered = sizes[best][by_size]
    rank_in_size = np.empty(len(best), np.int64)
    rank_in_size[by_size] = np.arange(len(best)) - np.searchsorted(ordered, ordered)
    best = best[np.argsort(rank_in_size, kind="stable")]
    kept: Integers = np.concatenate([best, ranked[~distinct]])[:n]
    return kept


def tournaments(ranked: Integers, n: int, competitors: int, rng: np.random.Generator) -> Integers:
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
    winners: Integers = ranked[ranks.min(axis=0)]
    return winners


def _rounded(losses: Floats) -> Integers:
    # The bits of non-negative floats are ordered like the floats.
    rounded: Integers = np.ascontiguousarray(losses).view(np.int64) >> NOISE_BITS
    return rounded
