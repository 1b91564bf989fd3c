import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shine.lang.growth import mixed
from shine.search.evolution.operators.selection import (
    best_of_each_complexity,
    largest_of_each_complexity,
    ranking,
    rounded,
    tournament,
    winners,
)


def sizes_of(*sizes):
    return np.array(sizes, np.int64)


@given(st.lists(st.tuples(st.floats(0.0), st.integers(1, 6)), min_size=1), st.lists(st.integers(0, 8)))
def test_the_largest_loss_of_each_complexity_is_found(individuals, wanted):
    losses, complexities = zip(*individuals, strict=True)
    found = largest_of_each_complexity(np.array(losses), sizes_of(*complexities), sizes_of(*wanted))
    assert found.tolist() == [
        max((loss for loss, complexity in individuals if complexity == each), default=math.inf) for each in wanted
    ]


def test_ties_go_to_the_smaller_individual():
    assert ranking(np.array([1.0, 1.0, 1.0]), sizes_of(5, 3, 4)).tolist() == [1, 2, 0]


def test_losses_within_float_noise_tie():
    assert ranking(np.array([1.5, 1.5 * (1 + 1e-14)]), sizes_of(5, 3)).tolist() == [1, 0]


def test_parsimony_charges_for_size():
    losses, sizes = np.array([1.0, 1.1]), sizes_of(20, 2)
    assert ranking(losses, sizes).tolist() == [0, 1]
    assert ranking(losses, sizes, parsimony=0.05).tolist() == [1, 0]


def test_the_fittest_wins_tournaments_of_two_with_the_expected_probability():
    # The best of 4 wins if it is one of the two competitors: 1 - (3/4)^2.
    found = winners(np.array([2, 0, 1, 3]), 20000, 2, np.random.default_rng(0))
    assert abs(np.mean(found == 2) - 7 / 16) < 0.02
    assert abs(np.mean([tournament(mixed(stream), 2, 4) == 0 for stream in range(8000)]) - 7 / 16) < 0.02


@given(st.floats(0, allow_nan=False), st.floats(0, allow_nan=False))
def test_rounding_keeps_the_order_of_losses(one, other):
    low, high = rounded(np.array(sorted([one, other]))).tolist()
    assert low <= high
    if math.isfinite(one) and math.isfinite(other) and min(one, other) > 1e-300:
        ratio = Fraction(max(one, other)) / Fraction(min(one, other))
        assert low < high or ratio < 1 + Fraction(1, 2**31)


Individuals = tuple[list[float], list[int]]

individuals = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e-9, 1e9, math.inf]), min_size=n, max_size=n),
        st.lists(st.integers(1, 6), min_size=n, max_size=n),
    )
)
"""Losses with many ties, complexities."""


def kept_by(group: Individuals, n: int) -> list[int]:
    losses, complexities = group
    return best_of_each_complexity(np.array(losses), np.array(complexities, np.int64), n).tolist()


def simplest_of_each_loss(group: Individuals) -> set[int]:
    """The simplest individual of each finite loss; the first of equal ones."""
    losses, complexities = group
    best: dict[float, int] = {}
    for i, loss in enumerate(losses):
        if math.isfinite(loss) and (loss not in best or complexities[i] < complexities[best[loss]]):
            best[loss] = i
    return set(best.values())


@given(individuals, st.integers(1, 45))
def test_survivors_come_in_the_order_of_their_rank_within_their_complexity(group: Individuals, n: int) -> None:
    losses, complexities = group
    competing = simplest_of_each_loss(group)
    rank = {i: sum(complexities[j] == complexities[i] and losses[j] < losses[i] for j in competing) for i in competing}
    kept = kept_by(group, n)
    assert kept[: len(competing)] == sorted(competing, key=lambda i: (rank[i], losses[i]))[:n]


@given(individuals, st.integers(1, 45))
def test_survivors_are_distinct_and_fill_the_room(group: Individuals, n: int) -> None:
    kept = kept_by(group, n)
    assert len(kept) == len(set(kept)) == min(n, len(group[0]))


@given(individuals, st.integers(1, 45))
def test_the_best_loss_survives(group: Individuals, n: int) -> None:
    losses, kept = group[0], kept_by(group, n)
    assert min(losses[i] for i in kept) == min(losses)


@given(individuals, st.integers(1, 45))
def test_infinite_losses_come_last(group: Individuals, n: int) -> None:
    finite = [math.isfinite(group[0][i]) for i in kept_by(group, n)]
    assert finite == sorted(finite, reverse=True)
