"""Random tapes, grown many at once.

Growth starts from an open root. It keeps turning a random open place into a function, whose arguments become open
places, until a limit is met. The places that are still open become terminals. The methods of
creation (`shine.search.evolution.operators.creation`) differ only in the limits, and in the chance that a place becomes
a terminal early.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Codes, Floats, Indices
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet


@dataclass(frozen=True)
class Terminals:
    """Distribution of terminals.

    Parameters
    ----------
    constants : (float, float)
        Range of ephemeral constants; half of them are whole numbers where the range holds any.
    share : float
        Share of terminals that are constants; without features all of them are.
    """

    constants: tuple[float, float] = (-5.0, 5.0)
    share: float = 0.2

    def draw(self, n: int, primitives: PrimitiveSet, rng: np.random.Generator) -> tuple[Codes, Floats]:
        """Codes and values of `n` random terminals."""
        n_features = len(primitives.features)
        if n_features:
            features = rng.integers(1, n_features + 1, n)
            codes = np.where(rng.random(n) < self.share, CONSTANT, features)
        else:
            codes = np.full(n, CONSTANT)
        values = np.zeros(n)
        constant = np.flatnonzero(codes == CONSTANT)
        values[constant] = self._constants(len(constant), rng)
        return codes.astype(np.int16), values

    def _constants(self, n: int, rng: np.random.Generator) -> Floats:
        low, high = self.constants
        values = low + (high - low) * rng.random(n)
        # Formulas people write are full of 1, 2 and 3. Adding 0 turns -0.0 into 0.0.
        whole = np.rint(values) + 0.0
        return np.where((rng.random(n) < 0.5) & (whole >= low) & (whole <= high), whole, values)


def grown_tapes(
    primitives: PrimitiveSet,
    width: int,
    targets: Indices,
    max_depths: Indices,
    early: Floats,
    terminals: Terminals,
    rng: np.random.Generator,
) -> tuple[Codes, Floats, Indices]:
    """Tapes grown from an open root, as the arrays of a `shine.lang.population.Population`.

    Parameters
    ----------
    primitives : PrimitiveSet
    width : int
        Width of the arrays.
    targets : ndarray of shape (n,), int64
        Most nodes of each tape, 1 .. width; growth stops where every function would exceed it.
    max_depths : ndarray of shape (n,), int64
        Most levels of each tape, at least 1.
    early : ndarray of shape (n,), float64
        Probability that a place below the root becomes a terminal although it has room for a function.
    terminals : Terminals
    rng : numpy.random.Generator

    Returns
    -------
    codes, values : ndarray of shape (n, width)
    sizes : ndarray of shape (n,), int64
    """
    n = len(targets)
    growth = _Growth(primitives, targets, max_depths)
    for _ in range(int(targets.max(initial=1))):
        if not growth.expand(early, rng):
            break
    codes, values = np.zeros((n, width), np.int16), np.zeros((n, width))
    positions = growth.postfix()
    there = np.flatnonzero(positions >= 0)
    codes.ravel()[there // growth.most * width + positions[there]] = growth.codes[there]
    at = np.flatnonzero((codes == CONSTANT) & (np.arange(width) < growth.sizes[:, None]))
    codes.ravel()[at], values.ravel()[at] = terminals.draw(len(at), primitives, rng)
    return codes, values, growth.sizes


class _Growth:
    """Trees under construction, their nodes numbered in the order of their creation: a parent before its arguments.

    The arrays hold `most` nodes of each tree: the code of each node (0 while it has no function), its parent and its
    level; `open` lists the nodes that may still become functions.
    """

    def __init__(self, primitives: PrimitiveSet, targets: Indices, max_depths: Indices) -> None:
        n, most = len(targets), int(targets.max(initial=1))
        arities = primitives.arities[primitives.first_function :]
        by_arity = np.argsort(arities, kind="stable")
        self.function_arities = arities[by_arity]
        self.function_codes = (by_arity + primitives.first_function).astype(np.int16)
        self.targets, self.max_depths, self.most, self.begins = targets, max_depths, most, most * np.arange(n)
        self.codes = np.zeros(n * most, np.int16)
        self.parents, self.levels, self.open = (np.zeros(n * most, np.int64) for _ in range(3))
        self.sizes = np.ones(n, np.int64)
        self.n_open = (max_depths > 1).astype(np.int64)

    def expand(self, early: Floats, rng: np.random.Generator) -> bool:
        """Give one random open node of each tree a function; False if no tree has room for one."""
        candidates = np.searchsorted(self.function_arities, self.targets - self.sizes, side="right")
        rows = np.flatnonzero((self.n_open > 0) & (candidates > 0))
        if not len(rows):
            return False
        begins, n_open = self.begins[rows], self.n_open[rows]
        chosen = begins + (rng.random(len(rows)) * n_open).astype(np.int64)
        nodes = self.open[chosen]
        self.n_open[rows] = n_open - 1
        self.open[chosen] = self.open[begins + n_open - 1]
        stays = np.flatnonzero((rng.random(len(rows)) >= early[rows]) | (nodes == 0))
        rows, nodes = rows[stays], nodes[stays]
        drawn = (rng.random(len(rows)) * candidates[rows]).astype(np.int64)
        self.codes[self.begins[rows] + nodes] = self.function_codes[drawn]
        self._add_arguments(rows, nodes, self.function_arities[drawn])
        return True

    def _add_arguments(self, rows: Indices, nodes: Indices, arities: Indices) -> None:
        level = self.levels[self.begins[rows] + nodes] + 1
        # A node on the last level has no room for arguments.
        expandable = level + 1 < self.max_depths[rows]
        ends = np.cumsum(arities)
        own = np.repeat(np.arange(len(rows)), arities)
        ranks, trees = np.arange(len(own)) - (ends - arities)[own], rows[own]
        added, begins = self.sizes[trees] + ranks, self.begins[trees]
        self.parents[begins + added], self.levels[begins + added] = nodes[own], level[own]
        opened = np.flatnonzero(expandable[own])
        self.open[(begins + self.n_open[trees] + ranks)[opened]] = added[opened]
        self.sizes[rows] += arities
        self.n_open[rows] += arities * expandable

    def postfix(self) -> Indices:
        """Position of each node on its tape, shape (n * most,); -1 where there is no node."""
        subtree = np.ones(len(self.codes), np.int64)
        edges = []
        for node in range(1, self.most):
            begins = self.begins[self.sizes > node]
            edges.append((begins + node, begins + self.parents[begins + node]))
        for own, parent in reversed(edges):
            subtree[parent] += subtree[own]
        positions = np.full(len(self.codes), -1)
        positions[self.begins] = self.sizes - 1
        # End of the next argument of each node: arguments are laid out from the last to the first.
        free = positions - 1
        for own, parent in edges:
            end = free[parent]
            positions[own] = end
            free[own] = end - 1
            free[parent] = end - subtree[own]
        return positions
