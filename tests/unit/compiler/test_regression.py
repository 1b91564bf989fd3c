"""Small least squares, against LAPACK."""

import numpy as np
import pytest

from shine.compiler.arrays import Regression, combined, least_squares


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_regression_agrees_with_lapack_at_any_scale(scale):
    rng = np.random.default_rng(3)
    columns, view = rng.standard_normal((4, 50)), rng.standard_normal(50)
    expected = np.linalg.lstsq(columns.T, view, rcond=None)[0]
    regression = Regression.of(columns * scale)
    assert regression.coefficients(view) * scale == pytest.approx(expected, rel=1e-10)
    assert regression.rest(view) == pytest.approx(view - expected @ columns, abs=1e-12)
    assert regression.variances * scale**2 == pytest.approx(np.diag(np.linalg.inv(columns @ columns.T)), rel=1e-8)


def test_ill_conditioned_columns_keep_their_digits():
    x = np.linspace(1, 2, 100)
    columns = np.array([x**k for k in range(8)])
    coefficients = np.arange(1.0, 9)
    assert least_squares(columns, coefficients @ columns) == pytest.approx(coefficients, rel=1e-6)


def test_dependent_and_unusable_columns_get_no_coefficient():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 30))
    columns = np.array([a, 2 * a, np.zeros(30), np.full(30, np.nan), np.full(30, np.inf), b])
    regression = Regression.of(columns)
    assert regression.kept.tolist() == [True, False, False, False, False, True]
    assert regression.coefficients(3 * a - b) == pytest.approx([3, 0, 0, 0, 0, -1])
    assert np.isinf(regression.variances[1:5]).all()


def test_regressions_side_by_side_have_the_bits_of_each_alone():
    rng = np.random.default_rng(2)
    columns, views = rng.standard_normal((7, 3, 20)), rng.standard_normal((7, 20))
    together = least_squares(columns, views)
    alone = np.array([least_squares(c, v) for c, v in zip(columns, views, strict=True)])
    assert np.array_equal(together, alone)
    assert combined(together, columns).shape == (7, 20)


def test_there_may_be_no_columns_or_no_regressions():
    assert least_squares(np.zeros((0, 5)), np.ones(5)).shape == (0,)
    assert least_squares(np.zeros((0, 2, 5)), np.ones((0, 5))).shape == (0, 2)
