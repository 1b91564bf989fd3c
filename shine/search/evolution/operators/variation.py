"""Offspring from parents: subtree crossover and mutation, hoist, point, constant and coefficient mutation.

Every operator is a pure function of whole arrays of parents. The width of the population limits the size. Operators
draw only replacements that keep the limits: no offspring is repaired or drawn again.

`offspring` draws the parents of each operator, and applies the operators by their shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Codes, Indices, Mask
from shine.compiler.arrays import exp
from shine.compiler.tapes import (
    Subtrees,
    constant_counts,
    pick_cells,
    pick_hoists,
    pick_points,
    pick_subtrees,
    splice_tapes,
)
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.evolution.operators.creation import grown
from shine.search.evolution.settings import EvolutionSettings

FUNCTION_BIAS = 0.9
"""Probability that a crossover or mutation point is a function, if there is one to choose (Koza 1992)."""

LARGEST_MUTATION = 8
"""Most nodes of the random subtree that subtree mutation inserts."""


def splice(
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


def choose(mask: Mask, rng: np.random.Generator) -> Indices:
    """One position of each row, drawn uniformly from those where the mask holds; every row must have one."""
    found = np.empty(len(mask), np.int64)
    pick_cells(len(mask), mask.shape[1], mask, rng.random(len(mask)), found)
    return found


def choose_subtrees(
    population: Population, room: Indices, headroom: Indices, rng: np.random.Generator
) -> tuple[Indices, Indices, Indices]:
    """One subtree of each individual, of at most `room` nodes and `headroom` levels: where it ends, its nodes, and its
    distance from the root. It is a function with probability `FUNCTION_BIAS` if functions and terminals fit."""
    n, width, primitives = len(population), population.width, population.primitives
    found, nodes, levels = np.empty((3, n), np.int64)
    tapes = population.codes, population.sizes, primitives.arities
    draws = rng.random(n) < FUNCTION_BIAS, rng.random(n)
    sizes, depths = np.empty((2, width), np.int64)
    first = primitives.first_function
    pick_subtrees(n, width, first, *tapes, room, headroom, *draws, sizes, depths, found, nodes, levels)
    return found, nodes, levels


def subtree_crossover(
    receivers: Population, donors: Population, max_depth: int, rng: np.random.Generator
) -> Population:
    """Receivers with one subtree replaced by a subtree of their donor (Koza 1992).

    Parameters
    ----------
    receivers, donors : Population
        The same number of individuals; the i-th donor gives to the i-th receiver.
    max_depth : int
        Most levels of an offspring.
    rng : numpy.random.Generator

    Returns
    -------
    Population
        The donor's subtree is drawn from the subtrees that keep the offspring within both limits; every leaf does.
    """
    removed, nodes, levels = choose_subtrees(receivers, receivers.sizes, receivers.sizes, rng)
    room = receivers.width - receivers.sizes + nodes
    given, inserted, _ = choose_subtrees(donors, room, max_depth - levels, rng)
    return splice(receivers, removed, nodes, donors, given, inserted)


def subtree_mutation(parents: Population, max_depth: int, terminals: Terminals, rng: np.random.Generator) -> Population:
    """Parents with one subtree replaced by a random one, grown by PTC2 to at most `LARGEST_MUTATION` nodes."""
    n, primitives, width = len(parents), parents.primitives, parents.width
    removed, nodes, levels = choose_subtrees(parents, parents.sizes, parents.sizes, rng)
    room = np.minimum(width - parents.sizes + nodes, LARGEST_MUTATION)
    targets = 1 + (rng.random(n) * room).astype(np.int64)
    inserted = grown(primitives, width, targets, max_depth - levels, np.zeros(n), terminals, rng)
    return splice(parents, removed, nodes, inserted, inserted.sizes - 1, inserted.sizes)


def hoist_mutation(parents: Population, rng: np.random.Generator) -> Population:
    """Parents with one subtree replaced by a smaller one inside it (Kinnear 1993); single nodes do not change."""
    n, arities = len(parents), parents.primitives.arities
    ends, removed, kept, inserted = np.empty((4, n), np.int64)
    given = parents.codes, parents.sizes, arities, rng.random(n), rng.random(n), np.empty(parents.width, np.int64)
    pick_hoists(n, parents.width, *given, ends, removed, kept, inserted)
    return splice(parents, ends, removed, parents, kept, inserted)


def point_mutation(parents: Population, terminals: Terminals, rng: np.random.Generator) -> Population:
    """Parents with one or more nodes (two on average) replaced by others of the same arity.

    A function does not change if no other has its arity.
    """
    n, width = len(parents), parents.width
    cells, count = np.empty(n * width, np.int64), np.empty(1, np.int64)
    pick_points(n, width, parents.sizes, rng.random((n, width)), rng.random(n), cells, count)
    cells = cells[: count[0]]
    old = parents.codes.ravel()[cells]
    new = _others(old, parents.primitives, rng)
    new_values = np.zeros(len(new))
    leaf = old < parents.primitives.first_function
    new[leaf], new_values[leaf] = terminals.draw(int(np.count_nonzero(leaf)), parents.primitives, rng)
    codes, values = parents.codes.copy(), parents.values.copy()
    codes.ravel()[cells], values.ravel()[cells] = new, new_values
    return Population(codes, values, parents.sizes.copy(), parents.primitives)


def constant_mutation(parents: Population, rng: np.random.Generator) -> Population:
    """Parents with one constant moved: by a small or a large relative step, or to a whole number nearby.

    A parent without constants does not change.
    """
    rows = np.flatnonzero(constant_counts(parents))
    positions = choose(parents.take(rows).constants, rng)
    old = parents.values[rows, positions]
    # Relative steps of all orders of magnitude from 0.001 to 1: large ones find a constant, small ones refine it.
    scale = exp(-3 * math.log(10) * rng.random(len(rows)))
    moved = old + scale * rng.standard_normal(len(rows)) * np.maximum(np.abs(old), 0.1)
    moved = np.where(rng.random(len(rows)) < 0.2, np.rint(moved) + 0.0, moved)
    values = parents.values.copy()
    values[rows, positions] = moved
    return Population(parents.codes.copy(), values, parents.sizes.copy(), parents.primitives)


def coefficient_mutation(
    population: Population, max_depth: int, rng: np.random.Generator, *, at_root: bool = False
) -> Population:
    """Parents with one subtree multiplied by 1, or with 0 added to it: the same values, and one more constant to fit.

    With linear scaling, which fits the coefficients of the root, the root is not chosen. Parents without room do not
    change; no parent does if the primitives neither multiply nor add.
    """
    width, neutral, subtrees = population.width, neutral_elements(population.primitives), Subtrees.of(population)
    choosable = np.arange(width) < (population.sizes - (not at_root))[:, None]
    allowed = choosable & (subtrees.depths < max_depth - subtrees.levels)
    rows = np.flatnonzero(allowed.any(axis=1) & (population.sizes + 2 <= width))
    if not neutral or not len(rows):
        return population
    # The constant and the function are inserted after the subtree.
    drawn = np.array(neutral)[rng.integers(0, len(neutral), len(rows))]
    codes, values = np.zeros((len(rows), width), np.int16), np.zeros((len(rows), width))
    codes[:, 0], values[:, 0], codes[:, 1] = CONSTANT, drawn[:, 1], drawn[:, 0]
    sizes = np.full(len(rows), 2)
    inserted = Population(codes, values, sizes, population.primitives)
    nothing = population.take(rows), choose(allowed[rows], rng), np.zeros(len(rows), np.int64)
    changed = splice(*nothing, inserted, sizes - 1, sizes)
    codes, values, sizes = population.codes.copy(), population.values.copy(), population.sizes.copy()
    codes[rows], values[rows], sizes[rows] = changed.codes, changed.values, changed.sizes
    return Population(codes, values, sizes, population.primitives)


def neutral_elements(primitives: PrimitiveSet) -> list[tuple[int, float]]:
    """Codes of functions that have a neutral second argument, and that argument."""
    codes = primitives.function_codes
    return [(codes[name], element) for name, element in (("mul", 1.0), ("add", 0.0)) if name in codes]


def _others(codes: Codes, primitives: PrimitiveSet, rng: np.random.Generator) -> Codes:
    """For each code a random other code of the same arity; the code itself if there is no other."""
    by_arity = np.argsort(primitives.arities, kind="stable")
    ordered = primitives.arities[by_arity]
    first = np.searchsorted(ordered, primitives.arities, side="left")[codes]
    count = np.searchsorted(ordered, primitives.arities, side="right")[codes] - first
    rank = np.argsort(by_arity)[codes] - first
    step = 1 + (rng.random(len(codes)) * (count - 1)).astype(np.int64)
    others: Codes = by_arity[first + (rank + step) % count].astype(np.int16)
    return others


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
    select: Callable[[int], Indices],
    settings: EvolutionSettings,
    terminals: Terminals,
    rng: np.random.Generator,
    parts: Population | None = None,
    *,
    scaled: bool = True,
) -> Offspring:
    """A generation of offspring, as many as a population has individuals.

    Parameters
    ----------
    everyone : Population
        All possible parents.
    select : callable
        ``select(n)``: indices of n parents.
    settings : EvolutionSettings
    terminals : Terminals
    rng : numpy.random.Generator
    parts : Population, optional
        Formulas with useful parts; without them there is no part mutation.
    scaled : bool
        Whether linear scaling fits the coefficients of each formula.
    """
    counts = _counts(settings, rng, parts is not None)
    selected = {operator: select(n) for operator, n in counts.items()}
    parents = {operator: everyone.take(chosen) for operator, chosen in selected.items()}
    donors, depth = everyone.take(select(counts["crossover"])), settings.max_depth
    useful = (parts or everyone).take(rng.integers(0, len(parts or everyone), counts["part_mutation"]))
    offspring = {
        "crossover": subtree_crossover(parents["crossover"], donors, depth, rng),
        "subtree_mutation": subtree_mutation(parents["subtree_mutation"], depth, terminals, rng),
        "part_mutation": subtree_crossover(parents["part_mutation"], useful, depth, rng),
        "hoist_mutation": hoist_mutation(parents["hoist_mutation"], rng),
        "point_mutation": point_mutation(parents["point_mutation"], terminals, rng),
        "constant_mutation": constant_mutation(parents["constant_mutation"], rng),
        "coefficient_mutation": coefficient_mutation(parents["coefficient_mutation"], depth, rng, at_root=not scaled),
    }
    population = Population.concatenate([offspring[operator] for operator in selected])
    return Offspring(population, np.concatenate(list(selected.values())))


def _counts(settings: EvolutionSettings, rng: np.random.Generator, with_parts: bool) -> dict[str, int]:
    """Random numbers of offspring by operator; they sum to the size of the population."""
    shares = settings.shares(with_parts)
    weights = np.array(list(shares.values()))
    counts = rng.multinomial(settings.population, weights / weights.sum())
    return dict(zip(shares, counts.tolist(), strict=True))
