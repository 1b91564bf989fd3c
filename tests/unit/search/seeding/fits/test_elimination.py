"""Exact sums of many terms: found by elimination, whatever the coefficients, scales, rows and dependent terms."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from unit.search.seeding.least_squares import VALUES, unexplained_by_least_squares, units

from shine.search.seeding.fits import elimination
from shine.search.seeding.fits.correlations import units_of
from shine.search.seeding.fits.elimination import Dictionary, Span, Sums, first_terms, replaced, with_another_term

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


DRAWS = np.random.default_rng(1)


def test_forward_selection_takes_the_member_that_leaves_least():
    targets = DRAWS.standard_normal((3, 50))
    u, t = units(VALUES), units(targets)
    found = first_terms(Dictionary(u), t, 1)
    for _ in range(2):
        more = with_another_term(Dictionary(u), t, found)
        for i in range(3):
            before = found.chosen[i].tolist()
            shares = [unexplained_by_least_squares(VALUES[[*before, j]], targets[i]) for j in range(30)]
            assert more.unexplained[i] == pytest.approx(min(shares), abs=1e-4)
            assert more.chosen[i].tolist() == [*before, int(np.argmin(shares))]
        found = more


def test_replacing_terms_never_loses_and_mends_a_bad_start():
    target = VALUES[5] + VALUES[6] - VALUES[7]
    u, t = units(VALUES), units(target[None])
    start = first_terms(Dictionary(u), t, 1)
    bad = type(start)(np.zeros(1, np.int64), np.array([[0, 5, 6]]), np.ones(1))
    mended = replaced(Dictionary(u), t, bad, 2)
    assert sorted(mended.chosen[0].tolist()) == [5, 6, 7]
    assert mended.unexplained[0] < 1e-6


def test_double_precision_tells_members_apart_that_look_alike():
    x = np.linspace(2, 3, 60)
    values = np.array([np.sqrt(x), np.log(x), 1 / x, x**1.5, x**2, np.sin(x), np.exp(-x), np.sqrt(1 + x)])
    target = np.log(x) + 0.7 * np.sin(x) - 0.2 * x**2
    wide, _, _ = units_of(values, np.full(60, 1 / 60))
    goal, _, _ = units_of(target[None], np.full(60, 1 / 60))
    start = Sums(np.zeros(1, np.int64), np.array([[1, 4]]), np.ones(1))
    found = with_another_term(Dictionary(wide, 1e-10), goal, start)
    assert found.chosen[0].tolist() == [1, 4, 5]
    assert found.unexplained[0] < 1e-20


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
