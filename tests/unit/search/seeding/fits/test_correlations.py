"""Correlations of blocks of members against plain least squares, one candidate at a time."""

from itertools import combinations

import numpy as np
import pytest
from unit.search.seeding.least_squares import VALUES, unexplained_by_least_squares, units

from shine.compiler.arrays import Panels
from shine.search.seeding.fits.correlations import (
    best_matches,
    best_pairs,
)

RNG = np.random.default_rng(1)


def test_matches_are_the_largest_weighted_correlations():
    targets = RNG.standard_normal((4, 50))
    which, member, correlation = best_matches(Panels(units(VALUES)), units(targets), 2)
    for k in range(4):
        shares = [1 - unexplained_by_least_squares([v], targets[k]) for v in VALUES]
        found = correlation[which == k] ** 2
        assert sorted(found) == pytest.approx(sorted(shares)[-2:], abs=1e-5)
        assert set(member[which == k]) == set(np.argsort(shares)[-2:])


def test_pairs_are_the_best_of_all():
    target = VALUES[3] - 2 * VALUES[11] + 0.1 * RNG.standard_normal(50)
    u = units(VALUES)
    first, second, left = best_pairs(u, units(target[None])[0], u @ u.T, 5)
    shares = {pair: unexplained_by_least_squares(VALUES[list(pair)], target) for pair in combinations(range(30), 2)}
    assert (first[0], second[0]) == min(shares, key=shares.get) == (3, 11)
    assert left[0] == pytest.approx(shares[3, 11], abs=1e-5)
    assert (np.diff(left) >= 0).all()
