"""Limits of sizes: lives of an island in turns, and individuals in wider or narrower arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from unit.search.evolution.habitats import PRIMITIVES, SETTINGS, habitat_of, stepped
from unit.search.evolution.oracles import assert_same, population_of

from shine.search.evolution.islands import migrated
from shine.search.evolution.memory import hashes
from shine.search.evolution.operators.limits import at_width, limit_of, within

EVERYONE = population_of(["x", "x neg neg", "x y add neg neg neg"], PRIMITIVES, 15)
NOBODY = EVERYONE.take(np.zeros(0, np.int64))


@pytest.mark.parametrize(("max_size", "limits"), [(30, [30, 10, 20, 30]), (50, [50, 17, 34, 50]), (4, [4, 4, 4, 4])])
def test_limits_return_in_turns(max_size, limits):
    assert [limit_of(life, max_size) for life in range(4)] == limits


def test_the_width_does_not_change_individuals():
    assert_same(at_width(at_width(EVERYONE, 40), 15), EVERYONE)
    assert hashes(at_width(EVERYONE, 40)).tolist() == hashes(EVERYONE).tolist()


def test_only_small_parents_are_within_a_limit():
    parents = within(EVERYONE, 4)
    assert_same(at_width(parents, 15), EVERYONE.take([0, 1]))
    assert parents.width == 4


def test_the_individuals_of_a_narrow_life_keep_its_limit():
    habitat = habitat_of(replace(SETTINGS, max_depth=15))  # chains of neg are the best individuals
    wide = stepped(habitat, habitat.settled(NOBODY, np.random.default_rng(0)), 15)
    narrow = stepped(habitat, habitat.settled(NOBODY, np.random.default_rng(1), life=1), 15)
    assert wide.parents.sizes.max() > 10 >= narrow.parents.sizes.max()
    assert narrow.parents.width == 15
    # Neither do larger migrants join.
    assert migrated([wide, narrow], [habitat] * 2)[1].parents.sizes.max() <= 10
