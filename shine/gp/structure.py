"""Where the subtrees of a tape are: their sizes, depths and levels, for a whole population at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.typing import Codes, Indices, Mask

Integers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Structure:
    """The shape of every individual; each array has shape (n_individuals, width) and is 0 behind the end of a tape.

    Parameters
    ----------
    sizes : ndarray, int32
        Nodes of the subtree that ends at each position, which is ``position - size + 1 .. position``.
    depths : ndarray, int32
        Levels of that subtree; a single node has one.
    levels : ndarray, int32
        Distance of each node from the root.
    """

    sizes: Integers
    depths: Integers
    levels: Integers

    @classmethod
    def of(cls, population: Population) -> Self:
        """The structure of a population."""
        order = np.argsort(-population.sizes, kind="stable")
        arities = population.primitives.arities.astype(np.int16)[population.codes[order]]
        sizes, depths = np.empty(arities.shape, np.int32), np.empty(arities.shape, np.int32)
        for_longest_first = _subtrees(np.ascontiguousarray(arities.T), population.sizes[order])
        sizes[order], depths[order] = (cells.T for cells in for_longest_first)
        return cls(sizes, depths, _levels(sizes))

    def take(self, indices: ArrayLike) -> Structure:
        """The structure of the individuals at some indices, or where a mask holds."""
        at = np.asarray(indices)
        return Structure(self.sizes[at], self.depths[at], self.levels[at])


@dataclass(frozen=True, eq=False)
class Parents:
    """Individuals that offspring are made of, with their structure.

    Parameters
    ----------
    population : Population
    structure : Structure
        Of the same individuals.
    """

    population: Population
    structure: Structure

    @classmethod
    def of(cls, population: Population) -> Self:
        """Every individual of a population as a parent."""
        return cls(population, Structure.of(population))

    def __len__(self) -> int:
        return len(self.population)

    @classmethod
    def concatenate(cls, groups: Sequence[Parents]) -> Self:
        """The parents of several groups, in order."""
        structures = [group.structure for group in groups]
        structure = Structure(
            np.concatenate([structure.sizes for structure in structures]),
            np.concatenate([structure.depths for structure in structures]),
            np.concatenate([structure.levels for structure in structures]),
        )
        return cls(Population.concatenate([group.population for group in groups]), structure)

    def take(self, indices: ArrayLike) -> Parents:
        """The parents at some indices; an index may repeat."""
        return Parents(self.population.take(indices), self.structure.take(indices))


def depths(population: Population) -> Integers:
    """Levels of each individual, shape (n_individuals,)."""
    return Structure.of(population).depths[np.arange(len(population)), population.sizes - 1]


def functions(primitives: PrimitiveSet, codes: Codes) -> Mask:
    """Where codes are functions, in the shape of `codes`."""
    return codes >= primitives.first_function


def _subtrees(arities: Codes, lengths: Indices) -> tuple[Indices, Indices]:
    """Sizes and depths of the subtrees, shape (width, n), from arities of shape (width, n).

    The last argument of a function ends just before it, and each earlier one just before the one that follows; so a
    sweep over positions, with all individuals in step, finds the arguments' sizes and depths already known. The
    individuals come in descending length, so that those that go on at a position are a prefix.
    """
    width, n = arities.shape
    # One type throughout: a conversion inside the sweep costs more than the arithmetic.
    sizes, depths = np.ones((width, n), np.int64), np.ones((width, n), np.int64)
    has_argument = [(arities > argument).astype(np.int64) for argument in range(int(arities.max(initial=0)))]
    columns = np.arange(n)
    active = np.searchsorted(-lengths, -np.arange(width), side="left")
    for position, m in enumerate(active.tolist()):
        size, depth = sizes[position, :m], depths[position, :m]
        cells = columns[:m] + (position - 1) * n
        for has in has_argument if position else ():
            # Where there is no such argument the index is arbitrary, and what is found there multiplied away.
            argument_size = sizes.take(cells, mode="clip")
            size += argument_size * has[position, :m]
            argument_depth = depths.take(cells, mode="clip")
            argument_depth += 1
            argument_depth *= has[position, :m]
            np.maximum(depth, argument_depth, out=depth)
            argument_size *= n
            cells -= argument_size
    sizes *= np.arange(width)[:, None] < lengths
    depths *= np.arange(width)[:, None] < lengths
    return sizes, depths


def _levels(sizes: Integers) -> Integers:
    """Levels from subtree sizes, both of shape (n, width).

    The ancestors of a node are the other subtrees that contain it: those that began by its position, less those
    that ended before it, which is one at each earlier position.
    """
    n, width = sizes.shape
    positions = np.arange(width, dtype=np.int32)
    inside = sizes > 0
    starts = positions + 1 - sizes + (width * np.arange(n))[:, None]
    began = np.bincount(starts[inside], minlength=n * width).reshape(n, width)
    levels: Integers = np.cumsum(began, axis=1, dtype=np.int32)
    levels -= positions + 1
    levels *= inside
    return levels
