import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.search.evolution.operators.selection import lexicase, ranking, rounded, tournaments


def sizes_of(*sizes):
    return np.array(sizes, np.int64)


def test_the_smallest_loss_ranks_first():
    assert ranking(np.array([3.0, 1.0, 2.0]), sizes_of(1, 9, 5)).tolist() == [1, 2, 0]


def test_infinite_losses_rank_last():
    assert ranking(np.array([np.inf, 0.0, 1e308]), sizes_of(1, 2, 3)).tolist() == [1, 2, 0]


def test_ties_go_to_the_smaller_individual():
    assert ranking(np.array([1.0, 1.0, 1.0]), sizes_of(5, 3, 4)).tolist() == [1, 2, 0]


def test_losses_within_float_noise_tie():
    assert ranking(np.array([1.5, 1.5 * (1 + 1e-14)]), sizes_of(5, 3)).tolist() == [1, 0]


def test_losses_beyond_float_noise_do_not_tie():
    assert ranking(np.array([1.5, 1.5 * (1 - 1e-6)]), sizes_of(3, 5)).tolist() == [1, 0]


def test_parsimony_charges_for_size():
    losses, sizes = np.array([1.0, 1.1]), sizes_of(20, 2)
    assert ranking(losses, sizes).tolist() == [0, 1]
    assert ranking(losses, sizes, parsimony=0.05).tolist() == [1, 0]


def test_a_tournament_of_one_draws_evenly():
    winners = tournaments(np.arange(4), 8000, 1, np.random.default_rng(0))
    assert np.bincount(winners).min() > 1800


def test_the_fittest_wins_tournaments_of_two_with_the_expected_probability():
    # The best of 4 wins if it is one of the two competitors: 1 - (3/4)^2.
    winners = tournaments(np.array([2, 0, 1, 3]), 20000, 2, np.random.default_rng(0))
    assert abs(np.mean(winners == 2) - 7 / 16) < 0.02


errors_of_all = st.tuples(st.integers(1, 12), st.integers(1, 6)).flatmap(
    lambda shape: st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.25, 2.0, 7.0, math.inf]), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)
"""Errors of some individuals on some cases, with ties and missing predictions."""


class Dealt:
    """A random generator that returns given numbers."""

    def __init__(self, orders, numbers):
        self.orders, self.numbers = orders, numbers

    def permuted(self, array, axis):
        assert array.shape == self.orders.shape and axis == 1
        return self.orders

    def random(self, n):
        assert n == len(self.numbers)
        return self.numbers


def filtered(errors, order):
    """The candidates left after the cases in an order, one individual and one case at a time."""
    usable = [i for i, own in enumerate(errors) if all(map(math.isfinite, own))]
    if not usable:
        return list(range(len(errors)))
    left = usable
    for case in order:
        middle = np.median([errors[i][case] for i in usable])
        epsilon = np.median([abs(errors[i][case] - middle) for i in usable])
        best = min(errors[i][case] for i in left)
        if len(left) > 1:
            left = [i for i in left if errors[i][case] <= best + epsilon]
    return left


@given(errors_of_all, st.integers(0, 2**32))
def test_lexicase_agrees_with_filtering_case_by_case(errors, seed):
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(len(errors[0])), (20, 1)), axis=1)
    numbers = rng.random(20)
    found = lexicase(np.array(errors), 20, Dealt(orders, numbers))
    left = [filtered(errors, order) for order in orders.tolist()]
    if any(all(map(math.isfinite, own)) for own in errors):
        assert found.tolist() == [who[int(u * len(who))] for who, u in zip(left, numbers.tolist(), strict=True)]
    assert all(i in who for i, who in zip(found.tolist(), left, strict=True))


def test_lexicase_selects_specialists_that_tournaments_do_not():
    # Individual 0 is right in one of ten cases, and far off in the others: it has the worst loss.
    rng = np.random.default_rng(0)
    errors = rng.uniform(0.9, 1.1, (100, 10))
    errors[0] = [0.0] + [100.0] * 9
    ranked = ranking((errors**2).mean(axis=1), np.ones(100, np.int64))
    assert np.mean(lexicase(errors, 5000, rng) == 0) == pytest.approx(0.1, abs=0.02)
    assert np.mean(tournaments(ranked, 5000, 3, rng) == 0) < 0.001


def test_lexicase_draws_evenly_from_equal_individuals():
    drawn = np.bincount(lexicase(np.zeros((4, 3)), 8000, np.random.default_rng(0)), minlength=4)
    assert drawn.tolist() == pytest.approx([2000] * 4, rel=0.1)


def test_lexicase_skips_individuals_without_a_prediction():
    errors = np.array([[0.0, 0.0, math.inf], [5.0, 5.0, 5.0], [math.inf] * 3])
    assert set(lexicase(errors, 50, np.random.default_rng(0)).tolist()) == {1}


def test_lexicase_draws_from_all_if_none_has_a_prediction():
    assert set(lexicase(np.full((3, 2), math.inf), 200, np.random.default_rng(0)).tolist()) == {0, 1, 2}


@given(st.floats(0, allow_nan=False), st.floats(0, allow_nan=False))
def test_rounding_keeps_the_order_of_losses(one, other):
    low, high = rounded(np.array(sorted([one, other]))).tolist()
    assert low <= high
    if math.isfinite(one) and math.isfinite(other) and min(one, other) > 1e-300:
        ratio = Fraction(max(one, other)) / Fraction(min(one, other))
        assert low < high or ratio < 1 + Fraction(1, 2**31)
