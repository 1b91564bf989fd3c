"""Likely divisors of a target: monomials that a regression of logarithms finds, and members that helped before."""

import numpy as np
import pytest

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet
from shine.search.seeding.bank.coordinates import Coordinates
from shine.search.seeding.bank.expression_bank import ExpressionBank
from shine.search.seeding.bank.formula_writer import Writer
from shine.search.seeding.screen.screen import (
    POWERS,
    Screen,
    divided_views,
    has_power,
    likely_divisors,
    likely_monomials,
)

COLUMNS = np.random.default_rng(0).uniform(1, 3, (3, 200))
LEAVES = [((i + 1, 0.0),) for i in range(3)]
WRITER = Writer(PrimitiveSet(tuple(STANDARD[n] for n in ("add", "mul", "div", "sqrt")), ("x", "y", "z")))


def screen(target):
    coordinates = Coordinates.of_features(COLUMNS, np.arange(3))
    bank = ExpressionBank(200, WRITER.primitives, 10, 10, np.random.default_rng(0))
    bank.leaves(COLUMNS, LEAVES)
    bases = list(zip(LEAVES, COLUMNS, strict=True))
    return Screen(bank, coordinates, bases, target, np.full(200, 1 / 200), WRITER)


def test_the_monomial_of_the_law_comes_first():
    found = likely_monomials(screen(COLUMNS[0] ** 2 / COLUMNS[1] * (1 + 0.2 * np.sin(9 * COLUMNS[2]))), 10)
    assert found[0] == ((0, 2.0), (1, -1.0))
    assert {((0, 2.0),), ((1, -1.0),)} <= set(found)


def test_a_target_with_a_zero_has_no_monomials():
    assert likely_monomials(screen(np.where(COLUMNS[0] > 2, 0.0, COLUMNS[1])), 10) == []


def test_members_that_helped_before_are_divisors():
    own = screen(np.sin(20 * COLUMNS[0]) + 0.3)
    own.best_divisors = [(0.1, 2), (0.2, 1)]
    assert list(likely_divisors(own, 1)) == [LEAVES[2]]
    assert list(likely_divisors(own, 2)) == [LEAVES[2], LEAVES[1]]


def test_views_are_divided_and_raised_to_powers_that_can_be_undone():
    target = COLUMNS[0] * (1 + 0.2 * np.sin(9 * COLUMNS[2]))
    views = [view for view in divided_views(screen(target), 5) if view.divisor == LEAVES[0]]
    assert len(views) == len(POWERS)
    for view, exponent in zip(views, POWERS, strict=True):
        assert view.of(target) == pytest.approx((target / COLUMNS[0]) ** exponent)


def test_even_powers_need_one_sign():
    assert has_power(WRITER, np.array([1.0, 2.0]), 2.0)
    assert has_power(WRITER, np.array([-1.0, -2.0]), 2.0)
    assert not has_power(WRITER, np.array([-1.0, 2.0]), 2.0)
    assert has_power(WRITER, np.array([-1.0, 2.0]), -1.0)
    assert not has_power(WRITER, np.array([0.0, 2.0]), -1.0)
