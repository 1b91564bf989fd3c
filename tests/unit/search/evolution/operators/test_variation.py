from dataclasses import replace

import numpy as np
import pytest
from unit.search.evolution.oracles import NO_VARIATION, assert_same, assert_valid, population_of, primitive_set

from shine.compiler.tapes import depths
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Primitive
from shine.lang.growth import Terminals
from shine.lang.interpret import evaluate
from shine.search.evolution.operators import variation
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.operators.variation import breed, spliced
from shine.search.evolution.settings import EvolutionSettings

SETTINGS = EvolutionSettings(population=300, max_size=20, max_depth=6)


def only(operator, parents, n, *, max_depth=10, scaled=True, parts=None, key=11):
    """Offspring of one operator, all parents alike."""
    shares = {**NO_VARIATION, "part_mutation": 0.0, "hoist_mutation": 1e-300, operator: 1.0}
    settings = replace(SETTINGS, **shares, population=n, max_depth=max_depth, tournament=1)
    return breed(parents, np.arange(len(parents)), settings, Terminals(), key, parts, scaled=scaled)


def parents_of(texts, width=12, primitives=None):
    return population_of(texts, primitives or primitive_set(), width)


def flat(kernel):
    """A kernel as Python runs it, on flat arrays."""
    return lambda *given: kernel(*(each.reshape(-1) if isinstance(each, np.ndarray) else each for each in given))


def at(*positions):
    return np.array(positions, np.int64)


def test_splice_replaces_a_segment_by_a_longer_one():
    primitives = primitive_set()
    receiver = population_of(["x neg y add"], primitives, 8)
    donor = population_of(["x 2 y add mul"], primitives, 8)
    child = spliced(receiver, at(1), at(2), donor, at(3), at(3))
    assert_same(child, population_of(["2 y add y add"], primitives, 8))


def test_splice_replaces_a_segment_by_a_shorter_one():
    primitives = primitive_set()
    receiver = population_of(["x neg neg 3 add"], primitives, 8)
    donor = population_of(["y neg"], primitives, 8)
    child = spliced(receiver, at(2), at(3), donor, at(0), at(1))
    assert_same(child, population_of(["y 3 add"], primitives, 8))


def test_splice_at_the_root_is_the_donor():
    primitives = primitive_set()
    receiver, donor = population_of(["x neg"], primitives, 8), population_of(["x 2 mul"], primitives, 8)
    assert_same(spliced(receiver, at(1), at(2), donor, at(2), at(3)), donor)


def test_a_replaced_subtree_is_a_function_nine_times_in_ten():
    parents, donors = parents_of(["x y add"], width=4), parents_of(["1"], width=4)
    children = only("part_mutation", parents, 9000, parts=donors).population
    assert np.mean(children.sizes == 1) == pytest.approx(0.9, abs=0.02)


def test_a_donor_gives_a_leaf_if_no_function_fits():
    donors = parents_of(["x y add"], width=4)
    for room in ({"width": 3}, {"max_depth": 2}):
        parents = parents_of(["1 neg"], width=room.get("width", 4))
        given = donors if parents.width == 4 else parents_of(["x y add"], width=3)
        found = only("part_mutation", parents, 50, parts=given, max_depth=room.get("max_depth", 10)).population
        # A function in place of the leaf would make four nodes, or three levels.
        assert found.sizes.max() <= 3
        assert depths(found).max() <= 2


def test_crossover_of_full_sized_parents_inserts_no_more_than_it_removed():
    full = parents_of(["x y add 1 2 add mul"], width=7)
    children = only("crossover", full, 200, max_depth=3).population
    assert children.sizes.max() == 7
    assert children.sizes.min() < 7


def test_every_subtree_of_a_donor_that_fits_is_drawn():
    receivers, donors = parents_of(["1"], width=4), parents_of(["x y mul neg"], width=4)
    children = only("part_mutation", receivers, 500, parts=donors, max_depth=2).population
    expected = population_of(["x", "y", "x y mul"], primitive_set(), 4)
    assert np.array_equal(np.unique(children.codes, axis=0), np.unique(expected.codes, axis=0))


def test_hoist_shrinks_all_individuals_except_single_nodes():
    children = only("hoist_mutation", parents_of(["x y add neg", "x", "2 neg"]), 90)
    assert children.population.sizes[children.ancestors == 0].max() < 4
    assert (children.population.sizes[children.ancestors > 0] == 1).all()


def test_hoist_does_not_change_a_single_node():
    parents = parents_of(["x", "2.5"])
    children = only("hoist_mutation", parents, 20)
    assert_same(children.population, parents.take(children.ancestors))


def test_point_mutation_changes_two_nodes_on_average_and_keeps_every_arity():
    parents = parents_of(["x y add neg 2 mul"])
    children = only("point_mutation", parents, 900).population
    arities = parents.primitives.arities
    assert (arities[children.codes] == arities[parents.codes]).all()
    # "neg" is alone with its arity, and one leaf in three is drawn again as it was, or as another number.
    changed = (children.codes[:, [2, 5]] != parents.codes[:, [2, 5]]).sum(axis=1)
    assert np.mean(changed) == pytest.approx(2 * (1 - (5 / 6) ** 2), abs=0.06)


def test_point_mutation_draws_evenly_among_the_other_functions():
    primitives = primitive_set("neg sqrt add mul where")
    primitives = PrimitiveSet((*primitives.functions, Primitive("sub", 2)), primitives.features)
    parents = population_of(["x y mul"], primitives, 4)
    roots = only("point_mutation", parents, 3000).population.codes[:, 2]
    shares = [np.mean(roots == primitives.function_codes[name]) for name in ("add", "sub", "mul")]
    assert shares[0] == pytest.approx(shares[1], abs=0.04) and shares[0] > 0.2
    assert set(np.unique(roots)) == {primitives.function_codes[name] for name in ("add", "sub", "mul")}


def test_constant_mutation_moves_one_constant_and_nothing_else():
    parents = parents_of(["1 2 add x mul"])
    children = only("constant_mutation", parents, 2000).population
    assert (children.codes == parents.codes).all()
    moved = children.values != parents.values
    assert (moved.sum(axis=1) <= 1).all()
    # A fifth becomes a whole number, mostly the one that it is.
    assert np.mean(moved, axis=0)[:2] == pytest.approx([0.41, 0.41], abs=0.05)


def test_steps_of_constants_have_all_sizes_and_both_signs():
    children = only("constant_mutation", parents_of(["100"]), 5000).population
    steps = children.values[:, 0] / 100 - 1
    fine = steps[children.values[:, 0] != np.rint(children.values[:, 0])]
    assert np.mean(fine > 0) == pytest.approx(0.5, abs=0.03)
    shares = np.histogram(np.log10(np.abs(fine)), [-4, -3, -2, -1, 0.5])[0] / len(fine)
    assert shares.min() > 0.05 and np.abs(steps).max() < 3


def test_constant_mutation_does_not_change_an_individual_without_constants():
    parents = parents_of(["x y add"])
    assert_same(only("constant_mutation", parents, 1).population, parents)


def test_coefficient_mutation_changes_no_value():
    parents = parents_of(["x y add neg 2 mul", "x neg neg"])
    found = only("coefficient_mutation", parents, 200)
    assert (found.population.sizes == parents.sizes[found.ancestors] + 2).all()
    columns = np.random.default_rng(0).normal(size=(2, 5))
    expected = [evaluate(parents.tree(index), columns).tolist() for index in range(2)]
    for index, ancestor in enumerate(found.ancestors.tolist()):
        assert evaluate(found.population.tree(index), columns).tolist() == expected[ancestor]


@pytest.mark.parametrize("scaled", [True, False])
def test_coefficient_mutation_adds_either_neutral_element_to_any_part_except_a_scaled_root(scaled):
    children = only("coefficient_mutation", parents_of(["x y mul"]), 300, scaled=scaled).population
    texts = ["x 1 mul y mul", "x 0 add y mul", "x y 1 mul mul", "x y 0 add mul"]
    texts += [] if scaled else ["x y mul 1 mul", "x y mul 0 add"]
    expected = population_of(texts, primitive_set(), 12)
    found = np.unique(np.column_stack([children.codes, children.values]), axis=0)
    assert np.array_equal(found, np.unique(np.column_stack([expected.codes, expected.values]), axis=0))


@pytest.mark.parametrize(("text", "width", "depth"), [("x", 12, 10), ("x y mul", 4, 10), ("x y mul", 12, 2)])
def test_coefficient_mutation_does_not_change_an_individual_without_room(text, width, depth):
    parents = parents_of([text], width)
    assert_same(only("coefficient_mutation", parents, 1, max_depth=depth).population, parents)


def test_coefficient_mutation_needs_a_function_that_multiplies_or_adds():
    parents = parents_of(["x neg neg"], primitives=primitive_set("neg where"))
    assert_same(only("coefficient_mutation", parents, 1).population, parents)


@pytest.mark.parametrize("operator", [*NO_VARIATION, "part_mutation"])
def test_native_code_does_what_python_does(operator, monkeypatch):
    parents, width = ptc2(30, primitive_set(), 14, 5, Terminals(), np.random.default_rng(3)), 14
    native = only(operator, parents, 40, max_depth=5, parts=parents)
    monkeypatch.setattr(variation, "breed_tapes", flat(variation.breed_tapes.__wrapped__))
    plain = only(operator, parents, 40, max_depth=5, parts=parents)
    assert_same(native.population, plain.population)
    assert np.array_equal(native.ancestors, plain.ancestors)
    assert_valid(plain.population, width, 5)


def test_the_fittest_are_drawn_as_tournaments_of_two_have_it():
    # The best of 4 wins if it is one of the two competitors: 1 - (3/4)^2.
    settings = replace(SETTINGS, **{**NO_VARIATION, "constant_mutation": 1.0}, population=9000, tournament=2)
    found = breed(parents_of(["x", "y", "1", "2"]), np.array([2, 0, 1, 3]), settings, Terminals(), 5)
    assert np.mean(found.ancestors == 2) == pytest.approx(7 / 16, abs=0.02)


def test_operators_do_not_change_their_parents():
    parents = parents_of(["1 2 add x mul", "x", "y neg neg"])
    before = parents.take(np.arange(3))
    for operator in [*NO_VARIATION, "part_mutation"]:
        only(operator, parents, 30, max_depth=5, parts=parents)
    assert_same(parents, before)


def population_of_parents():
    return ptc2(100, primitive_set(), 20, 6, Terminals(), np.random.default_rng(0))


def bred(settings=SETTINGS, key=1):
    return breed(population_of_parents(), np.arange(100), settings, Terminals(), key)


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
    found = breed(parents, np.arange(50), settings, Terminals((60.0, 70.0), 1.0), 1)
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
    found = only("part_mutation", parents, 300, parts=parts).population
    inside = np.arange(20) < found.sizes[:, None]
    assert ((found.values == 7.0) & inside).any(axis=1).all()
