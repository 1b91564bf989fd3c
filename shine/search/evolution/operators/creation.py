"""Random individuals: ramped half-and-half and PTC2, both by the growth of `shine.lang.growth`."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.native import native
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.growth import Terminals, grow_tapes, grown_tapes
from shine.lang.population import Population
from shine.search.evolution.settings import EvolutionSettings

native_growth = native("growth", writes=8)(grow_tapes)
"""`shine.lang.growth.grow_tapes` as native code."""


def created(
    n: int,
    primitives: PrimitiveSet,
    settings: EvolutionSettings,
    limit: int,
    terminals: Terminals,
    rng: np.random.Generator,
) -> Population:
    """Random individuals of at most `limit` nodes, by the method of the settings."""
    match settings.creation:
        case "ptc2":
            return ptc2(n, primitives, limit, settings.max_depth, terminals, rng, settings.initial_size)
        case "ramped":
            return ramped_half_and_half(n, primitives, limit, settings.max_depth, terminals, rng)
    assert_never(settings.creation)


def ptc2(
    n: int,
    primitives: PrimitiveSet,
    width: int,
    max_depth: int,
    terminals: Terminals,
    rng: np.random.Generator,
    max_size: int | None = None,
) -> Population:
    """Individuals of evenly spread sizes, by probabilistic tree creation 2.

    Parameters
    ----------
    n : int
        Individuals to make.
    primitives : PrimitiveSet
    width : int
        Width of the population.
    max_depth : int
        Most levels of an individual.
    terminals : Terminals
    rng : numpy.random.Generator
    max_size : int, optional
        Sizes are drawn from 1 .. max_size; the width by default.

    Returns
    -------
    Population
        Sizes are smaller than drawn if the arities of the functions or the depth do not allow them.

    References
    ----------
    S. Luke, "Two fast tree-creation algorithms for genetic programming", IEEE TEC 4(3), 2000.
    """
    targets = rng.integers(1, min(width, max_size or width) + 1, n)
    return grown(primitives, width, targets, np.full(n, max_depth), np.zeros(n), terminals, rng)


def ramped_half_and_half(
    n: int, primitives: PrimitiveSet, width: int, max_depth: int, terminals: Terminals, rng: np.random.Generator
) -> Population:
    """Half of the individuals by grow, half by full, with depths from 2 to 6, at most `max_depth` (Koza 1992)."""
    deepest = min(6, max_depth)
    depths = rng.integers(min(2, deepest), deepest + 1, n)
    early = np.where(rng.random(n) < 0.5, _terminal_probability(primitives), 0.0)
    return grown(primitives, width, np.full(n, width), depths, early, terminals, rng)


def _terminal_probability(primitives: PrimitiveSet) -> float:
    """Share of terminals in a primitive set; the constant counts as one."""
    n_terminals = len(primitives.features) + 1
    return n_terminals / (n_terminals + len(primitives.functions))


def grown(
    primitives: PrimitiveSet,
    width: int,
    targets: Indices,
    max_depths: Indices,
    early: Floats,
    terminals: Terminals,
    rng: np.random.Generator,
) -> Population:
    """Individuals grown from an open root (see `shine.lang.growth.grown_tapes` for the parameters)."""
    limits = targets, max_depths, early
    return Population(*grown_tapes(primitives, width, *limits, terminals, rng, native_growth), primitives)
