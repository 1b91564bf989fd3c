"""The regression on a quotient of two sums finds its coefficients."""

import numpy as np
import pytest

from shine.search.seeding.fits.quotient_regression import quotient_of_sums, squared_error, variance

RNG = np.random.default_rng(0)
A, B, C = RNG.uniform(1, 3, (3, 100))
WEIGHTS = RNG.uniform(0.1, 1, 100)


def test_a_sum_has_its_coefficients_and_its_intercept():
    view = 2 * A - 3 * B + 5
    assert quotient_of_sums([A, B], [], view, WEIGHTS, True) == pytest.approx([2, -3, 5])


def test_without_an_intercept_its_place_holds_0():
    assert quotient_of_sums([A], [], 2 * A, WEIGHTS, False) == pytest.approx([2, 0])


def test_a_quotient_has_the_coefficients_of_both_sums():
    view = (2 * A + 1) / (1 + 0.5 * B + 0.25 * C)
    found = quotient_of_sums([A], [B, C], view, WEIGHTS, True)
    assert found == pytest.approx([2, 1, 0.5, 0.25])
    assert squared_error(found, [A], [B, C], view, WEIGHTS) < 1e-20 * variance(view, WEIGHTS)


def test_a_divisor_without_a_constant_has_large_coefficients():
    view = (2 * A + 1) / (B + 0.5 * C)
    found = quotient_of_sums([A], [B, C], view, WEIGHTS, True)
    assert found is not None
    assert found / found[2] == pytest.approx([2, 1, 1, 0.5])
    assert abs(found[2]) > 1e8


def test_values_that_are_not_finite_have_no_solution():
    assert quotient_of_sums([np.where(A > 2, np.inf, A)], [], B, WEIGHTS, True) is None
    assert quotient_of_sums([A], [], np.where(A > 2, np.nan, B), WEIGHTS, True) is None
