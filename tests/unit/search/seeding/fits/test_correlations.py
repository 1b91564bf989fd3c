"""Correlations of blocks of members against plain least squares, one candidate at a time."""

from itertools import combinations

import numpy as np
import pytest
from unit.search.seeding.least_squares import VALUES, WEIGHTS, unexplained_by_least_squares, units

from shine.compiler.arrays import Panels
from shine.search.seeding.fits.correlations import (
    Normalized,
    best_matches,
    best_pairs,
    beyond_monomials,
    largest,
    monomial_basis,
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


@pytest.mark.parametrize("each", [1, 3, 7, 100])
def test_largest_gives_the_columns_of_the_largest_entries(each):
    table = RNG.standard_normal((5, 20)).astype(np.float32)
    found = largest(np.abs(table), each)
    for row, columns in zip(np.abs(table), found, strict=True):
        assert set(columns) == set(np.argsort(row)[-min(each, 20) :])


def test_pairs_are_the_best_of_all():
    target = VALUES[3] - 2 * VALUES[11] + 0.1 * RNG.standard_normal(50)
    u = units(VALUES)
    first, second, left = best_pairs(u, units(target[None])[0], u @ u.T, 5)
    shares = {pair: unexplained_by_least_squares(VALUES[list(pair)], target) for pair in combinations(range(30), 2)}
    assert (first[0], second[0]) == min(shares, key=shares.get) == (3, 11)
    assert left[0] == pytest.approx(shares[3, 11], abs=1e-5)
    assert (np.diff(left) >= 0).all()


def test_unusable_rows_become_zero():
    values = np.array([[1.0, np.nan, 2.0], [3.0, 3.0, 3.0], [1.0, 2.0, np.inf], [1.0, 2.0, 4.0]])
    normal = Normalized.of(values, np.full(3, 1 / 3))
    assert not normal.units[:3].any()
    assert (normal.units[3] ** 2).sum() == pytest.approx(1, abs=1e-6)


def test_the_rest_of_a_logarithm_is_orthogonal_to_monomials():
    columns = RNG.uniform(0.5, 3, (2, 50))
    basis = monomial_basis(columns, WEIGHTS)
    values = np.array(
        [
            columns[0] ** 2 / columns[1],
            np.exp(columns[0]),
            -np.exp(columns[0]) * columns[1] ** 3,
            columns[0] - columns[0],
        ]
    )
    rest, lengths = beyond_monomials(values, basis, WEIGHTS)
    assert lengths[0] == lengths[3] == 0 < lengths[1]
    assert rest[1] == pytest.approx(rest[2], abs=1e-9)
    share = unexplained_by_least_squares(np.log(columns), columns[0]) * (
        WEIGHTS @ (columns[0] - columns[0] @ WEIGHTS) ** 2
    )
    assert lengths[1] ** 2 == pytest.approx(share)
