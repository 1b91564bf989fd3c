"""Random tapes, grown many at once.

Growth starts from an open root. It keeps turning a random open place into a function, whose arguments become open
places, until a limit is met. The places that are still open become terminals. The methods of
creation (`shine.search.evolution.operators.creation`) differ only in the limits, and in the chance that a place becomes
a terminal early.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    rows, nodes = np.nonzero(positions >= 0)
    codes[rows, positions[rows, nodes]] = growth.codes[rows, nodes]
    at = np.nonzero((codes == CONSTANT) & (np.arange(width) < growth.sizes[:, None]))
    codes[at], values[at] = terminals.draw(len(at[0]), primitives, rng)
    return codes, values, growth.sizes


class _Growth:
    """Trees under construction, their nodes numbered in the order of their creation: a parent before its arguments.

    The arrays have shape (n, most nodes). They hold the code of each node (0 while it has no function), its parent and
    its level; `open` lists the nodes that may still become functions.
    """

    def __init__(self, primitives: PrimitiveSet, targets: Indices, max_depths: Indices) -> None:
        n, most = len(targets), int(targets.max(initial=1))
        arities = primitives.arities[primitives.first_function :]
        by_arity = np.argsort(arities, kind="stable")
        self.function_arities = arities[by_arity]
        self.function_codes = (by_arity + primitives.first_function).astype(np.int16)
        self.targets, self.max_depths = targets, max_depths
        self.codes = np.zeros((n, most), np.int16)
        self.parents = np.full((n, most), -1, np.int32)
        self.levels = np.zeros((n, most), np.int32)
        self.sizes = np.ones(n, np.int64)
        self.open = np.zeros((n, most), np.int32)
        self.n_open = (max_depths > 1).astype(np.int64)

    def expand(self, early: Floats, rng: np.random.Generator) -> bool:
        """Give one random open node of each tree a function; False if no tree has room for one."""
        room = self.targets - self.sizes
        candidates = np.searchsorted(self.function_arities, room, side="right")
        rows = np.flatnonzero((self.n_open > 0) & (candidates > 0))
        if not len(rows):
            return False
        chosen = (rng.random(len(rows)) * self.n_open[rows]).astype(np.int64)
        nodes = self.open[rows, chosen]
        self.n_open[rows] -= 1
        self.open[rows, chosen] = self.open[rows, self.n_open[rows]]
        stays = (rng.random(len(rows)) >= early[rows]) | (nodes == 0)
        rows, nodes = rows[stays], nodes[stays]
        drawn = (rng.random(len(rows)) * candidates[rows]).astype(np.int64)
        self.codes[rows, nodes] = self.function_codes[drawn]
        self._add_arguments(rows, nodes, self.function_arities[drawn])
        return True

    def _add_arguments(self, rows: Indices, nodes: NDArray[np.int32], arities: Indices) -> None:
        for argument in range(int(arities.max(initial=0))):
            has = arities > argument
            rows, nodes, arities = rows[has], nodes[has], arities[has]
            added = self.sizes[rows]
            level = self.levels[rows, nodes] + 1
            self.parents[rows, added] = nodes
            self.levels[rows, added] = level
            self.sizes[rows] += 1
            # A node on the last level has no room for arguments.
            expandable = level + 1 < self.max_depths[rows]
            opened = rows[expandable]
            self.open[opened, self.n_open[opened]] = added[expandable]
            self.n_open[opened] += 1

    def postfix(self) -> NDArray[np.int32]:
        """Position of each node on its tape, shape (n, most nodes); -1 where there is no node."""
        n, most = self.codes.shape
        individuals = np.arange(n)
        subtree = np.ones((n, most), np.int32)
        for node in range(most - 1, 0, -1):
            rows = individuals[self.sizes > node]
            subtree[rows, self.parents[rows, node]] += subtree[rows, node]
        positions = np.full((n, most), -1, np.int32)
        positions[:, 0] = self.sizes - 1
        # End of the next argument of each node: arguments are laid out from the last to the first.
        free = positions - 1
        for node in range(1, most):
            rows = individuals[self.sizes > node]
            parents = self.parents[rows, node]
            end = free[rows, parents]
            positions[rows, node] = end
            free[rows, node] = end - 1
            free[rows, parents] = end - subtree[rows, node]
        return positions
