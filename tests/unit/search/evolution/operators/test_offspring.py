from dataclasses import replace

import numpy as np
import pytest
from unit.search.evolution.oracles import NO_VARIATION, assert_same, assert_valid, population_of, primitive_set

from shine.lang.growth import Terminals
from shine.lang.subtrees import Parents
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.operators.offspring import breed
from shine.search.evolution.settings import EvolutionSettings

SETTINGS = EvolutionSettings(population=300, max_size=20, max_depth=6)


def population_of_parents():
    return ptc2(100, primitive_set(), 20, 6, Terminals(), np.random.default_rng(0))


def bred(settings=SETTINGS, seed=1, among=100):
    rng = np.random.default_rng(seed)
    return breed(Parents.of(population_of_parents()), lambda n: rng.integers(0, among, n), settings, Terminals(), rng)


def test_offspring_are_as_many_as_the_population():
    assert_valid(bred().population, 20, 6)
    assert len(bred().population) == len(bred().ancestors) == 300


@pytest.mark.parametrize("operator", NO_VARIATION)
def test_most_of_an_offspring_comes_from_its_ancestor(operator):
    # All constants of a parent are its number: they show where a part comes from.
    primitives = primitive_set("add mul")
    bottom = [f"{i} {i} add {i} {i} mul add" for i in range(50)]
    parents = population_of([f"{part} {part} mul {part} {part} add mul" for part in bottom], primitives, 31)
    settings = replace(SETTINGS, **{**NO_VARIATION, operator: 1.0}, max_size=31)
    rng = np.random.default_rng(1)
    found = breed(Parents.of(parents), lambda n: rng.integers(0, 50, n), settings, Terminals((60.0, 70.0), 1.0), rng)
    constants = np.where(found.population.codes == 0, found.population.values, np.nan)
    constants[np.arange(31) >= found.population.sizes[:, None]] = np.nan
    own = np.nansum(constants == found.ancestors[:, None], axis=1) / np.count_nonzero(~np.isnan(constants), axis=1)
    # An offspring with a new root has nothing of its ancestor.
    assert np.mean(own >= 0.5) > 0.75


def test_only_the_ratios_of_shares_count():
    parents = population_of_parents()
    only_hoist = bred(replace(SETTINGS, **{**NO_VARIATION, "hoist_mutation": 0.01}))
    assert len(only_hoist.population) == 300
    assert only_hoist.population.sizes.mean() < parents.sizes.mean()


def test_a_seed_repeats():
    assert_same(bred().population, bred().population)
    assert np.array_equal(bred().ancestors, bred().ancestors)


def test_without_useful_parts_there_is_no_part_mutation():
    # All offspring are hoists: none is larger than its ancestor.
    found = bred(replace(SETTINGS, **{**NO_VARIATION, "hoist_mutation": 0.1, "part_mutation": 0.9}))
    assert (found.population.sizes <= population_of_parents().sizes[found.ancestors]).all()


def test_part_mutation_inserts_a_part_of_a_useful_formula():
    primitives = primitive_set()
    parents = Parents.of(population_of(["x y add", "y x mul"], primitives, 20))
    parts = Parents.of(population_of(["7 neg"], primitives, 20))
    settings, rng = (
        replace(SETTINGS, **{**NO_VARIATION, "part_mutation": 1.0, "hoist_mutation": 1e-9}),
        np.random.default_rng(0),
    )
    found = breed(parents, lambda n: rng.integers(0, 2, n), settings, Terminals(), rng, parts).population
    inside = np.arange(20) < found.sizes[:, None]
    assert ((found.values == 7.0) & inside).any(axis=1).all()
