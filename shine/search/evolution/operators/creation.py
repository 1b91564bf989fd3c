"""Random individuals, by PTC2 with the growth of `shine.lang.growth`."""

from __future__ import annotations

import numpy as np

from shine.compiler.native import native
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.growth import Terminals, grow_tapes, grown_tapes
from shine.lang.population import Population

native_growth = native("growth", writes=8)(grow_tapes)
"""`shine.lang.growth.grow_tapes` as native code."""


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
    limits = targets, np.full(n, max_depth)
    return Population(*grown_tapes(primitives, width, *limits, terminals, rng, native_growth), primitives)
