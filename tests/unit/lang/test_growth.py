import numpy as np
import pytest

from shine.lang.forms.primitives import BASIC, PrimitiveSet
from shine.lang.growth import Terminals, grown_tapes
from shine.lang.population import Population

PRIMITIVES = PrimitiveSet((BASIC["neg"], BASIC["add"], BASIC["where"]), ("a", "b"))


def test_half_of_the_constants_are_whole_numbers():
    _, values = Terminals((-5.0, 5.0), 1.0).draw(2000, PRIMITIVES, np.random.default_rng(6))
    assert np.mean(values == np.rint(values)) == pytest.approx(0.5, abs=0.05)


def test_no_constants_are_drawn_at_share_zero():
    codes, _ = Terminals(share=0.0).draw(500, PRIMITIVES, np.random.default_rng(6))
    assert codes.min() > 0


def test_every_terminal_is_a_constant_without_features():
    no_features = PrimitiveSet(PRIMITIVES.functions, ())
    codes, _ = Terminals(share=0.0).draw(50, no_features, np.random.default_rng(6))
    assert not codes.any()


def grown(targets: list[int], max_depths: list[int], early: float) -> Population:
    n, rng = len(targets), np.random.default_rng(3)
    arrays = grown_tapes(PRIMITIVES, 12, np.array(targets), np.array(max_depths), np.full(n, early), Terminals(), rng)
    return Population(*arrays, PRIMITIVES)


def test_each_tape_keeps_its_own_limit_of_size():
    targets = [1, 2, 5, 12] * 50
    population = grown(targets, [10] * len(targets), early=0.0)
    assert population.is_valid
    assert (population.sizes == targets).all()


def test_only_the_root_grows_if_all_places_below_it_become_terminals():
    population = grown([12] * 100, [10] * 100, early=1.0)
    assert set(population.sizes.tolist()) == {2, 3, 4}


def test_a_tree_of_one_level_is_a_terminal():
    assert (grown([12] * 20, [1] * 20, early=0.0).sizes == 1).all()
