from dataclasses import replace

import numpy as np
import pytest
from unit.search.evolution.oracles import NO_VARIATION, assert_same, assert_valid, population_of, primitive_set

from shine.lang.growth import Terminals
from shine.lang.interpret import evaluate
from shine.search.evolution.operators import variation
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.operators.variation import breed, splice
from shine.search.evolution.settings import EvolutionSettings


def rng():
    return np.random.default_rng(11)


def parents_of(texts, width=12, primitives=None):
    return population_of(texts, primitives or primitive_set(), width)


def at(*positions):
    return np.array(positions, np.int64)


def test_splice_replaces_a_segment_by_a_longer_one():
    primitives = primitive_set()
    receiver = population_of(["x neg y add"], primitives, 8)
    donor = population_of(["x 2 y add mul"], primitives, 8)
    child = splice(receiver, at(1), at(2), donor, at(3), at(3))
    assert_same(child, population_of(["2 y add y add"], primitives, 8))


def test_splice_replaces_a_segment_by_a_shorter_one():
    primitives = primitive_set()
    receiver = population_of(["x neg neg 3 add"], primitives, 8)
    donor = population_of(["y neg"], primitives, 8)
    child = splice(receiver, at(2), at(3), donor, at(0), at(1))
    assert_same(child, population_of(["y 3 add"], primitives, 8))


def test_splice_at_the_root_is_the_donor():
    primitives = primitive_set()
    receiver, donor = population_of(["x neg"], primitives, 8), population_of(["x 2 mul"], primitives, 8)
    assert_same(splice(receiver, at(1), at(2), donor, at(2), at(3)), donor)


def test_choose_draws_evenly_from_where_the_mask_holds():
    mask = np.tile(np.array([True, False, True, True]), (9000, 1))
    counts = np.bincount(variation.choose(mask, rng()), minlength=4)
    assert counts.tolist() == pytest.approx([3000, 0, 3000, 3000], rel=0.1)


def test_a_chosen_subtree_is_a_function_nine_times_in_ten():
    population = parents_of(["x y add"] * 9000, width=4)
    chosen, nodes, levels = variation.choose_subtrees(population, population.sizes, population.sizes, rng())
    assert np.mean(chosen == 2) == pytest.approx(0.9, abs=0.02)
    assert np.array_equal(nodes, np.where(chosen == 2, 3, 1))
    assert np.array_equal(levels, np.where(chosen == 2, 0, 1))


def test_a_chosen_subtree_is_a_leaf_if_no_function_fits():
    population = parents_of(["x y add"] * 50, width=4)
    for limits in ((1, 3), (3, 1)):
        chosen, *_ = variation.choose_subtrees(population, *(np.full(50, each) for each in limits), rng())
        assert chosen.max() == 1


def test_crossover_of_full_sized_parents_inserts_no_more_than_it_removed():
    full = parents_of(["x y add 1 2 add mul"] * 200, width=7)
    children = variation.subtree_crossover(full, full, 3, rng())
    assert children.sizes.max() == 7
    assert children.sizes.min() < 7


def test_crossover_draws_every_donor_subtree_that_fits():
    receivers, donors = parents_of(["1"] * 500, width=4), parents_of(["x y mul neg"] * 500, width=4)
    children = variation.subtree_crossover(receivers, donors, 2, rng())
    expected = population_of(["x", "y", "x y mul"], primitive_set(), 4)
    assert np.array_equal(np.unique(children.codes, axis=0), np.unique(expected.codes, axis=0))


def test_hoist_shrinks_all_individuals_except_single_nodes():
    parents = parents_of(["x y add neg", "x", "2 neg"])
    children = variation.hoist_mutation(parents, rng())
    assert children.sizes[0] < 4
    assert children.sizes[1:].tolist() == [1, 1]


def test_hoist_does_not_change_a_single_node():
    parents = parents_of(["x", "2.5"])
    assert_same(variation.hoist_mutation(parents, rng()), parents)


def test_point_mutation_keeps_every_arity():
    parents = parents_of(["x y add neg 2 mul"] * 100)
    children = variation.point_mutation(parents, Terminals(), rng())
    arities = parents.primitives.arities
    assert np.array_equal(arities[children.codes], arities[parents.codes])


def test_point_mutation_replaces_a_function_by_another():
    primitives = primitive_set("neg sqrt")
    parents = population_of(["x neg"] * 100, primitives, 4)
    children = variation.point_mutation(parents, Terminals(), rng())
    assert primitives.function_codes["sqrt"] in children.codes[:, 1]


def test_constant_mutation_moves_one_constant_and_nothing_else():
    parents = parents_of(["1 2 add x mul"] * 50)
    children = variation.constant_mutation(parents, rng())
    assert np.array_equal(children.codes, parents.codes)
    moved = children.values != parents.values
    assert (moved.sum(axis=1) <= 1).all()
    assert moved.any(axis=0).tolist()[:2] == [True, True]


def test_constant_mutation_does_not_change_an_individual_without_constants():
    parents = parents_of(["x y add"])
    assert_same(variation.constant_mutation(parents, rng()), parents)


def test_coefficient_mutation_changes_no_value():
    parents = parents_of(["x y add neg 2 mul", "x neg neg"] * 100)
    children = variation.coefficient_mutation(parents, 10, rng())
    assert (children.sizes == parents.sizes + 2).all()
    columns = np.random.default_rng(0).normal(size=(2, 5))
    for index in range(len(children)):
        child, parent = (evaluate(some.tree(index), columns) for some in (children, parents))
        assert child.tolist() == parent.tolist()


def test_coefficient_mutation_adds_either_neutral_element_to_any_part_except_the_root():
    parents = parents_of(["x y mul"] * 200)
    children = variation.coefficient_mutation(parents, 10, rng())
    texts = ["x 1 mul y mul", "x 0 add y mul", "x y 1 mul mul", "x y 0 add mul"]
    expected = population_of(texts, primitive_set(), 12)
    found = np.unique(np.column_stack([children.codes, children.values]), axis=0)
    assert np.array_equal(found, np.unique(np.column_stack([expected.codes, expected.values]), axis=0))


@pytest.mark.parametrize(("text", "width", "depth"), [("x", 12, 10), ("x y mul", 4, 10), ("x y mul", 12, 2)])
def test_coefficient_mutation_does_not_change_an_individual_without_room(text, width, depth):
    parents = parents_of([text], width)
    assert_same(variation.coefficient_mutation(parents, depth, rng()), parents)


def test_coefficient_mutation_needs_a_function_that_multiplies_or_adds():
    parents = parents_of(["x neg neg"], primitives=primitive_set("neg where"))
    assert_same(variation.coefficient_mutation(parents, 10, rng()), parents)


def test_operators_do_not_change_their_parents():
    parents = parents_of(["1 2 add x mul", "x", "y neg neg"])
    before = parents.take(np.arange(3))
    variation.subtree_crossover(parents, parents, 5, rng())
    variation.subtree_mutation(parents, 5, Terminals(), rng())
    variation.hoist_mutation(parents, rng())
    variation.point_mutation(parents, Terminals(), rng())
    variation.constant_mutation(parents, rng())
    variation.coefficient_mutation(parents, 5, rng())
    assert_same(parents, before)


SETTINGS = EvolutionSettings(population=300, max_size=20, max_depth=6)


def population_of_parents():
    return ptc2(100, primitive_set(), 20, 6, Terminals(), np.random.default_rng(0))


def bred(settings=SETTINGS, seed=1, among=100):
    rng = np.random.default_rng(seed)
    return breed(population_of_parents(), lambda n: rng.integers(0, among, n), settings, Terminals(), rng)


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
    found = breed(parents, lambda n: rng.integers(0, 50, n), settings, Terminals((60.0, 70.0), 1.0), rng)
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
    parents = population_of(["x y add", "y x mul"], primitives, 20)
    parts = population_of(["7 neg"], primitives, 20)
    settings, rng = (
        replace(SETTINGS, **{**NO_VARIATION, "part_mutation": 1.0, "hoist_mutation": 1e-9}),
        np.random.default_rng(0),
    )
    found = breed(parents, lambda n: rng.integers(0, 2, n), settings, Terminals(), rng, parts).population
    inside = np.arange(20) < found.sizes[:, None]
    assert ((found.values == 7.0) & inside).any(axis=1).all()
