"""Populations: random ones, populations of given formulas, and parts of populations."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.base.errors import UnsupportedSyntaxError
from shine.compiler.tapes import depths
from shine.lang.forms.tape import tape_from_tree


def triple(x):
    """A user's function."""
    return x * 3


def five(a, b, c, d, e):
    """A user's function of many arguments."""
    return a + b * c - d / e


def texts(population: shine.Population) -> list[str]:
    return [str(population.tree(i)) for i in range(len(population))]


# Random


@pytest.mark.slow
@pytest.mark.parametrize("max_size", [1, 2, 3, 10, 1000])
def test_random_individuals_keep_the_size_and_reach_it(max_size):
    population = shine.Population.random(300, max_size=max_size, rng=np.random.default_rng(0))
    assert population.sizes.min() >= 1
    # Sizes of binary functions are odd.
    assert max_size * 0.9 - 1 <= population.sizes.max() <= max_size


@pytest.mark.parametrize("max_depth", [1, 2, 4])
def test_random_individuals_keep_the_depth(max_depth):
    population = shine.Population.random(100, max_size=40, max_depth=max_depth, rng=np.random.default_rng(0))
    assert depths(population).max() == max_depth


def test_the_same_seed_makes_the_same_individuals():
    first, again, other = (
        shine.Population.random(50, ("add", "sin", triple), 3, rng=np.random.default_rng(seed)) for seed in (7, 7, 8)
    )
    assert first.codes.tobytes() == again.codes.tobytes()
    assert first.values.tobytes() == again.values.tobytes()
    assert texts(first) != texts(other)


def test_without_a_generator_individuals_differ():
    assert texts(shine.Population.random(50)) != texts(shine.Population.random(50))


def test_random_individuals_are_of_the_given_functions_and_features():
    population = shine.Population.random(300, ("mul", five), ("width", "height"), 30, np.random.default_rng(0))
    assert population.primitives.features == ("width", "height")
    assert [function.name for function in population.primitives.functions] == ["mul", "five"]
    assert set(population.codes.ravel().tolist()) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(("share", "codes"), [(0.0, {1, 2}), (1.0, {0})])
def test_the_share_of_constants_is_a_choice(share, codes):
    population = shine.Population.random(100, features=2, rng=np.random.default_rng(0), constant_share=share)
    leaves = np.concatenate([population.tape(i).codes for i in range(100)])
    assert set(leaves[leaves < population.primitives.first_function].tolist()) == codes


def test_random_constants_are_within_their_range():
    population = shine.Population.random(200, rng=np.random.default_rng(0))
    assert population.values.min() < -4
    assert population.values.max() > 4
    assert np.abs(population.values).max() <= 5


def test_no_individuals_are_a_population():
    assert len(shine.Population.random(0)) == 0


@pytest.mark.parametrize("primitives", [("add", "nope"), ("x0",), ("",)])
def test_an_unknown_primitive_is_rejected_with_the_known_ones(primitives):
    with pytest.raises(ValueError, match=f"unknown primitive '{primitives[-1]}'; .*known are abs, acos"):
        shine.Population.random(1, primitives)


def test_random_individuals_are_trees():
    population = shine.Population.random(100, ("add", "where", "sqrt", five), 2, 60, np.random.default_rng(0))
    for index in range(100):
        tape = population.tape(index)
        written = tape_from_tree(population.tree(index), population.primitives)
        assert written.codes.tolist() == tape.codes.tolist()
        assert written.values.tobytes() == tape.values.tobytes()


# Of given formulas


def test_features_are_in_natural_order_by_default():
    population = shine.Population.from_sources(["x10 + x2", "b*a", "x1"])
    assert population.primitives.features == ("a", "b", "x1", "x2", "x10")


def test_features_are_in_the_given_order_used_or_not():
    population = shine.Population.from_sources(["a + b"], ("c", "b", "a"))
    assert population.primitives.features == ("c", "b", "a")
    assert population.tape(0).codes.tolist() == [3, 2, 4]


def test_given_formulas_come_back():
    sources = ["a + b", "sqrt(a*a + b*b)", "1.5", "a", "a if a < b else b", "-a/2"]
    expected = [str(shine.parse(source, ("a", "b"))) for source in sources]
    # Constants of a tape are floating-point numbers.
    assert texts(shine.Population.from_sources(sources, ("a", "b")))[:4] == expected[:4]
    assert shine.Evaluator([[3.0, 4.0]], [0.0]).predict(
        shine.Population.from_sources(sources, ("a", "b"))
    ).ravel().tolist() == [7.0, 5.0, 1.5, 3.0, 3.0, -1.5]


def test_the_functions_are_the_used_ones_and_the_extra_ones():
    population = shine.Population.from_sources(["sin(a) + 1"], primitives=["cos", "exp"])
    assert [function.name for function in population.primitives.functions] == ["cos", "exp", "add", "sin"]


def test_an_unknown_name_is_rejected_with_its_place():
    with pytest.raises(UnsupportedSyntaxError, match=r"line 1, column 5: .*'c'"):
        shine.Population.from_sources(["a + c"], ("a", "b"))


def test_an_unknown_function_is_rejected_with_its_place():
    with pytest.raises(UnsupportedSyntaxError, match=r"line 1, column 5: .*'nope'"):
        shine.Population.from_sources(["a + nope(a)"])


def test_a_user_s_functions_can_be_called():
    population = shine.Population.from_sources(["triple(a) + five(a, 1, 2, 3, 4)"], primitives=[triple, five])
    assert shine.Evaluator([[2.0]], [0.0]).predict(population).tolist() == [[6.0 + (2 + 2 - 0.75)]]


def test_a_function_is_a_formula():
    population = shine.Population.from_sources([triple])
    assert population.primitives.features == ("x",)
    assert shine.Evaluator([[2.0]], [0.0]).predict(population).tolist() == [[6.0]]


# Parts


def test_padding_is_zero_and_no_part_of_a_tape():
    population = shine.Population.from_sources(["a", "a + a*a"])
    assert population.codes.shape == population.values.shape == (2, 5)
    assert population.codes[0].tolist() == [1, 0, 0, 0, 0]
    assert population.tape(0).codes.tolist() == [1]


def test_taking_and_putting_together_are_inverse():
    population = shine.Population.random(20, rng=np.random.default_rng(0))
    parts = [population.take(np.arange(0, 7)), population.take(np.arange(20) >= 7)]
    whole = type(parts[0]).concatenate(parts)
    assert whole.codes.tobytes() == population.codes.tobytes()
    assert whole.values.tobytes() == population.values.tobytes()
    assert whole.sizes.tolist() == population.sizes.tolist()


def test_no_given_formulas_are_a_population():
    assert len(shine.Population.from_sources([], ("a",))) == 0
