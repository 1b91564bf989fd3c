from dataclasses import replace

import numpy as np
import pytest
from unit.search.evolution.oracles import NO_VARIATION, assert_same, assert_valid, population_of, primitive_set

from shine.compiler.tapes import depths
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


def test_a_donor_gives_a_leaf_if_no_function_fits():
    donors = parents_of(["x y add"], width=4)
    for room in ({"width": 3}, {"max_depth": 2}):
        parents = parents_of(["1 neg"], width=room.get("width", 4))
        given = donors if parents.width == 4 else parents_of(["x y add"], width=3)
        found = only("part_mutation", parents, 50, parts=given, max_depth=room.get("max_depth", 10)).population
        # A function in place of the leaf would make four nodes, or three levels.
        assert found.sizes.max() <= 3
        assert depths(found).max() <= 2


def test_hoist_shrinks_all_individuals_except_single_nodes():
    children = only("hoist_mutation", parents_of(["x y add neg", "x", "2 neg"]), 90)
    assert children.population.sizes[children.ancestors == 0].max() < 4
    assert (children.population.sizes[children.ancestors > 0] == 1).all()


def test_constant_mutation_moves_one_constant_and_nothing_else():
    parents = parents_of(["1 2 add x mul"])
    children = only("constant_mutation", parents, 2000).population
    assert (children.codes == parents.codes).all()
    moved = children.values != parents.values
    assert (moved.sum(axis=1) <= 1).all()
    # A fifth becomes a whole number, mostly the one that it is.
    assert np.mean(moved, axis=0)[:2] == pytest.approx([0.41, 0.41], abs=0.05)


def test_coefficient_mutation_changes_no_value():
    parents = parents_of(["x y add neg 2 mul", "x neg neg"])
    found = only("coefficient_mutation", parents, 200)
    assert (found.population.sizes == parents.sizes[found.ancestors] + 2).all()
    columns = np.random.default_rng(0).normal(size=(2, 5))
    expected = [evaluate(parents.tree(index), columns).tolist() for index in range(2)]
    for index, ancestor in enumerate(found.ancestors.tolist()):
        assert evaluate(found.population.tree(index), columns).tolist() == expected[ancestor]


@pytest.mark.parametrize(("text", "width", "depth"), [("x", 12, 10), ("x y mul", 4, 10), ("x y mul", 12, 2)])
def test_coefficient_mutation_does_not_change_an_individual_without_room(text, width, depth):
    parents = parents_of([text], width)
    assert_same(only("coefficient_mutation", parents, 1, max_depth=depth).population, parents)


@pytest.mark.parametrize("operator", [*NO_VARIATION, "part_mutation"])
def test_native_code_does_what_python_does(operator, monkeypatch):
    parents, width = ptc2(30, primitive_set(), 14, 5, Terminals(), np.random.default_rng(3)), 14
    native = only(operator, parents, 40, max_depth=5, parts=parents)
    monkeypatch.setattr(variation, "breed_tapes", flat(variation.breed_tapes.__wrapped__))
    plain = only(operator, parents, 40, max_depth=5, parts=parents)
    assert_same(native.population, plain.population)
    assert np.array_equal(native.ancestors, plain.ancestors)
    assert_valid(plain.population, width, 5)


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


def test_only_the_ratios_of_shares_count():
    parents = population_of_parents()
    only_hoist = bred(replace(SETTINGS, **{**NO_VARIATION, "hoist_mutation": 0.01}))
    assert len(only_hoist.population) == 300
    assert only_hoist.population.sizes.mean() < parents.sizes.mean()


def test_a_seed_repeats():
    assert_same(bred().population, bred().population)
    assert np.array_equal(bred().ancestors, bred().ancestors)


def test_part_mutation_inserts_a_part_of_a_useful_formula():
    primitives = primitive_set()
    parents = population_of(["x y add", "y x mul"], primitives, 20)
    parts = population_of(["7 neg"], primitives, 20)
    found = only("part_mutation", parents, 300, parts=parts).population
    inside = np.arange(20) < found.sizes[:, None]
    assert ((found.values == 7.0) & inside).any(axis=1).all()
