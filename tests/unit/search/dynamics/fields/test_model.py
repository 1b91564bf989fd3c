"""The method of lines, beside solutions in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.known_fields import korteweg_de_vries

from shine.search.dynamics.fields.model import difference, integrated

X, T = np.linspace(-20, 20, 128), np.linspace(0, 2, 9)


def test_differences_are_those_of_a_wave():
    x = np.arange(64) * 2 * np.pi / 64
    for order in range(1, 5):
        found = difference(np.sin(x)[None], x[1], order, 1)[0]
        np.testing.assert_allclose(found, np.sin(x + order * np.pi / 2), atol=2e-4)


@pytest.mark.slow
def test_solitons_move_as_they_do():
    exact = korteweg_de_vries(X, T)

    def rates(columns):
        u, slope, _, third = columns
        return (-6 * u * slope - third)[None]

    found = integrated(rates, exact[:1], T, (X[1] - X[0],), [(0,), (1,), (2,), (3,)], False)
    np.testing.assert_allclose(found[:, 0], exact, atol=0.02)


def test_waves_in_a_plane_decay():
    x = np.arange(32) * 2 * np.pi / 32
    start = np.sin(x)[:, None] * np.cos(2 * x)

    def rates(columns):
        return (columns[1] + columns[2])[None]

    found = integrated(rates, start[None], T / 4, (x[1], x[1]), [(0, 0), (2, 0), (0, 2)], True)
    np.testing.assert_allclose(found[:, 0], np.exp(-5 * T / 4)[:, None, None] * start, atol=1e-3)


def test_an_explosion_ends_in_nan():
    found = integrated(lambda columns: columns[0][None] ** 2, np.full((1, 16), 1.0), T, (1.0,), [(0,)], True)
    assert np.isfinite(found[:4]).all() and np.isnan(found[-1]).all()
