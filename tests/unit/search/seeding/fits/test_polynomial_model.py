"""The gradient of a fitted polynomial."""

import numpy as np
import pytest

from shine.search.seeding.fits.polynomial_model import PolynomialModel

RNG = np.random.default_rng(0)


def test_a_polynomial_is_fitted_with_its_gradient():
    x = RNG.uniform(-1, 1, (2, 300))
    other, model = PolynomialModel.of_each(x, np.array([x[0], x[0] ** 2 * x[1] + 3 * x[1]]), np.full(300, 1 / 300))
    assert other.gradient[0] == pytest.approx(1, abs=1e-4)
    assert model.explained == pytest.approx(1)
    assert model.gradient[0] == pytest.approx(2 * x[0] * x[1], abs=1e-4)
    assert model.gradient[1] == pytest.approx(x[0] ** 2 + 3, abs=1e-4)
