"""A dictionary of terms and curves: the best pairs, and constants fitted together."""

from itertools import product

import numpy as np
import pytest

from shine.search.seeding.bank.function_families import EXPONENTIAL
from shine.search.seeding.screen.curve_dictionary import Curve, CurveDictionary, Sum

ROWS = 80
RNG = np.random.default_rng(3)
X = RNG.uniform(0.2, 3, (2, ROWS))
MEMBERS = np.stack([X[0], X[1], X[0] ** 2, np.sqrt(X[1]), X[0] * X[1]])
WEIGHTS = np.full(ROWS, 1 / ROWS)


def curve(grid, factor=None):
    factors = np.ones(ROWS) if factor is None else X[factor]
    nodes = None if factor is None else ((factor + 1, 0.0),)
    return Curve(EXPONENTIAL, ((1, 0.0),), X[0], nodes, factors, np.array(grid))


def dictionary(target, *curves):
    return CurveDictionary.of(MEMBERS, curves, target, WEIGHTS)


def left_by(columns, target):
    """By NumPy's least squares: the share of the target's length that some columns and an intercept leave."""
    design = np.column_stack([np.ones(ROWS), *columns])
    rest = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return np.linalg.norm(rest) / np.linalg.norm(target - target.mean())


@pytest.mark.parametrize("known", [(), (0,), (1, 3)])
def test_pairs_are_the_best_of_all(known):
    target = RNG.normal(size=ROWS)
    grid = [-0.5, -1.0, -2.0]
    own = dictionary(target, curve(grid))
    columns = [*MEMBERS, *(np.exp(k * X[0]) for k in grid)]
    pairs = [(i, j) for i, j in product(range(len(MEMBERS)), range(len(columns))) if i != j]
    pairs = [pair for pair in pairs if not {*pair} & {*known}]
    shares = {pair: left_by([columns[i] for i in (*known, *pair)], target) for pair in pairs}
    found = next(own.with_pairs(tuple((which, np.nan) for which in known), 1))
    assert found.left == pytest.approx(min(shares.values()), abs=1e-9)


def test_constants_of_two_curves_are_fitted_beside_plain_terms():
    target = 0.7 * X[1] + 2 * np.exp(-0.83 * X[0]) - 1.5 * X[1] * np.exp(-2.1 * X[0])
    own = dictionary(target, curve([-0.7]), curve([-2.5], factor=1))
    best = own.fitted([Sum(((5, -0.7), (1, np.nan), (6, -2.5)))], 1)[0]
    assert best.left < 1e-12
    constants = {which: constant for which, constant in best.terms if which >= len(MEMBERS)}
    assert constants == pytest.approx({5: -0.83, 6: -2.1}, rel=1e-9)


@pytest.mark.parametrize("constant", [-0.05, -0.3, -4.5])
def test_constants_are_fitted_from_afar_between_nearly_parallel_terms(constant):
    target = 1.3 * X[0] - 0.2 * X[0] ** 2 + 0.6 * np.exp(-0.9 * X[0])
    own = dictionary(target, curve([constant]))
    best = own.fitted([Sum(((0, np.nan), (2, np.nan), (5, constant)))], 1)[0]
    assert best.left < 1e-12
    assert best.terms[-1][1] == pytest.approx(-0.9, rel=1e-7)


def test_terms_that_an_exact_sum_does_not_need_are_left_out():
    own = dictionary(0.7 * X[1] + 2 * np.exp(-0.83 * X[0]), curve([-0.8]), curve([-2.5], factor=1))
    whole = own.fitted([Sum(((1, np.nan), (3, np.nan), (5, -0.8), (6, -2.5)))], 1)[0]
    assert own.needed(whole, 1e-11).groups == (1, 5)


def test_two_wrong_terms_of_a_sum_are_exchanged_for_the_right_ones():
    target = 0.7 * X[1] + 0.4 * X[0] ** 2 - 0.3 * np.sqrt(X[1]) + 2 * np.exp(-0.8 * X[0])
    own = dictionary(target, curve([-0.4, -0.8]))
    found = own.with_exchanged_pairs(tuple((which, np.nan) for which in (0, 1, 2, 4)), 1)
    assert min(found, key=lambda each: each.left).groups == (1, 2, 3, 5)
