"""Exact sums of many terms: found by elimination, whatever the coefficients, scales, rows and dependent terms."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from shine.search.seeding.fits.elimination import Span

RNG = np.random.default_rng(0)
ROWS = 300


def terms(z):
    """Some thirty functions of a column and their products with powers."""
    own = [z, z**2, z**3, np.sqrt(z), np.cbrt(z), z**0.75, np.log(z), np.log1p(z), np.sin(z), np.cos(z), np.exp(-z)]
    return np.array([np.ones_like(z), *own, *(z * each for each in own[3:]), 1 / z, 1 / (1 + z)])


@pytest.mark.parametrize("count", range(1, 9))
def test_random_sums_of_terms_are_found(count):
    columns = terms(RNG.uniform(0.5, 9, ROWS))
    for _ in range(5):
        chosen = np.sort(RNG.choice(12, count, replace=False))
        coefficients = RNG.choice([-1, 1], count) * RNG.uniform(0.2, 3, count)
        view = coefficients @ (columns[chosen] / np.linalg.norm(columns[chosen], axis=1)[:, None])
        assert Span.of(columns).needed(view, 8).tolist() == chosen.tolist()


@pytest.mark.parametrize("scale", [1e-120, 1e-9, 1e9, 1e120])
def test_scales_do_not_matter(scale):
    columns = terms(RNG.uniform(0.5, 9, ROWS))
    columns[3] *= scale
    view = scale * (0.3 * columns[1] - 2 * columns[10]) + columns[3]
    assert Span.of(columns * scale).needed(view, 8).tolist() == [1, 3, 10]


def test_terms_that_depend_on_others_do_no_harm():
    z = RNG.uniform(0.5, 9, ROWS)
    columns = np.concatenate([terms(z), terms(z) @ np.eye(ROWS) + 0.0, [np.sin(z) ** 2, np.cos(z) ** 2]])
    needed = Span.of(columns).needed(1.5 * np.cbrt(z) - 0.3 * np.exp(-z), 8)
    left = columns[needed]
    fit = np.linalg.lstsq(left.T, 1.5 * np.cbrt(z) - 0.3 * np.exp(-z), rcond=None)[0]
    assert len(needed) == 2
    np.testing.assert_allclose(sorted(fit), [-0.3, 1.5], rtol=1e-8)


def test_along_a_curve_the_terms_of_the_law_are_found():
    t = np.linspace(0, 15, ROWS)
    x, v = np.cos(1.3 * t) * np.exp(-0.05 * t), np.sin(1.1 * t) + 0.1 * t
    columns = np.array([x, v, t, x**2, v**2, x * v, x**3, x**2 * v, np.sin(t), np.sin(v), np.sin(x), np.exp(-t), x * t])
    assert Span.of(columns).needed(-0.8 * v + 0.3 * v * x**2 + 0.35 * np.sin(t) - 0.45 * np.sin(v), 8).tolist() == [
        1, 7, 8, 9
    ]  # fmt: skip


def test_columns_of_zeros_and_constants_and_truths_are_allowed():
    truth, z = (RNG.random(ROWS) > 0.5).astype(float), RNG.uniform(1, 2, ROWS)
    columns = np.array([np.ones(ROWS), np.zeros(ROWS), truth, truth**2, z, z * truth, 0 * z + 3])
    view = 2 * truth - 0.7 * z * truth
    needed = Span.of(columns).needed(view, 8)
    assert len(needed) == 2
    assert np.linalg.lstsq(columns[needed].T, view, rcond=None)[1] < 1e-20


def test_what_is_no_sum_of_few_terms_is_none():
    columns = terms(RNG.uniform(0.5, 9, ROWS))
    assert Span.of(columns).needed(RNG.standard_normal(ROWS), 8) is None
    assert Span.of(columns).needed(columns.sum(axis=0) + RNG.standard_normal(ROWS) * 1e-6, 8) is None


def test_one_row_is_one_term():
    assert len(Span.of(np.array([[2.0], [3.0]])).needed(np.array([1.0]), 8)) == 1


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_of_terms_that_depend_on_others_the_fewest_are_needed(noise):
    x, y = RNG.uniform(1, 2, (2, ROWS))
    z = 3 - x - y
    squares = [a * b for a, b in combinations_with_replacement((x, y, z), 2)]
    columns = np.array([np.ones(ROWS), x, y, z, *squares])
    view = x * (y - z) + noise * RNG.standard_normal(ROWS)
    assert Span.of(columns).needed(view, 8, 9 / ROWS if noise else 0.0).tolist() == [5, 6]
