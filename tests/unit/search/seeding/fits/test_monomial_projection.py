"""Logarithms without the part that monomials explain."""

import numpy as np
import pytest
from unit.search.seeding.least_squares import WEIGHTS, unexplained_by_least_squares

from shine.search.seeding.fits.monomial_projection import beyond_monomials, monomial_basis

RNG = np.random.default_rng(1)


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
