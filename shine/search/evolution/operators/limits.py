"""Size limits of populations: the same individuals in wider or narrower arrays, because the width limits the size."""

from __future__ import annotations

import numpy as np

from shine.base.typing import Indices
from shine.compiler.tapes import Subtrees
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population
from shine.search.evolution.operators.slots import SlottedSet, ends_of_slots


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


def at_width(population: Population, width: int) -> Population:
    """A population with room for `width` nodes; no individual may be larger."""
    if width == population.width:
        return population
    codes, values = np.zeros((len(population), width), np.int16), np.zeros((len(population), width))
    shared = min(width, population.width)
    codes[:, :shared], values[:, :shared] = population.codes[:, :shared], population.values[:, :shared]
    return Population(codes, values, population.sizes, population.primitives)
