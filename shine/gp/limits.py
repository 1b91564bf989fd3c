"""Size limits of populations: the same individuals in wider or narrower arrays, because the width limits the size."""

from __future__ import annotations

from math import ceil

import numpy as np

from shine.gp.subtrees import Parents, Subtrees
from shine.lang.population import Population

LIVES = (1.0, 1 / 3, 2 / 3)
"""Share of the largest size that individuals may have in the first, second, third, ... life of an island, in turns.
Of 34 searches for formulas that are hard to find, 15 succeeded, and 14 if every life had the whole size, which is
chance; small lives take about a seventh less time a generation."""

SMALLEST_LIMIT = 10
"""Least limit of nodes, unless the largest size is smaller: fewer nodes are left to the seeding."""


def limit_of(life: int, max_size: int) -> int:
    """Most nodes of individuals in a life of an island, of which the first is 0."""
    return max(ceil(LIVES[life % len(LIVES)] * max_size), min(SMALLEST_LIMIT, max_size))


def at_width(population: Population, width: int) -> Population:
    """A population with room for `width` nodes; no individual may be larger."""
    codes, values = np.zeros((len(population), width), np.int16), np.zeros((len(population), width))
    shared = min(width, population.width)
    codes[:, :shared], values[:, :shared] = population.codes[:, :shared], population.values[:, :shared]
    return Population(codes, values, population.sizes, population.primitives)


def within(parents: Parents, limit: int) -> Parents:
    """The parents of at most `limit` nodes, which have offspring of at most `limit` nodes."""
    if parents.population.width <= limit:
        return parents
    small = parents.take(parents.population.sizes <= limit)
    cells = small.subtrees
    subtrees = Subtrees(*(np.ascontiguousarray(a[:, :limit]) for a in (cells.sizes, cells.depths, cells.levels)))
    return Parents(at_width(small.population, limit), subtrees)
