"""Individuals with slots: their places on tapes, their creation, variation, sizes and stored state."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.templates import composition, individuals

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.growth import Terminals
from shine.search.evolution.operators.slot_breeding import (
    assembled,
    breed_slots,
    created_with_slots,
    formulas_in,
)
from shine.search.evolution.operators.slots import (
    Slot,
    SlottedSet,
    formula_depths,
    formula_sizes,
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


def test_a_set_comes_back_from_its_header():
    header = header_of_slots(GENOME)
    assert slotted_set(header["slots"], header["numbers"], STANDARD) == GENOME


def test_different_functions_of_one_name_do_not_share_a_tape():
    own = Slot("f", PrimitiveSet(select(STANDARD, ["add"]), ("x",)), 3, 3)
    other = PrimitiveSet((STANDARD["sub"].__class__("add", 2, STANDARD["hypot"].definition),), ("x",))
    with pytest.raises(ValueError, match="different functions called 'add'"):
        SlottedSet.of([own, Slot("g", other, 3, 3)])
