"""Random tapes, each grown by itself from its own random numbers.

Growth starts from an open root. It keeps turning a random open place into a function, whose arguments become open
places, until a limit is met. The places that are still open become terminals.

The functions of numbers and arrays here are in the language of `shine.compiler.kernels`: as Python or as native code,
they do the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Codes, Floats, Indices
from shine.lang.forms.primitives import PrimitiveSet


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

    def limits(self, primitives: PrimitiveSet) -> Floats:
        """Lowest and highest constant, and the share of constants."""
        return np.array([*self.constants, self.share if primitives.features else 1.0])


def mixed(number: int) -> int:
    """A bijection of 64 bits that turns similar numbers into unrelated ones: splitmix64 (Steele et al. 2014)."""
    number = (number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return number ^ (number >> 31)


def uniform(stream: int, turn: int) -> float:
    """The random number of a turn, from 0 to less than 1, in a stream, which is a random number of 64 bits."""
    return (mixed(stream + turn) >> 11) * 1.1102230246251565e-16


def draw_terminal(stream: int, place: int, features: int, limits: Floats, codes: Codes, values: Floats) -> int:
    """Write a random terminal; see `Terminals.limits`."""
    value = 0.0
    if uniform(stream, 0) < limits[2]:
        code = 0
        value = limits[0] + (limits[1] - limits[0]) * uniform(stream, 1)
        size = 0.0 - value if value < 0.0 else value
        # Formulas people write are full of 1, 2 and 3.
        if uniform(stream, 2) < 0.5 and size < 1e15:
            whole = int(size + 0.5) * 1.0
            whole = 0.0 - whole if value < 0.0 else whole
            if whole >= limits[0] and whole <= limits[1]:
                value = whole
    else:
        code = 1 + int(uniform(stream, 1) * features)
    codes[place], values[place] = code, value
    return 0


def grow_tree(stream: int, target: int, deepest: int, arities: Indices, functions: Codes,
              fitting: Indices, tree: Codes, parents: Indices, levels: Indices, waiting: Indices) -> int:  # fmt: skip
    """Write the code, parent and level of each node of a random tree; return how many they are.

    A parent comes before its arguments; terminals have code 0. `functions` are in the order of their arities, `fitting`
    says how many have fewer than so many arguments, and `waiting` has room for the open places.
    """
    tree[0], levels[0] = 0, 0
    size, count, turn = 1, min(deepest - 1, 1), 0
    waiting[0] = 0
    while count > 0 and fitting[target - size + 1] > 0:
        place = int(uniform(stream, turn) * count)
        node = waiting[place]
        count -= 1
        waiting[place] = waiting[count]
        drawn = int(uniform(stream, turn + 2) * fitting[target - size + 1])
        tree[node] = functions[drawn]
        level = levels[node] + 1
        for _ in range(arities[functions[drawn]]):
            tree[size], parents[size], levels[size] = 0, node, level
            # The last level has no open places.
            if level + 1 < deepest:
                waiting[count] = size
                count += 1
            size += 1
        turn += 3
    return size


def lay_out(stream: int, first: int, size: int, features: int, limits: Floats, tree: Codes, parents: Indices,
            nodes: Indices, free: Indices, codes: Codes, values: Floats) -> int:  # fmt: skip
    """Write a tree in postfix order, and draw its terminals; `nodes` and `free` have room for one tree."""
    for node in range(size):
        nodes[node] = 1
    for back in range(1, size):
        nodes[parents[size - back]] += nodes[size - back]
    codes[first + size - 1] = tree[0]
    free[0] = size - 2
    # The last position that the arguments of each node leave free: they are laid out from the last to the first.
    for node in range(1, size):
        parent = parents[node]
        position = free[parent]
        codes[first + position] = tree[node]
        free[node] = position - 1
        free[parent] = position - nodes[node]
    for place in range(first, first + size):
        values[place] = 0.0
        if codes[place] == 0:
            draw_terminal(mixed(stream + place - first), place, features, limits, codes, values)
    return 0


def grow_tapes(n: int, width: int, key: int, features: int, targets: Indices, deepest: Indices, limits: Floats,
               arities: Indices, functions: Codes, fitting: Indices, tree: Codes, parents: Indices,
               levels: Indices, waiting: Indices, nodes: Indices, codes: Codes, values: Floats,
               sizes: Indices) -> None:  # fmt: skip
    """Write n random tapes; see `grown_tapes`."""
    for i in range(n):
        stream = mixed(key + i)
        size = grow_tree(stream, targets[i], deepest[i], arities, functions, fitting, tree, parents, levels,
                         waiting)  # fmt: skip
        lay_out(mixed(stream + 1), i * width, size, features, limits, tree, parents, nodes, levels, codes, values)
        sizes[i] = size


def by_arity(primitives: PrimitiveSet, most: int) -> tuple[Codes, Indices]:
    """Codes of the functions in the order of their arities, and how many have fewer than 0 .. most + 1 arguments."""
    arities = primitives.arities[primitives.first_function :]
    order = np.argsort(arities, kind="stable")
    functions = (order + primitives.first_function).astype(np.int16)
    return functions, np.searchsorted(arities[order], np.arange(most + 2))


def random_key(rng: np.random.Generator) -> int:
    """A key of random numbers, of 63 bits."""
    return int(rng.integers(1 << 63))


def grown_tapes(
    primitives: PrimitiveSet,
    width: int,
    targets: Indices,
    max_depths: Indices,
    terminals: Terminals,
    rng: np.random.Generator,
    grow: Callable[..., None] = grow_tapes,
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
    terminals : Terminals
    rng : numpy.random.Generator
    grow : callable
        `grow_tapes`, or the same as native code.

    Returns
    -------
    codes, values : ndarray of shape (n, width)
    sizes : ndarray of shape (n,), int64
    """
    n, most = len(targets), int(targets.max(initial=1))
    codes, values, sizes = np.zeros((n, width), np.int16), np.zeros((n, width)), np.empty(n, np.int64)
    given = targets, max_depths, terminals.limits(primitives), primitives.arities, *by_arity(primitives, most)
    room = np.empty(most, np.int16), *np.empty((4, most), np.int64)
    grow(n, width, random_key(rng), len(primitives.features), *given, *room, codes.ravel(), values.ravel(), sizes)
    return codes, values, sizes
