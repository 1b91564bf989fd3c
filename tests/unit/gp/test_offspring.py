from dataclasses import replace

import numpy as np
from unit.gp.oracles import assert_same, assert_valid, primitive_set

from shine.gp.creation import Terminals, ptc2
from shine.gp.offspring import breed
from shine.gp.settings import EvolutionSettings
from shine.gp.structure import Parents

SETTINGS = EvolutionSettings(population=300, max_size=20, max_depth=6)
NONE = {
    "crossover": 0.0,
    "subtree_mutation": 0.0,
    "hoist_mutation": 0.0,
    "point_mutation": 0.0,
    "constant_mutation": 0.0,
}


def population_of_parents():
    return ptc2(100, primitive_set(), 20, 6, Terminals(), np.random.default_rng(0))


def bred(settings=SETTINGS, seed=1):
    return breed(
        Parents.of(population_of_parents()), np.arange(100), settings, Terminals(), np.random.default_rng(seed)
    )


def test_there_are_as_many_offspring_as_a_population_has_individuals():
    assert_valid(bred(), 20, 6)
    assert len(bred()) == 300


def test_shares_count_in_relation_to_each_other():
    parents = population_of_parents()
    only_hoist = bred(replace(SETTINGS, **{**NONE, "hoist_mutation": 0.01}))
    assert len(only_hoist) == 300
    assert only_hoist.sizes.mean() < parents.sizes.mean()


def test_a_seed_repeats():
    assert_same(bred(), bred())
