"""Size limits of populations: the same individuals in wider or narrower arrays, because the width limits the size."""

from __future__ import annotations

from math import ceil

import numpy as np

from shine.base.typing import Indices, Mask
from shine.compiler.tapes import Subtrees
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population
from shine.search.evolution.operators.slots import SlottedSet, ends_of_slots

LIVES = (1.0, 1 / 3, 2 / 3)
"""Share of the largest size that individuals may have in the first, second, third, ... life of an island, in turns.
Of 34 searches for formulas that are hard to find, 15 succeeded, and 14 if every life had the whole size, which is
chance; small lives take about a seventh less time a generation."""


def limit_of(life: int, max_size: int) -> int:
    """Most nodes of individuals in a life of an island, of which the first is 0."""
    # Least limit of nodes, unless the largest size is smaller: fewer nodes are left to the seeding.
    return max(ceil(LIVES[life % len(LIVES)] * max_size), min(10, max_size))


def width_of(primitives: PrimitiveSet, max_size: int) -> int:
    """Width of the populations of a run: most nodes of an individual."""
    return primitives.width if isinstance(primitives, SlottedSet) else max_size


def formula_limits(primitives: PrimitiveSet, max_size: int, max_depth: int) -> tuple[Indices, Indices]:
    """Most nodes, and most levels, of each formula of an individual, both of shape (n_formulas,)."""
    if not isinstance(primitives, SlottedSet):
        return np.array([max_size]), np.array([max_depth])
    slots = primitives.slots
    return np.array([slot.max_size for slot in slots]), np.array([slot.max_depth for slot in slots])


def formula_sizes(population: Population) -> Indices:
    """Nodes of each formula of each individual, shape (n_individuals, n_formulas), int64."""
    if not isinstance(population.primitives, SlottedSet):
        return population.sizes[:, None]
    return np.diff(ends_of_slots(population), prepend=-1, axis=1)


def formula_depths(population: Population) -> Indices:
    """Levels of each formula of each individual, shape (n_individuals, n_formulas), int64."""
    slotted = isinstance(population.primitives, SlottedSet)
    ends = ends_of_slots(population) if slotted else population.sizes[:, None] - 1
    return np.take_along_axis(Subtrees.of(population).depths, ends, axis=1).astype(np.int64)


def excess(population: Population, max_size: int, max_depth: int) -> tuple[int, str] | None:
    """The individual that exceeds a limit of the run most, and by what, in words; None if all keep the limits."""
    most_nodes, most_levels = formula_limits(population.primitives, max_size, max_depth)
    for unit, setting, limits, found in (
        ("nodes", "max_size", most_nodes, formula_sizes(population)),
        ("levels", "max_depth", most_levels, formula_depths(population)),
    ):
        if not len(limits):
            continue
        worst, formula = divmod(int(np.argmax(found - limits)), found.shape[1])
        if found[worst, formula] > limits[formula]:
            return worst, f"has {found[worst, formula]} {unit}, and {setting} is {limits[formula]}; raise {setting}"
    return None


def within_life(population: Population, life: int, max_size: int) -> Mask:
    """Whether individuals keep the limits of a life of an island, shape (n_individuals,), bool."""
    most, _ = formula_limits(population.primitives, max_size, 1)
    limits = np.array([limit_of(life, each) for each in most.tolist()])
    return np.asarray((formula_sizes(population) <= limits).all(axis=1))


def at_width(population: Population, width: int) -> Population:
    """A population with room for `width` nodes; no individual may be larger."""
    if width == population.width:
        return population
    codes, values = np.zeros((len(population), width), np.int16), np.zeros((len(population), width))
    shared = min(width, population.width)
    codes[:, :shared], values[:, :shared] = population.codes[:, :shared], population.values[:, :shared]
    return Population(codes, values, population.sizes, population.primitives)


def within(parents: Population, limit: int) -> Population:
    """The parents of at most `limit` nodes, which have offspring of at most `limit` nodes."""
    return parents if parents.width <= limit else at_width(parents.take(parents.sizes <= limit), limit)
