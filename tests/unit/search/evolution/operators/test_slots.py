"""Individuals with slots: their places on tapes, their creation, variation, sizes and stored state."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.templates import composition, individuals

from shine.compiler.tapes import Subtrees
from shine.evaluate.scores import Scores
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.evolution.archive import Archive
from shine.search.evolution.complexity import complexities
from shine.search.evolution.operators.slot_breeding import (
    assembled,
    breed_slots,
    created_with_slots,
    formulas_in,
)
from shine.search.evolution.operators.slots import (
    Slot,
    SlottedSet,
    ends_of_slots,
    formula_depths,
    formula_sizes,
    width_of,
)
from shine.search.evolution.run_state import header_of_slots, keep_slots, slotted_set
from shine.search.evolution.settings import EvolutionSettings

MADE = composition("f(a, b) + h(a)*k[g] + c", ("a", "b", "g"), 3,
                   unknown={"f": ["u", "v"], "h": {"arguments": ["x"], "primitives": ["add", "sin"], "max_size": 6}},
                   parameters={"c": {"start": 2.5}}, max_size=12, max_depth=4)  # fmt: skip
GENOME, SIZES = MADE.genome, [12, 6]
SETTINGS = EvolutionSettings(population=200, max_size=12, max_depth=4)
TERMINALS = Terminals((-5.0, 5.0), 0.3)


@pytest.fixture
def population():
    return individuals(MADE, 200)


def test_formulas_come_back_from_their_slots(population):
    slots = [formulas_in(population, number, slot.max_size) for number, slot in enumerate(GENOME.slots)]
    first = population.sizes - GENOME.frame
    numbers = population.values[np.arange(200)[:, None], first[:, None] + np.arange(4)]
    again = assembled(slots, GENOME, numbers)
    assert np.array_equal(again.codes, population.codes) and np.array_equal(again.values, population.values)


def test_slots_end_where_the_next_formula_begins(population):
    ends = ends_of_slots(population)
    for i in range(20):
        sizes = [formulas_in(population, number, 12).sizes[i] for number in (0, 1)]
        assert ends[i].tolist() == [sizes[0] - 1, sum(sizes) - 1]
        assert population.sizes[i] == sum(sizes) + GENOME.frame


def test_a_root_of_a_thousand_arguments_is_no_special_case():
    made = composition("f(a)*k[g]", ("a", "g"), 1000)
    found = individuals(made, 5)
    whole = Subtrees.of(found)
    roots = found.sizes - 1
    assert np.array_equal(whole.sizes[np.arange(5), roots], found.sizes)
    assert np.array_equal(whole.depths[np.arange(5), roots], 1 + formula_depths(found)[:, 0])


def test_new_individuals_keep_the_limits_and_have_the_starting_numbers():
    found = created_with_slots(300, GENOME, SETTINGS, TERMINALS, np.random.default_rng(0))
    assert found.is_valid and keep_slots(found).all() and (formula_sizes(found) <= SIZES).all()
    assert (formula_depths(found) <= [4, 4]).all()
    first = found.sizes - GENOME.frame
    assert (found.values[np.arange(300)[:, None], first[:, None] + np.arange(4)] == [1, 1, 1, 2.5]).all()


@pytest.mark.parametrize("with_parts", [False, True])
def test_offspring_keep_slots_primitives_and_limits(with_parts):
    rng = np.random.default_rng(0)
    parents = created_with_slots(150, GENOME, SETTINGS, TERMINALS, rng)
    parts = parents.take(np.arange(20)) if with_parts else None
    for seed in range(5):
        bred = breed_slots(parents, np.arange(150), SETTINGS, TERMINALS, seed, parts)
        found = bred.population
        assert len(found) == 200 and found.is_valid and keep_slots(found).all()
        assert (formula_sizes(found) <= SIZES).all() and (formula_depths(found) <= 4).all()
        parents = found


def test_each_offspring_differs_from_its_parent_in_one_segment(population):
    bred = breed_slots(population, np.arange(200), SETTINGS, TERMINALS, 0)
    before = population.take(bred.ancestors)
    changed = []
    for slot in (0, 1):
        old, new = formulas_in(before, slot, 12), formulas_in(bred.population, slot, 12)
        changed.append((old.codes != new.codes).any(axis=1) | (old.values != new.values).any(axis=1))
    assert (np.sum(changed, axis=0) <= 1).all() and np.mean(changed) > 0.3


def test_frames_do_not_count(population):
    sizes = formula_sizes(population).sum(axis=1)
    assert np.array_equal(complexities(population, {}), sizes)
    weighed = complexities(population, {"constant": 3})
    constants = [(formulas_in(population, s, 12).codes == 0).sum(axis=1) for s in (0, 1)]
    padding = [12 - formulas_in(population, s, 12).sizes for s in (0, 1)]
    assert np.array_equal(weighed, sizes + 2 * (np.sum(constants, axis=0) - np.sum(padding, axis=0)))


def test_an_archive_has_a_row_for_each_complexity_of_formulas(population):
    archive = Archive.empty(GENOME, width_of(GENOME, 12))
    scores = Scores(np.linspace(1, 2, 200), np.ones(200), np.zeros(200))
    found, _ = archive.updated(population, scores).front()
    assert len(found) and (complexities(found, {}) == np.sort(complexities(found, {}))).all()


def test_a_set_comes_back_from_its_header():
    header = header_of_slots(GENOME)
    assert slotted_set(header["slots"], header["numbers"], STANDARD) == GENOME


def test_individuals_without_their_slots_are_found(population):
    codes = population.codes.copy()
    rows, roots = np.arange(200), population.sizes - 1
    codes[:50][rows[:50], roots[:50] - 1] = 1  # an argument where a number belongs
    first = ends_of_slots(population)[:, 0] + 1
    foreign = 50 + np.flatnonzero(codes[np.arange(50, 100), first[50:100]] != 0)
    codes[foreign, first[foreign]] = np.where(codes[foreign, first[foreign]] <= 3, 1, codes[foreign, first[foreign]])
    damaged = Population(codes, population.values, population.sizes, GENOME)
    kept = keep_slots(damaged)
    assert not kept[:50].any() and kept[100:].all()
    assert not kept[foreign[codes[foreign, first[foreign]] == 1]].any()


def test_different_functions_of_one_name_do_not_share_a_tape():
    own = Slot("f", PrimitiveSet(select(STANDARD, ["add"]), ("x",)), 3, 3)
    other = PrimitiveSet((STANDARD["sub"].__class__("add", 2, STANDARD["hypot"].definition),), ("x",))
    with pytest.raises(ValueError, match="different functions called 'add'"):
        SlottedSet.of([own, Slot("g", other, 3, 3)])


def test_an_individual_has_room_for_all_formulas_and_numbers():
    assert width_of(GENOME, 99) == 12 + 6 + GENOME.frame
