"""The subtrees of every tape of a population: their sizes, depths and levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shine.base.typing import Codes, Indices
from shine.lang.population import Population, positions_of

Integers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Subtrees:
    """The subtree that ends at each position of each tape.

    Each array has shape (n_individuals, width) and is 0 beyond the end of a tape.

    Parameters
    ----------
    sizes : ndarray, int32
        Nodes of each subtree; it lies at the positions ``position - size + 1 .. position``.
    depths : ndarray, int32
        Levels of each subtree; a single node has one.
    levels : ndarray, int32
        Distance of each node from the root.
    """

    sizes: Integers
    depths: Integers
    levels: Integers

    @classmethod
    def of(cls, population: Population) -> Self:
        """The subtrees of a population."""
        order = np.argsort(-population.sizes, kind="stable")
        primitives = population.primitives
        arity_of_code = primitives.arities.astype(np.int16)
        if primitives.frame:
            # The root has very many arguments; its subtree is the whole tape.
            arity_of_code[-1] = 0
        arities = arity_of_code[population.codes[order]]
        sizes, depths = np.empty(arities.shape, np.int32), np.empty(arities.shape, np.int32)
        for_longest_first = _subtrees(np.ascontiguousarray(arities.T), population.sizes[order])
        sizes[order], depths[order] = (cells.T for cells in for_longest_first)
        if not primitives.frame:
            return cls(sizes, depths, _levels(sizes))
        everyone, roots = np.arange(len(population)), population.sizes - 1
        sizes[everyone, roots] = population.sizes
        levels = _levels(sizes)
        depths[everyone, roots] = 1 + levels.max(axis=1, initial=0)
        return cls(sizes, depths, levels)

    def take(self, indices: ArrayLike) -> Subtrees:
        """The subtrees of the individuals at some indices, or where a mask holds."""
        at = positions_of(indices)
        return Subtrees(self.sizes.take(at, axis=0), self.depths.take(at, axis=0), self.levels.take(at, axis=0))


@dataclass(frozen=True, eq=False)
class Parents:
    """Individuals that may have offspring, with their subtrees.

    Parameters
    ----------
    population : Population
    subtrees : Subtrees
        Subtrees of the same individuals.
    """

    population: Population
    subtrees: Subtrees

    @classmethod
    def of(cls, population: Population) -> Self:
        """Every individual of a population as a parent."""
        return cls(population, Subtrees.of(population))

    def __len__(self) -> int:
        return len(self.population)

    @classmethod
    def concatenate(cls, groups: Sequence[Parents]) -> Self:
        """The parents of several groups, in order."""
        subtrees = Subtrees(
            np.concatenate([group.subtrees.sizes for group in groups]),
            np.concatenate([group.subtrees.depths for group in groups]),
            np.concatenate([group.subtrees.levels for group in groups]),
        )
        return cls(Population.concatenate([group.population for group in groups]), subtrees)

    def take(self, indices: ArrayLike) -> Parents:
        """The parents at some indices; an index may repeat."""
        return Parents(self.population.take(indices), self.subtrees.take(indices))


def depths(population: Population) -> Integers:
    """Levels of each individual, shape (n_individuals,)."""
    return Subtrees.of(population).depths[np.arange(len(population)), population.sizes - 1]


def begins(population: Population, rows: Indices, ends: Indices) -> Indices:
    """First position of the subtree that ends at each of some positions, shape (n_positions,).

    For few subtrees this takes less time than all of them (`Subtrees`). Postfix notation leaves values on a stack. A
    subtree begins after the last position before its end that left fewer values than the end does.
    """
    pushed = (1 - population.primitives.arities).astype(np.int32)
    heights = np.cumsum(pushed[population.codes[rows]], axis=1, dtype=np.int32)
    lower = heights < heights[np.arange(len(rows)), ends][:, None]
    lower &= np.arange(population.width) < ends[:, None]
    last = population.width - 1 - np.argmax(lower[:, ::-1], axis=1)
    found: Indices = np.where(lower.any(axis=1), last + 1, 0)
    return found


def _subtrees(arities: Codes, lengths: Indices) -> tuple[Indices, Indices]:
    """Sizes and depths of the subtrees, shape (width, n), from arities of shape (width, n).

    The last argument of a function ends just before it, and each earlier one just before the argument that follows. So
    a sweep over positions, with all individuals in step, always knows the arguments' sizes and depths. The individuals
    come in descending length: those that have a given position are a prefix.
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
            # If a function lacks this argument, the index is arbitrary and the value found there is multiplied by 0.
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

    The ancestors of a node are the roots of the other subtrees that contain it. Count the subtrees that begin at its
    position or before, and subtract those that end before it: one at each earlier position.
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
