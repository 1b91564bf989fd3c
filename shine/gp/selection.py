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


def survivors(losses: Floats, sizes: Integers, n: int, parsimony: float = 0.0) -> Integers:
    """The `n` fittest individuals, or all if there are fewer, each loss represented once as long as there are others.

    Individuals of the same loss are mostly the same formula in another guise, and would crowd out everything else.
    The fittest of them, the smallest, comes first, and its likes come after all other losses.

    Parameters
    ----------
    losses, sizes, parsimony
        As in `ranking`.
    n : int

    Returns
    -------
    ndarray of shape (min(n, n_individuals),), int64
        Indices of the survivors.
    """
    ranked = ranking(losses, sizes, parsimony)
    _, first = np.unique(_rounded(losses[ranked]), return_index=True)
    repeated = np.ones(len(ranked), np.bool_)
    repeated[first] = False
    kept: Integers = np.concatenate([ranked[~repeated], ranked[repeated]])[:n]
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
