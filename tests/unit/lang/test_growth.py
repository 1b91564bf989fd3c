import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.lang.forms.primitives import BASIC, PrimitiveSet
from shine.lang.growth import Terminals, grown_tapes, mixed, uniform
from shine.lang.population import Population

PRIMITIVES = PrimitiveSet((BASIC["neg"], BASIC["add"], BASIC["where"]), ("a", "b"))


NO_FEATURES = PrimitiveSet(PRIMITIVES.functions, ())


def drawn(n: int, terminals: Terminals, primitives: PrimitiveSet = PRIMITIVES) -> Population:
    """Individuals of one terminal."""
    ones = np.ones(n, np.int64)
    arrays = grown_tapes(primitives, 1, ones, ones, terminals, np.random.default_rng(6))
    return Population(*arrays, primitives)


def test_constants_are_even_over_their_range_and_half_of_them_whole_numbers():
    found = drawn(4000, Terminals((-5.0, 5.0), 1.0)).values[:, 0]
    assert np.mean(found == np.rint(found)) == pytest.approx(0.5, abs=0.05)
    assert np.histogram(found, [-5, -2.5, 0.25, 2.5, 5])[0].tolist() == pytest.approx([1000] * 4, rel=0.25)
    assert not np.signbit(found[found == 0]).any()


@pytest.mark.parametrize("limits", [(0.25, 0.75), (-1e300, 1e300), (2.0, 2.0), (-0.3, 0.2), (1e17, 2e17)])
def test_constants_stay_in_their_range(limits):
    found = drawn(500, Terminals(limits, 1.0)).values
    assert found.min() >= limits[0] and found.max() <= limits[1]


def test_no_constants_are_drawn_at_share_zero():
    codes = drawn(500, Terminals(share=0.0)).codes
    assert np.bincount(codes.ravel(), minlength=3).tolist() == pytest.approx([0, 250, 250], abs=50)


def test_every_terminal_is_a_constant_without_features():
    assert not drawn(50, Terminals(share=0.0), NO_FEATURES).codes.any()


@given(st.integers(0, 2**64 - 1))
def test_random_numbers_are_those_of_splitmix64(number: int) -> None:
    with np.errstate(all="ignore"):
        x = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    assert mixed(number) == int(x)
    assert uniform(number, 0) == int(x >> np.uint64(11)) / 2**53


def grown(targets: list[int], max_depths: list[int]) -> Population:
    rng = np.random.default_rng(3)
    arrays = grown_tapes(PRIMITIVES, 12, np.array(targets), np.array(max_depths), Terminals(), rng)
    return Population(*arrays, PRIMITIVES)


def test_each_tape_keeps_its_own_limit_of_size():
    targets = [1, 2, 5, 12] * 50
    population = grown(targets, [10] * len(targets))
    assert population.is_valid
    assert (population.sizes == targets).all()


def test_a_tree_of_one_level_is_a_terminal():
    assert (grown([12] * 20, [1] * 20).sizes == 1).all()
