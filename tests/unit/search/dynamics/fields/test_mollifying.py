"""Kernels keep polynomials, derivatives of one smoothed field, widths by the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.known_fields import korteweg_de_vries, with_noise

from shine.data.fields import Field
from shine.search.dynamics.fields.mollifying import features_of, kernel_of, likeliest_widths, mollified

X, T = np.linspace(-20, 20, 256), np.linspace(0, 12, 101)


def field_of(values, periodic=False, steps=(T[1] - T[0], X[1] - X[0])):
    return Field(values[None], ("u",), steps, periodic)


@pytest.mark.parametrize("order", range(5))
@pytest.mark.parametrize("width", [1.0, 1.5, 4.0])
def test_a_kernel_takes_the_derivative_of_polynomials_and_sines(width, order):
    weights = kernel_of(width, order)
    at = np.arange(len(weights)) - len(weights) // 2
    for degree in range(order + 6):
        wanted = math.factorial(order) if degree == order else 0.0
        assert (weights * at.astype(float) ** degree).sum() == pytest.approx(wanted, abs=1e-9 * width**degree)
    slow = 0.2 / width
    found = (weights * np.sin(slow * at + 0.3)).sum()
    assert found == pytest.approx(slow**order * math.sin(0.3 + order * math.pi / 2), abs=1e-5 * slow**order)


def test_features_are_the_fields_and_their_derivatives():
    flat = Field(np.zeros((2, 40, 40, 40)), ("a", "b"), (1.0, 1.0, 1.0), False)
    assert features_of(flat, 1) == ["a", "b", "a_x", "b_x", "a_y", "b_y"]
    assert features_of(field_of(np.zeros((40, 40))), 3) == ["u", "u_x", "u_xx", "u_xxx"]


def test_linear_equations_hold_for_the_smoothed_field_whatever_its_width():
    values = np.exp(-0.09 * T[:, None]) * np.sin(0.3 * (X - 0.5 * T[:, None]))  # u_t = u_xx - 0.5*u_x
    smooth = mollified(field_of(values), (6.0, 8.0), 2)
    _, slope, bend = smooth.columns
    np.testing.assert_allclose(smooth.rates[0], bend - 0.5 * slope, atol=1e-6)


def test_an_axis_that_is_closed_loses_no_point():
    x = np.arange(64) * 2 * np.pi / 64
    values = np.sin(x - T[:, None])
    smooth = mollified(field_of(values, True, (T[1] - T[0], x[1])), (1.0, 2.0), 1)
    assert smooth.columns.shape == (2, 91, 64)
    np.testing.assert_allclose(smooth.columns[1], np.cos(x - T[5:-5, None]), atol=1e-4)


def test_noise_widens_the_kernel():
    clean = korteweg_de_vries(X, T)
    assert likeliest_widths(field_of(clean), 3)[1] <= 1.5
    assert likeliest_widths(field_of(with_noise(clean, 0.01)), 3)[1] >= 3
