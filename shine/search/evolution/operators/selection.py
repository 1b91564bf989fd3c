"""Selection of parents: tournaments of loss with a price on complexity, and epsilon-lexicase selection."""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats, Indices

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
