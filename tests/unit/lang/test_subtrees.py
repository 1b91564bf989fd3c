import numpy as np
from unit.search.evolution.oracles import population_of, primitive_set, tree_of

from shine.lang.growth import Terminals
from shine.lang.subtrees import Parents, Subtrees, begins, depths
from shine.search.evolution.operators.creation import ptc2


def random_population(seed=0, width=40):
    return ptc2(200, primitive_set(), width, 9, Terminals(), np.random.default_rng(seed))


def test_sizes_depths_and_levels_agree_with_a_walk_of_the_tree():
    population = random_population()
    subtrees = Subtrees.of(population)
    for index in range(len(population)):
        for node, level in tree_of(population, index).with_levels():
            found = [cells[index, node.position] for cells in (subtrees.sizes, subtrees.depths, subtrees.levels)]
            assert found == [node.size, node.depth, level]


def test_begins_are_where_a_walk_of_the_tree_finds_them():
    population = random_population()
    for index in range(len(population)):
        nodes = [node for node, _ in tree_of(population, index).with_levels()]
        ends = np.array([node.position for node in nodes])
        expected = [node.position + 1 - node.size for node in nodes]
        assert begins(population, np.full(len(ends), index), ends).tolist() == expected


def test_all_arrays_are_zero_beyond_the_end_of_a_tape():
    population = random_population()
    subtrees = Subtrees.of(population)
    behind = np.arange(population.width) >= population.sizes[:, None]
    assert not any(cells[behind].any() for cells in (subtrees.sizes, subtrees.depths, subtrees.levels))


def test_depth_of_an_individual_is_the_depth_at_its_root():
    population = random_population()
    assert depths(population).tolist() == [tree_of(population, i).depth for i in range(len(population))]


def test_a_single_node_has_one_level():
    assert depths(population_of(["x"], primitive_set(), 3)).tolist() == [1]


def test_a_ternary_function_spans_its_three_arguments():
    subtrees = Subtrees.of(population_of(["x y neg 1 2 add where"], primitive_set(), 8))
    assert subtrees.sizes[0].tolist() == [1, 1, 2, 1, 1, 3, 7, 0]
    assert subtrees.levels[0].tolist() == [1, 2, 1, 2, 2, 1, 0, 0]


def test_an_empty_population_has_empty_arrays():
    empty = random_population().take(np.zeros(0, int))
    assert Subtrees.of(empty).sizes.shape == (0, 40)


def test_taken_parents_have_the_subtrees_of_their_individuals():
    population = random_population()
    indices = np.array([5, 5, 0, 199])
    taken = Parents.of(population).take(indices)
    assert np.array_equal(taken.subtrees.levels, Subtrees.of(population.take(indices)).levels)
