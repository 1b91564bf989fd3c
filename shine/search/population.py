"""The public face of populations: `shine.Population`, which can also be random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from shine.gp.creation import Terminals, ptc2
from shine.lang import population
from shine.lang.parse import PrimitiveSource, primitive_table
from shine.lang.primitives import PrimitiveSet, select


class Population(population.Population):
    """Individuals of one primitive set, as one struct of arrays.

    Parameters
    ----------
    codes : ndarray of shape (n_individuals, width), int16
        Postfix tapes: 0 is a constant, 1, 2, ... the features, the functions of `primitives` follow.
    values : ndarray of shape (n_individuals, width), float64
        Value of each constant.
    sizes : ndarray of shape (n_individuals,), int64
        Nodes of each individual.
    primitives : PrimitiveSet
    """

    @classmethod
    def random(
        cls,
        count: int,
        primitives: Sequence[PrimitiveSource] = ("add", "sub", "mul", "div"),
        features: int | Sequence[str] = 1,
        max_size: int = 30,
        rng: np.random.Generator | None = None,
        *,
        max_depth: int = 1000,
        constant_share: float = 0.3,
    ) -> Self:
        """Random individuals, their sizes drawn uniformly from 1 to `max_size` (PTC2, Luke 2000).

        Parameters
        ----------
        count : int
        primitives : sequence of str, function or Primitive
            Names of Shine's primitives, plain Python functions in the restricted language, or what
        `shine.primitive_from_llvm` makes.
        features : int or sequence of str
            How many columns there are, called ``x0, x1, ...``; or their names.
        max_size, max_depth : int
            Limits in nodes and levels; they always hold.
        rng : numpy.random.Generator, optional
            A fresh one, not reproducible, by default.
        constant_share : float
            Share of leaves that are constants, drawn from -5 to 5.

        Raises
        ------
        ValueError
            If a primitive is unknown.
        """
        if count < 0 or max_size < 1 or max_depth < 1:
            raise ValueError("count must be at least 0, max_size and max_depth at least 1")
        table, names = primitive_table(primitives)
        columns = tuple(f"x{i}" for i in range(features)) if isinstance(features, int) else tuple(features)
        primitive_set = PrimitiveSet(select(table, names), columns)
        terminals = Terminals((-5.0, 5.0), constant_share)
        generator = np.random.default_rng() if rng is None else rng
        made = ptc2(count, primitive_set, max_size, max_depth, terminals, generator, max_size)
        return cls(made.codes, made.values, made.sizes, primitive_set)
