"""Offspring from parents: subtree crossover and mutation, hoist, point, constant and coefficient mutation.

A generation is one call of native code. Each offspring has random numbers of its own, which depend on the key of the
generation and on its place in it. Operators draw only replacements that keep the limits: no offspring is repaired or
drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import AnyArray, Codes, Floats, Indices
from shine.compiler.native import native
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.growth import Terminals, by_arity, draw_terminal, grow_tree, lay_out, mixed, uniform
from shine.lang.population import Population
from shine.search.evolution.operators.selection import tournament
from shine.search.evolution.settings import EvolutionSettings

CROSSOVER, SUBTREE, PART, HOIST, POINT, NUMBER, COEFFICIENT = range(7)
"""The operators, in the order of `EvolutionSettings.shares`."""

FUNCTION_BIAS = 0.9
"""Probability that a crossover or mutation point is a function, if there is one to choose (Koza 1992)."""

LARGEST_MUTATION = 8
"""Most nodes of the random subtree that subtree mutation inserts."""


def sweep(first: int, length: int, codes: Codes, arities: Indices, sizes: Indices, depths: Indices) -> int:
    """Write nodes and levels of the subtree that ends at each position of a tape."""
    for at in range(length):
        size, depth = 1, 1
        for _ in range(arities[codes[first + at]]):
            depth = max(depth, 1 + depths[at - size])
            size += sizes[at - size]
        sizes[at], depths[at] = size, depth
    return 0


def level_of(at: int, length: int, sizes: Indices) -> int:
    """Distance of a node from the root."""
    level = 0
    for above in range(at + 1, length):
        level += above - sizes[above] < at
    return level


def pick_subtree(stream: int, first: int, length: int, room: int, headroom: int, least: int, codes: Codes,
                 sizes: Indices, depths: Indices) -> int:  # fmt: skip
    """Where a subtree of at most `room` nodes and `headroom` levels ends.

    It is a function, with a code of at least `least`, with probability `FUNCTION_BIAS` if functions and terminals fit.
    """
    wanted = uniform(stream, 0) < FUNCTION_BIAS
    every, own = 0, 0
    for at in range(length):
        if sizes[at] <= room and depths[at] <= headroom:
            every += 1
            own += (codes[first + at] >= least) == wanted
    left = int(uniform(stream, 1) * (own if own > 0 else every))
    at = -1
    while left >= 0 and at < length - 1:
        at += 1
        if sizes[at] <= room and depths[at] <= headroom:
            left -= 1 if own == 0 else (codes[first + at] >= least) == wanted
    return at


def lift(first: int, count: int, codes: Codes, values: Floats, piece: Codes, numbers: Floats) -> int:
    """Copy some nodes of a tape."""
    for at in range(count):
        piece[at], numbers[at] = codes[first + at], values[first + at]
    return 0


def splice(first: int, length: int, begin: int, removed: int, other: int, inserted: int, row: int, width: int,
           codes: Codes, values: Floats, piece: Codes, numbers: Floats, new_codes: Codes,
           new_values: Floats) -> int:  # fmt: skip
    """Write a tape with the `removed` nodes from a position on replaced by `inserted` ones; return its length."""
    for at in range(begin):
        new_codes[row + at], new_values[row + at] = codes[first + at], values[first + at]
    for at in range(inserted):
        new_codes[row + begin + at], new_values[row + begin + at] = piece[other + at], numbers[other + at]
    growth = inserted - removed
    for at in range(begin + inserted, length + growth):
        new_codes[row + at], new_values[row + at] = codes[first + at - growth], values[first + at - growth]
    for at in range(length + growth, width):
        new_codes[row + at], new_values[row + at] = 0, 0.0
    return length + growth


def hoist(stream: int, length: int, sizes: Indices) -> int:
    """Where a subtree ends that is no leaf, unless there are only leaves."""
    every, single = 0, length == 1
    for at in range(length):
        every += max(sizes[at] > 1, single)
    left, at = int(uniform(stream, 0) * every), -1
    while left >= 0 and at < length - 1:
        at += 1
        left -= max(sizes[at] > 1, single)
    return at


def mutate_points(stream: int, row: int, length: int, least: int, features: int, limits: Floats, arities: Indices,
                  functions: Codes, fitting: Indices, codes: Codes, values: Floats) -> int:  # fmt: skip
    """Replace one node or more (two on average) by others of the same arity; a function may have no other."""
    always, share = int(uniform(stream, 0) * length), 1.0 / length
    for at in range(length):
        own = mixed(stream + 1 + at)
        if at == always or uniform(own, 0) < share:
            code = codes[row + at]
            if code < least:
                draw_terminal(mixed(own + 1), row + at, features, limits, codes, values)
            else:
                begin, last = fitting[arities[code]], fitting[arities[code] + 1] - 1
                # The last one takes the place of the node's own.
                other = functions[begin + int(uniform(own, 1) * (last - begin))]
                codes[row + at] = functions[last] if other == code else other
    return 0


def mutate_constant(stream: int, row: int, length: int, codes: Codes, values: Floats) -> int:
    """Move a constant, if there is one: by a small or a large relative step, or to a whole number nearby."""
    every = 0
    for at in range(row, row + length):
        every += codes[at] == 0
    left, at = int(uniform(stream, 0) * every), row - 1
    while left >= 0 and at < row + length - 1:
        at += 1
        left -= codes[at] == 0
    if every > 0:
        # Relative steps of all orders of magnitude from 0.001 to 1: large ones find a constant, small ones refine it.
        scale = 1.0 - 0.5 * uniform(stream, 1)
        for _ in range(int(10 * uniform(stream, 2))):
            scale = 0.5 * scale
        # Nearly normal, of variance 1: the sum of three uniform numbers.
        step = 2.0 * (uniform(stream, 3) + uniform(stream, 4) + uniform(stream, 5) - 1.5)
        size = 0.0 - values[at] if values[at] < 0.0 else values[at]
        moved = values[at] + scale * step * (size if size > 0.1 else 0.1)
        size = 0.0 - moved if moved < 0.0 else moved
        if uniform(stream, 6) < 0.2 and size < 1e15:
            size = int(size + 0.5) * 1.0
            moved = 0.0 - size if moved < -0.5 else size
        values[at] = moved
    return 0


def pick_room(stream: int, first: int, end: int, length: int, deepest: int, codes: Codes, arities: Indices,
              sizes: Indices, depths: Indices, levels: Indices) -> int:  # fmt: skip
    """A position before `end` whose subtree may be one level lower; -1 if there is none. It writes the levels."""
    levels[length - 1] = 0
    at = length - 1
    while at >= 0:
        size = 1
        for _ in range(arities[codes[first + at]]):
            levels[at - size] = levels[at] + 1
            size += sizes[at - size]
        at -= 1
    every = 0
    for at in range(end):
        every += depths[at] < deepest - levels[at]
    left, at = int(uniform(stream, 0) * every), -1
    while every > 0 and left >= 0 and at < end - 1:
        at += 1
        left -= depths[at] < deepest - levels[at]
    return at


@native("variation", writes=14)
def breed_tapes(
    n: int, width: int, key: int, count: int, useful: int, competitors: int, deepest: int, least: int, features: int,
    neutral: int, scaled: int, ranked: Indices, codes: Codes, values: Floats, lengths: Indices, other_codes: Codes,
    other_values: Floats, other_lengths: Indices, shares: Floats, limits: Floats, arities: Indices, functions: Codes,
    fitting: Indices, neutrals: Codes, elements: Floats, sizes: Indices, depths: Indices, tree: Codes, parents: Indices,
    levels: Indices, waiting: Indices, nodes: Indices, others: Indices, piece: Codes, numbers: Floats,
    new_codes: Codes, new_values: Floats, new_lengths: Indices, ancestors: Indices,
) -> None:  # fmt: skip
    """Write n offspring of `count` ranked parents; see `breed`."""
    for i in range(n):
        stream, operator = mixed(key + i), 0
        drawn = uniform(stream, 0)
        while drawn >= shares[operator]:
            operator += 1
        parent = ranked[tournament(mixed(stream + 1), competitors, count)]
        first, length = parent * width, lengths[parent]
        sweep(first, length, codes, arities, sizes, depths)
        begin, removed, inserted = length, 0, 0
        if operator <= PART:
            own = mixed(stream + 2)
            at = pick_subtree(own, first, length, length, length, least, codes, sizes, depths)
            begin, removed = at + 1 - sizes[at], sizes[at]
            room, headroom, own = width - length + removed, deepest - level_of(at, length, sizes), mixed(stream + 3)
            if operator == SUBTREE:
                target = 1 + int(uniform(stream, 4) * min(room, LARGEST_MUTATION))
                inserted = grow_tree(own, target, headroom, arities, functions, fitting, tree, parents, levels,
                                     waiting)  # fmt: skip
                own = mixed(stream + 5)
                lay_out(own, 0, inserted, features, limits, tree, parents, nodes, waiting, piece, numbers)
            elif operator == CROSSOVER:
                other = ranked[tournament(mixed(stream + 4), competitors, count)]
                sweep(other * width, lengths[other], codes, arities, nodes, others)
                at = pick_subtree(own, other * width, lengths[other], room, headroom, least, codes, nodes, others)
                inserted = nodes[at]
                lift(other * width + at + 1 - inserted, inserted, codes, values, piece, numbers)
            else:
                other = int(uniform(stream, 4) * useful)
                length_of = other_lengths[other]
                sweep(other * width, length_of, other_codes, arities, nodes, others)
                at = pick_subtree(own, other * width, length_of, room, headroom, least, other_codes, nodes, others)
                inserted = nodes[at]
                lift(other * width + at + 1 - inserted, inserted, other_codes, other_values, piece, numbers)
        elif operator == HOIST:
            at = hoist(mixed(stream + 2), length, sizes)
            begin, removed = at + 1 - sizes[at], sizes[at]
            at = begin + int(uniform(stream, 3) * max(removed - 1, 1))
            inserted = sizes[at]
            lift(first + at + 1 - inserted, inserted, codes, values, piece, numbers)
        elif operator == COEFFICIENT and length + 2 <= width and neutral > 0:
            own = mixed(stream + 2)
            at = pick_room(own, first, length - scaled, length, deepest, codes, arities, sizes, depths, levels)
            if at >= 0:
                other = int(uniform(stream, 3) * neutral)
                begin, inserted = at + 1, 2
                piece[0], numbers[0], piece[1], numbers[1] = 0, elements[other], neutrals[other], 0.0
        row = i * width
        length = splice(first, length, begin, removed, 0, inserted, row, width, codes, values, piece, numbers,
                        new_codes, new_values)  # fmt: skip
        if operator == POINT:
            mutate_points(mixed(stream + 2), row, length, least, features, limits, arities, functions, fitting,
                          new_codes, new_values)  # fmt: skip
        if operator == NUMBER:
            mutate_constant(mixed(stream + 2), row, length, new_codes, new_values)
        new_lengths[i], ancestors[i] = length, parent


@native("variation", writes=3)
def splice_tapes(
    n: int, width: int, codes: Codes, values: Floats, lengths: Indices, ends: Indices, removed: Indices,
    other_codes: Codes, other_values: Floats, other_ends: Indices, inserted: Indices, new_codes: Codes,
    new_values: Floats, new_lengths: Indices,
) -> None:  # fmt: skip
    """Write the tapes with the `removed` nodes before each end replaced by the `inserted` ones of other tapes."""
    for i in range(n):
        row = i * width
        new_lengths[i] = splice(row, lengths[i], ends[i] + 1 - removed[i], removed[i],
                                row + other_ends[i] + 1 - inserted[i], inserted[i], row, width, codes, values,
                                other_codes, other_values, new_codes, new_values)  # fmt: skip


def spliced(
    receivers: Population, ends: Indices, removed: Indices, donors: Population, given: Indices, inserted: Indices
) -> Population:
    """The receivers with the `removed` nodes that end at each position replaced by the `inserted` ones of the donors.

    Both populations have the same number of individuals and the same width, and every result must fit that width.
    """
    shape, n = receivers.codes.shape, len(receivers)
    codes, values, sizes = np.empty(shape, np.int16), np.empty(shape), np.empty(n, np.int64)
    receiving = receivers.codes, receivers.values, receivers.sizes, ends, removed
    giving = donors.codes, donors.values, given, inserted
    splice_tapes(n, receivers.width, *receiving, *giving, codes, values, sizes)
    return Population(codes, values, sizes, receivers.primitives)


def neutral_elements(primitives: PrimitiveSet) -> list[tuple[int, float]]:
    """Codes of functions that have a neutral second argument, and that argument."""
    codes = primitives.function_codes
    return [(codes[name], element) for name, element in (("mul", 1.0), ("add", 0.0)) if name in codes]


@dataclass(frozen=True, eq=False)
class Offspring:
    """A generation of new individuals.

    Parameters
    ----------
    population : Population
    ancestors : ndarray of shape (n_individuals,), int64
        Index of the parent that each offspring was made from; with crossover, of the receiver.
    """

    population: Population
    ancestors: Indices


def breed(
    everyone: Population,
    ranked: Indices,
    settings: EvolutionSettings,
    terminals: Terminals,
    key: int,
    parts: Population | None = None,
    *,
    scaled: bool = True,
) -> Offspring:
    """A generation of offspring, as many as a population has individuals, each by an operator and parents of its own.

    Parameters
    ----------
    everyone : Population
        All possible parents. Their width limits the size of the offspring.
    ranked : ndarray of shape (n_parents,), int64
        Indices of those that may be parents, the fittest first.
    settings : EvolutionSettings
    terminals : Terminals
    key : int
        Of the random numbers of the generation, of 64 bits.
    parts : Population, optional
        Formulas with useful parts; without them there is no part mutation.
    scaled : bool
        Whether linear scaling fits the coefficients of each formula: its root then gets no coefficient.

    Notes
    -----
    Subtree crossover (Koza 1992) and part mutation draw from the subtrees of the donor that fit; every leaf does.
    Subtree mutation grows a tree by PTC2 (Luke 2000). Hoist mutation (Kinnear 1993) leaves single nodes as they are.
    Coefficient mutation multiplies a subtree by 1 or adds 0 to it: the same values, and one more constant to fit.
    """
    n, primitives, width = settings.population, everyone.primitives, everyone.width
    useful, neutral = everyone if parts is None else parts, neutral_elements(primitives)
    weights = np.array(list(settings.shares(parts is not None).values()))
    shares = np.cumsum(weights) / weights.sum()
    shares[np.flatnonzero(weights)[-1] :] = 2.0  # no draw is larger
    most = max(LARGEST_MUTATION, int(primitives.arities.max(initial=0)))
    room = list(np.empty((7, width), np.int64))
    tree, piece = np.empty((2, width), np.int16)
    codes, values, (sizes, ancestors) = np.empty((n, width), np.int16), np.empty((n, width)), np.empty((2, n), np.int64)
    numbers = n, width, key, len(ranked), len(useful), settings.tournament, settings.max_depth
    arrays: list[AnyArray] = [
        *(ranked, everyone.codes, everyone.values, everyone.sizes, useful.codes, useful.values, useful.sizes, shares),
        *(terminals.limits(primitives), primitives.arities, *by_arity(primitives, most)),
        *(np.array([code for code, _ in neutral], np.int16), np.array([element for _, element in neutral])),
        *room[:2], tree, *room[2:], piece, np.empty(width), codes, values, sizes, ancestors,
    ]  # fmt: skip
    breed_tapes(*numbers, primitives.first_function, len(primitives.features), len(neutral), scaled, *arrays)
    return Offspring(Population(codes, values, sizes, primitives), ancestors)
