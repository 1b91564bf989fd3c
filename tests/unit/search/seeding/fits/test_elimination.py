"""Exact sums of many terms: found by elimination, whatever the coefficients, scales, rows and dependent terms."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from shine.search.seeding.fits import elimination
from shine.search.seeding.fits.elimination import Span

RNG = np.random.default_rng(0)
ROWS = 300


def terms(z):
    """Some thirty functions of a column and their products with powers."""
    own = [z, z**2, z**3, np.sqrt(z), np.cbrt(z), z**0.75, np.log(z), np.log1p(z), np.sin(z), np.cos(z), np.exp(-z)]
    return np.array([np.ones_like(z), *own, *(z * each for each in own[3:]), 1 / z, 1 / (1 + z)])


@pytest.mark.parametrize("count", [1, 3, 8])
def test_random_sums_of_terms_are_found(count):
    columns = terms(RNG.uniform(0.5, 9, ROWS))
    for _ in range(5):
        chosen = np.sort(RNG.choice(12, count, replace=False))
        coefficients = RNG.choice([-1, 1], count) * RNG.uniform(0.2, 3, count)
        view = coefficients @ (columns[chosen] / np.linalg.norm(columns[chosen], axis=1)[:, None])
        assert Span.of(columns).needed(view, 8).tolist() == chosen.tolist()


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_scales_do_not_matter(scale):
    columns = terms(RNG.uniform(0.5, 9, ROWS))
    columns[3] *= scale
    view = scale * (0.3 * columns[1] - 2 * columns[10]) + columns[3]
    assert Span.of(columns * scale).needed(view, 8).tolist() == [1, 3, 10]


def test_along_a_curve_the_terms_of_the_law_are_found():
    t = np.linspace(0, 15, ROWS)
    x, v = np.cos(1.3 * t) * np.exp(-0.05 * t), np.sin(1.1 * t) + 0.1 * t
    columns = np.array([x, v, t, x**2, v**2, x * v, x**3, x**2 * v, np.sin(t), np.sin(v), np.sin(x), np.exp(-t), x * t])
    assert Span.of(columns).needed(-0.8 * v + 0.3 * v * x**2 + 0.35 * np.sin(t) - 0.45 * np.sin(v), 8).tolist() == [
        1, 7, 8, 9
    ]  # fmt: skip


def test_what_is_no_sum_of_few_terms_is_none():
    columns = terms(RNG.uniform(0.5, 9, ROWS))
    assert Span.of(columns).needed(RNG.standard_normal(ROWS), 8) is None
    assert Span.of(columns).needed(columns.sum(axis=0) + RNG.standard_normal(ROWS) * 1e-6, 8) is None


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_of_terms_that_depend_on_others_the_fewest_are_needed(noise):
    x, y = RNG.uniform(1, 2, (2, ROWS))
    z = 3 - x - y
    squares = [a * b for a, b in combinations_with_replacement((x, y, z), 2)]
    columns = np.array([np.ones(ROWS), x, y, z, *squares])
    view = x * (y - z) + noise * RNG.standard_normal(ROWS)
    assert Span.of(columns).needed(view, 8, 9 / ROWS if noise else 0.0).tolist() == [5, 6]


@pytest.mark.parametrize("kinds", ["two values", "classes", "a sum of others"])
def test_a_view_that_is_no_sum_costs_few_choices(kinds, monkeypatch):
    numbers = RNG.uniform(0.5, 9, (8, ROWS))
    if kinds == "two values":
        numbers[:3] = numbers[:3] > 4
    elif kinds == "classes":
        numbers[:3] = np.eye(3)[RNG.integers(0, 3, ROWS)].T
    else:
        numbers[0] = numbers[1] + numbers[2]
    columns = np.concatenate([np.ones((1, ROWS)), numbers, numbers**2, numbers[:2] * numbers[2:4]])
    tried = []
    whole = elimination.Regression.of

    def counted(columns, *options):
        tried.append(len(columns) if columns.ndim == 3 else 0)
        return whole(columns, *options)

    monkeypatch.setattr(elimination.Regression, "of", counted)
    span = Span.of(columns)
    assert len(span.basis) < len(columns)
    span.needed(numbers[0] * numbers[4] + RNG.standard_normal(ROWS), 8, 9 / ROWS)
    assert sum(tried) < 5000
    exact = span.needed(numbers[4] + 2 * numbers[5] - numbers[6], 8)
    assert len(exact) == 3
