import numpy as np
import pytest
from unit.search.evolution.oracles import assert_same, assert_valid, primitive_set

from shine.lang.growth import Terminals
from shine.search.evolution.operators.creation import ptc2

SETS = {
    "mixed": primitive_set(),
    "binary": primitive_set("add mul"),
    "unary": primitive_set("neg sqrt"),
    "ternary": primitive_set("where"),
    "no features": primitive_set(features=""),
    "no functions": primitive_set(functions=""),
}


@pytest.mark.slow
@pytest.mark.parametrize("primitives", SETS.values(), ids=SETS.keys())
@pytest.mark.parametrize(("max_size", "max_depth"), [(1, 1), (5, 1), (30, 6)])
def test_individuals_keep_both_limits(primitives, max_size, max_depth):
    population = ptc2(50, primitives, max_size, max_depth, Terminals(), np.random.default_rng(1))
    assert len(population) == 50
    assert_valid(population, max_size, max_depth)


def test_constants_stay_in_their_range():
    population = ptc2(500, primitive_set(), 10, 10, Terminals((0.25, 0.75)), np.random.default_rng(5))
    inside = np.arange(10) < population.sizes[:, None]
    constants = population.values[(population.codes == 0) & inside]
    assert constants.min() >= 0.25 and constants.max() <= 0.75


def test_a_seed_repeats():
    one, other = (ptc2(50, primitive_set(), 20, 6, Terminals(), np.random.default_rng(7)) for _ in range(2))
    assert_same(one, other)


def test_no_individuals_are_a_population_too():
    assert len(ptc2(0, primitive_set(), 20, 6, Terminals(), np.random.default_rng(7))) == 0
