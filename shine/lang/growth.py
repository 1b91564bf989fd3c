"""Random tapes, grown many at once.

Growth starts from an open root. It keeps turning a random open place into a function, whose arguments become open
places, until a limit is met. The places that are still open become terminals. The methods of
creation (`shine.search.evolution.operators.creation`) differ only in the limits, and in the chance that a place becomes
a terminal early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def find_open_trees(n: int, targets: Indices, sizes: Indices, n_open: Indices, fitting: Indices, rows: Indices,
                    count: Indices) -> None:  # fmt: skip
    """Write the trees that have an open node and room for a function, and how many they are."""
    found = 0
    for i in range(n):
        if n_open[i] > 0 and fitting[targets[i] - sizes[i]] > 0:
            rows[found] = i
            found += 1
    count[0] = found


def take_open_nodes(n: int, most: int, draws: Floats, early: Floats, open_nodes: Indices, n_open: Indices,
                    rows: Indices, nodes: Indices, count: Indices) -> None:  # fmt: skip
    """Close one open node of each of n trees; write the trees and nodes that become functions, and how many they are.

    The first n draws choose the nodes, the other n whether they become terminals early.
    """
    stay = 0
    for at in range(n):
        i = rows[at]
        place = i * most + int(draws[at] * n_open[i])
        node = open_nodes[place]
        n_open[i] -= 1
        open_nodes[place] = open_nodes[i * most + n_open[i]]
        if draws[n + at] >= early[i] or node == 0:
            rows[stay] = i
            nodes[stay] = node
            stay += 1
    count[0] = stay


def add_functions(n: int, most: int, draws: Floats, rows: Indices, nodes: Indices, targets: Indices,
                  max_depths: Indices, fitting: Indices, arities: Indices, functions: Codes, codes: Codes,
                  parents: Indices, levels: Indices, open_nodes: Indices, n_open: Indices,
                  sizes: Indices) -> None:  # fmt: skip
    """Make n nodes functions that fit, and add their arguments; the last level has no open nodes."""
    for at in range(n):
        i, node = rows[at], nodes[at]
        drawn = int(draws[at] * fitting[targets[i] - sizes[i]])
        codes[i * most + node] = functions[drawn]
        level = levels[i * most + node] + 1
        for _ in range(arities[drawn]):
            added = i * most + sizes[i]
            parents[added], levels[added] = node, level
            if level + 1 < max_depths[i]:
                open_nodes[i * most + n_open[i]] = sizes[i]
                n_open[i] += 1
            sizes[i] += 1


def lay_out(n: int, width: int, most: int, codes: Codes, parents: Indices, sizes: Indices, nodes: Indices,
            free: Indices, tapes: Codes, terminals: Indices, count: Indices) -> None:  # fmt: skip
    """Write trees in postfix order, the cells of their terminals, and how many they are.

    `nodes` and `free` have room for one tree.
    """
    found = 0
    for i in range(n):
        first, end = i * most, sizes[i]
        for node in range(end):
            nodes[node] = 1
        for back in range(1, end):
            nodes[parents[first + end - back]] += nodes[end - back]
        tapes[i * width + end - 1] = codes[first]
        free[0] = end - 2
        # The last position that the arguments of each node leave free: they are laid out from the last to the first.
        for node in range(1, end):
            parent = parents[first + node]
            position = free[parent]
            tapes[i * width + position] = codes[first + node]
            free[node] = position - 1
            free[parent] = position - nodes[node]
        for place in range(i * width, i * width + end):
            if tapes[place] == 0:
                terminals[found] = place
                found += 1
    count[0] = found


Loop = Callable[..., None]
LOOPS: Sequence[Loop] = (find_open_trees, take_open_nodes, add_functions, lay_out)
"""The loops of the growth, as Python runs them."""


def grown_tapes(
    primitives: PrimitiveSet,
    width: int,
    targets: Indices,
    max_depths: Indices,
    early: Floats,
    terminals: Terminals,
    rng: np.random.Generator,
    loops: Sequence[Loop] = LOOPS,
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
    loops : sequence of callable
        `LOOPS`, or the same as native code.

    Returns
    -------
    codes, values : ndarray of shape (n, width)
    sizes : ndarray of shape (n,), int64
    """
    find_open_trees, take_open_nodes, add_functions, lay_out = loops
    n, most, first = len(targets), int(targets.max(initial=1)), primitives.first_function
    # Nodes of a tree are numbered in the order of their creation: a parent before its arguments.
    codes, (parents, levels, open_nodes) = np.zeros(n * most, np.int16), np.zeros((3, n * most), np.int64)
    sizes, n_open, count = np.ones(n, np.int64), (max_depths > 1).astype(np.int64), np.zeros(1, np.int64)
    rows, nodes = np.empty((2, n), np.int64)
    by_arity = np.argsort(primitives.arities[first:], kind="stable")
    arities = primitives.arities[first:][by_arity]
    fitting = np.searchsorted(arities, np.arange(most + 1), side="right")
    functions, limits = (by_arity + first).astype(np.int16), (targets, max_depths, fitting, arities)
    for _ in range(most):
        find_open_trees(n, targets, sizes, n_open, fitting, rows, count)
        if not count[0]:
            break
        draws = rng.random(2 * count[0])
        take_open_nodes(int(count[0]), most, draws, early, open_nodes, n_open, rows, nodes, count)
        draws, own = rng.random(count[0]), (codes, parents, levels, open_nodes, n_open, sizes)
        add_functions(int(count[0]), most, draws, rows, nodes, *limits, functions, *own)
    tapes, values, at = np.zeros((n, width), np.int16), np.zeros((n, width)), np.empty(int(sizes.sum()), np.int64)
    lay_out(n, width, most, codes, parents, sizes, *np.empty((2, most), np.int64), tapes.ravel(), at, count)
    at = at[: count[0]]
    tapes.ravel()[at], values.ravel()[at] = terminals.draw(len(at), primitives, rng)
    return tapes, values, sizes
