"""Individuals in wider or narrower arrays."""

from unit.search.evolution.habitats import PRIMITIVES
from unit.search.evolution.oracles import assert_same, population_of

from shine.search.evolution.memory import hashes
from shine.search.evolution.operators.slots import at_width

EVERYONE = population_of(["x", "x neg neg", "x y add neg neg neg"], PRIMITIVES, 15)


def test_the_width_does_not_change_individuals():
    assert_same(at_width(at_width(EVERYONE, 40), 15), EVERYONE)
    assert hashes(at_width(EVERYONE, 40)).tolist() == hashes(EVERYONE).tolist()
