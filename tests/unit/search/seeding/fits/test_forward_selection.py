"""Forward selection takes the best member at each step, and replaces members that were chosen too early."""

import numpy as np
import pytest
from unit.search.seeding.least_squares import VALUES, unexplained_by_least_squares, units

from shine.search.seeding.fits.correlations import units_of
from shine.search.seeding.fits.forward_selection import Dictionary, Sums, first_terms, replaced, with_another_term

RNG = np.random.default_rng(1)


def test_forward_selection_takes_the_member_that_leaves_least():
    targets = RNG.standard_normal((3, 50))
    u, t = units(VALUES), units(targets)
    found = first_terms(Dictionary(u), t, 1)
    for _ in range(2):
        more = with_another_term(Dictionary(u), t, found)
        for i in range(3):
            before = found.chosen[i].tolist()
            shares = [unexplained_by_least_squares(VALUES[[*before, j]], targets[i]) for j in range(30)]
            assert more.unexplained[i] == pytest.approx(min(shares), abs=1e-4)
            assert more.chosen[i].tolist() == [*before, int(np.argmin(shares))]
        found = more


def test_replacing_terms_never_loses_and_mends_a_bad_start():
    target = VALUES[5] + VALUES[6] - VALUES[7]
    u, t = units(VALUES), units(target[None])
    start = first_terms(Dictionary(u), t, 1)
    bad = type(start)(np.zeros(1, np.int64), np.array([[0, 5, 6]]), np.ones(1))
    mended = replaced(Dictionary(u), t, bad, 2)
    assert sorted(mended.chosen[0].tolist()) == [5, 6, 7]
    assert mended.unexplained[0] < 1e-6


def test_double_precision_tells_members_apart_that_look_alike():
    x = np.linspace(2, 3, 60)
    values = np.array([np.sqrt(x), np.log(x), 1 / x, x**1.5, x**2, np.sin(x), np.exp(-x), np.sqrt(1 + x)])
    target = np.log(x) + 0.7 * np.sin(x) - 0.2 * x**2
    wide, _, _ = units_of(values, np.full(60, 1 / 60))
    goal, _, _ = units_of(target[None], np.full(60, 1 / 60))
    start = Sums(np.zeros(1, np.int64), np.array([[1, 4]]), np.ones(1))
    found = with_another_term(Dictionary(wide, 1e-10), goal, start)
    assert found.chosen[0].tolist() == [1, 4, 5]
    assert found.unexplained[0] < 1e-20
