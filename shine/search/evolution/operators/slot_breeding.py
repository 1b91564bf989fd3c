"""Creation and variation of individuals with slots: the operators of plain formulas, on one slot at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.tapes import depths
from shine.lang.forms.primitives import CONSTANT
from shine.lang.growth import Terminals, mixed
from shine.lang.population import Population
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.operators.selection import winners
from shine.search.evolution.operators.slots import SlottedSet, ends_of_slots
from shine.search.evolution.operators.variation import Offspring, breed, neutral_elements, spliced
from shine.search.evolution.settings import EvolutionSettings


def created_with_slots(
    n: int,
    primitives: SlottedSet,
    settings: EvolutionSettings,
    terminals: Terminals,
    rng: np.random.Generator,
) -> Population:
    """Random individuals: the formulas of each slot like plain ones, and the numbers of new individuals."""
    if not primitives.slots:
        return assembled([], primitives, np.tile(primitives.start, (n, 1)))
    formulas = []
    for slot in primitives.slots:
        plain = ptc2(n, slot.primitives, slot.max_size, slot.max_depth, terminals, rng, settings.initial_size)
        formulas.append(_with_lines(plain, slot.max_size, slot.max_depth, rng))
    return assembled(formulas, primitives)


def _with_lines(formulas: Population, limit: int, max_depth: int, rng: np.random.Generator) -> Population:
    """The formulas, some of them times 1 plus 0, where there is room."""
    neutral = neutral_elements(formulas.primitives)
    more = 2 * len(neutral)
    # Share of new formulas with a slope and an intercept of their own to fit: there is no linear scaling of slots.
    chosen = rng.random(len(formulas)) < 0.5
    rows = np.flatnonzero(chosen & (formulas.sizes + more <= limit) & (depths(formulas) + len(neutral) <= max_depth))
    codes, values, sizes = formulas.codes.copy(), formulas.values.copy(), formulas.sizes.copy()
    for code, element in neutral:
        codes[rows, sizes[rows]], values[rows, sizes[rows]] = CONSTANT, element
        codes[rows, sizes[rows] + 1] = code
        sizes[rows] += 2
    return Population(codes, values, sizes, formulas.primitives)


def assembled(formulas: Sequence[Population], primitives: SlottedSet, numbers: Floats | None = None) -> Population:
    """Individuals of one formula for each slot.

    Parameters
    ----------
    formulas : sequence of Population
        For each slot as many formulas as there are individuals.
    primitives : SlottedSet
    numbers : ndarray of shape (n_individuals, n_numbers), optional
        Their numbers; by default those of new individuals.
    """
    n, width = len(formulas[0]) if numbers is None else len(numbers), primitives.width
    codes, values = np.zeros((n, width), np.int16), np.zeros((n, width))
    sizes, everyone = np.zeros(n, np.int64), np.arange(n)
    for own, translated in zip(formulas, primitives.codes_of_slots, strict=True):
        rows, columns = np.nonzero(np.arange(own.width) < own.sizes[:, None])
        codes[rows, sizes[rows] + columns] = translated[own.codes[rows, columns]]
        values[rows, sizes[rows] + columns] = own.values[rows, columns]
        sizes += own.sizes
    count = len(primitives.numbers)
    values[everyone[:, None], sizes[:, None] + np.arange(count)] = primitives.start if numbers is None else numbers
    codes[everyone, sizes + count] = primitives.root
    return Population(codes, values, sizes + primitives.frame, primitives)


def formulas_in(population: Population, slot: int, width: int) -> Population:
    """The formulas in one slot, as individuals of the slot's own primitive set."""
    primitives = population.primitives
    assert isinstance(primitives, SlottedSet)
    begins, ends = _places(population, slot)
    sizes, rows = ends + 1 - begins, np.arange(len(population))[:, None]
    inside = np.arange(width) < sizes[:, None]
    at = np.where(inside, begins[:, None] + np.arange(width), 0)
    own = np.zeros(len(primitives.arities), np.int16)
    translated = primitives.codes_of_slots[slot]
    own[translated] = np.arange(len(translated))
    codes = np.where(inside, own[population.codes[rows, at]], 0).astype(np.int16)
    values = np.where(inside, population.values[rows, at], 0.0)
    return Population(codes, values, sizes, primitives.slots[slot].primitives)


def _places(population: Population, slot: int) -> tuple[Indices, Indices]:
    """First and last position of a slot on each tape; one more slot stands for the numbers."""
    ends = ends_of_slots(population)
    begins = ends[:, slot - 1] + 1 if slot else np.zeros(len(population), np.int64)
    return begins, ends[:, slot] if slot < ends.shape[1] else population.sizes - 2


def breed_slots(
    everyone: Population,
    ranked: Indices,
    settings: EvolutionSettings,
    terminals: Terminals,
    key: int,
    parts: Population | None = None,
) -> Offspring:
    """A generation of offspring, each with one slot that differs from that of its parent.

    Parameters
    ----------
    everyone : Population
        All possible parents; their primitive set is a `SlottedSet`.
    ranked, settings, terminals, key, parts
        See `shine.search.evolution.operators.variation.breed`.
    """
    primitives = everyone.primitives
    assert isinstance(primitives, SlottedSet)
    slots = len(primitives.slots)
    segments, rng = slots + bool(primitives.numbers), np.random.default_rng(key)
    # Share of offspring that get a whole formula, or all numbers, of another individual.
    exchanged = rng.binomial(settings.population, 0.1) if segments > 1 else 0
    counts = rng.multinomial(settings.population - exchanged, np.full(slots, 1 / slots))
    found = []
    for slot, count in enumerate(counts.tolist()):
        if count:
            own = replace(settings, population=count, max_depth=primitives.slots[slot].max_depth)
            limit = primitives.slots[slot].max_size
            useful = None if parts is None else formulas_in(parts, slot, limit)
            formulas = formulas_in(everyone, slot, limit)
            bred = breed(formulas, ranked, own, terminals, mixed(key + slot), useful, scaled=False)
            receivers = everyone.take(bred.ancestors)
            found.append(Offspring(_with_formulas(receivers, slot, bred.population), bred.ancestors))
    if exchanged:
        receiving, giving = (winners(ranked, exchanged, settings.tournament, rng) for _ in range(2))
        found.append(_exchanged(everyone, receiving, giving, segments, rng))
    return Offspring(
        Population.concatenate([each.population for each in found]), np.concatenate([each.ancestors for each in found])
    )


def _with_formulas(receivers: Population, slot: int, formulas: Population) -> Population:
    """Individuals with other formulas in one slot."""
    primitives = receivers.primitives
    assert isinstance(primitives, SlottedSet)
    begins, ends = _places(receivers, slot)
    shape = (len(formulas), receivers.width)
    codes, values = np.zeros(shape, np.int16), np.zeros(shape)
    codes[:, : formulas.width] = primitives.codes_of_slots[slot][formulas.codes]
    values[:, : formulas.width] = formulas.values
    donors = Population(codes, values, formulas.sizes, primitives)
    return spliced(receivers, ends, ends + 1 - begins, donors, formulas.sizes - 1, formulas.sizes)


def _exchanged(
    population: Population, receiving: Indices, giving: Indices, segments: int, rng: np.random.Generator
) -> Offspring:
    """Individuals with a whole segment, a formula or all numbers, of others."""
    chosen = rng.integers(0, segments, len(receiving))
    receivers, donors = population.take(receiving), population.take(giving)
    begins, ends = np.empty((2, len(chosen)), np.int64), np.empty((2, len(chosen)), np.int64)
    for segment in range(segments):
        here = chosen == segment
        for side, individuals in enumerate((receivers, donors)):
            first, last = _places(individuals.take(here), segment)
            begins[side, here], ends[side, here] = first, last
    sizes = ends + 1 - begins
    return Offspring(spliced(receivers, ends[0], sizes[0], donors, ends[1], sizes[1]), receiving)
