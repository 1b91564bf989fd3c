import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.search.evolution.operators.selection import (
    SURVIVAL,
    age_fitness,
    best_of_each_complexity,
    largest_of_each_complexity,
    lexicase,
    nsga2,
    ranking,
    rounded,
    tournaments,
)


def sizes_of(*sizes):
    return np.array(sizes, np.int64)


def test_the_smallest_loss_ranks_first():
    assert ranking(np.array([3.0, 1.0, 2.0]), sizes_of(1, 9, 5)).tolist() == [1, 2, 0]


@given(st.lists(st.tuples(st.floats(0.0), st.integers(1, 6)), min_size=1), st.lists(st.integers(0, 8)))
def test_the_largest_loss_of_each_complexity_is_found(individuals, wanted):
    losses, complexities = zip(*individuals, strict=True)
    found = largest_of_each_complexity(np.array(losses), sizes_of(*complexities), sizes_of(*wanted))
    assert found.tolist() == [
        max((loss for loss, complexity in individuals if complexity == each), default=math.inf) for each in wanted
    ]


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


Individuals = tuple[list[float], list[int], list[int]]

individuals = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e-9, 1e9, math.inf]), min_size=n, max_size=n),
        st.lists(st.integers(1, 6), min_size=n, max_size=n),
        st.lists(st.integers(0, 6), min_size=n, max_size=n),
    )
)
"""Losses with many ties, complexities, ages."""


def kept_by(policy: str, group: Individuals, n: int) -> list[int]:
    losses, complexities, ages = group
    return SURVIVAL[policy](np.array(losses), np.array(complexities), np.array(ages), n).tolist()


def of_complexity(losses: list[float], complexities: list[int], n: int) -> list[int]:
    return kept_by("complexity", (losses, complexities, [0] * len(losses)), n)


def simplest_of_each_loss(group: Individuals) -> set[int]:
    """The simplest individual of each finite loss; the first of equal ones."""
    losses, complexities, _ = group
    best: dict[float, int] = {}
    for i, loss in enumerate(losses):
        if math.isfinite(loss) and (loss not in best or complexities[i] < complexities[best[loss]]):
            best[loss] = i
    return set(best.values())


def dominates(one: tuple[float, int], other: tuple[float, int]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def fronts_of(points: dict[int, tuple[float, int]]) -> list[set[int]]:
    """Non-dominated sorting by comparing all pairs."""
    left, fronts = dict(points), []
    while left:
        front = {i for i, own in left.items() if not any(dominates(other, own) for other in left.values())}
        fronts.append(front)
        left = {i: own for i, own in left.items() if i not in front}
    return fronts


def crowding(points: list[tuple[float, int]]) -> list[float]:
    """Deb's crowding distance of each member of a front, of the logarithm of the loss and the other objective."""
    coordinates = [(math.log(max(loss, np.finfo(float).tiny)), float(second)) for loss, second in points]
    distances = [0.0] * len(points)
    for axis in (0, 1):
        order = sorted(range(len(points)), key=lambda i: coordinates[i][axis])
        span = coordinates[order[-1]][axis] - coordinates[order[0]][axis]
        distances[order[0]] = distances[order[-1]] = math.inf
        for before, here, after in zip(order, order[1:], order[2:], strict=False):
            distances[here] += (coordinates[after][axis] - coordinates[before][axis]) / span
    return distances


def check_fronts(policy: str, group: Individuals, second: list[int], n: int) -> None:
    losses = group[0]
    competing = simplest_of_each_loss(group)
    points = {i: (losses[i], second[i]) for i in competing}
    kept = kept_by(policy, group, n)
    place = 0
    for front in fronts_of(points):
        here = kept[place : place + len(front)]
        assert set(here) <= front
        place += len(here)
        if len(here) < len(front):
            members = sorted(front)
            distance = dict(zip(members, crowding([points[i] for i in members]), strict=True))
            dropped = front - set(here)
            assert min((distance[i] for i in here), default=math.inf) >= max(distance[i] for i in dropped) - 1e-9
            break
    assert not set(kept[place:]) & competing


@given(individuals, st.integers(1, 45))
def test_nsga2_keeps_the_first_fronts_and_the_least_crowded_of_the_last(group: Individuals, n: int) -> None:
    check_fronts("nsga2", group, group[1], n)


@given(individuals, st.integers(1, 45))
def test_age_fitness_keeps_the_first_fronts_of_loss_and_age(group: Individuals, n: int) -> None:
    check_fronts("age", group, group[2], n)


@given(individuals, st.integers(1, 45))
def test_survivors_come_in_the_order_of_their_rank_within_their_complexity(group: Individuals, n: int) -> None:
    losses, complexities, _ = group
    competing = simplest_of_each_loss(group)
    rank = {i: sum(complexities[j] == complexities[i] and losses[j] < losses[i] for j in competing) for i in competing}
    kept = kept_by("complexity", group, n)
    assert kept[: len(competing)] == sorted(competing, key=lambda i: (rank[i], losses[i]))[:n]


@given(st.sampled_from(list(SURVIVAL)), individuals, st.integers(1, 45))
def test_survivors_are_distinct_and_fill_the_room(policy: str, group: Individuals, n: int) -> None:
    kept = kept_by(policy, group, n)
    assert len(kept) == len(set(kept)) == min(n, len(group[0]))


@given(st.sampled_from(list(SURVIVAL)), individuals, st.integers(1, 45))
def test_the_best_loss_survives(policy: str, group: Individuals, n: int) -> None:
    losses, kept = group[0], kept_by(policy, group, n)
    assert min(losses[i] for i in kept) == min(losses)


@given(st.sampled_from(list(SURVIVAL)), individuals, st.integers(1, 45))
def test_infinite_losses_come_last(policy: str, group: Individuals, n: int) -> None:
    finite = [math.isfinite(group[0][i]) for i in kept_by(policy, group, n)]
    assert finite == sorted(finite, reverse=True)


@pytest.mark.parametrize("policy", SURVIVAL)
def test_no_individuals_leave_no_survivors(policy):
    assert kept_by(policy, ([], [], []), 5) == []


def test_survivors_of_one_complexity_are_the_fittest():
    assert of_complexity([4.0, 1.0, 3.0, 2.0], [1, 1, 1, 1], 2) == [1, 3]


def test_the_best_of_each_complexity_survives():
    assert sorted(of_complexity([1.0, 2.0, 3.0, 9.0], [8, 8, 8, 1], 2)) == [0, 3]


def test_the_simplest_of_a_repeated_loss_survives():
    assert sorted(of_complexity([1.0, 1.0, 9.0], [5, 4, 1], 2)) == [1, 2]


def test_repeated_and_infinite_losses_fill_the_places_left():
    assert of_complexity([1.0, np.inf, 1.0, 9.0], [5, 1, 4, 4], 4) == [2, 3, 0, 1]


def test_nsga2_prefers_the_front_to_a_better_loss_of_the_same_complexity():
    losses, complexities = np.array([1.0, 1.1, 5.0]), np.array([9, 9, 2])
    assert set(nsga2(losses, complexities, np.zeros(3, np.int64), 2).tolist()) == {0, 2}
    assert best_of_each_complexity(losses, complexities, np.zeros(3, np.int64), 2).tolist() == [0, 2]


def test_a_young_individual_survives_although_older_ones_have_lower_losses():
    losses, ages = np.array([1.0, 2.0, 3.0, 50.0]), np.array([9, 9, 9, 0])
    assert 3 in age_fitness(losses, np.array([3, 3, 3, 3]), ages, 2).tolist()
    assert 3 not in age_fitness(losses, np.array([3, 3, 3, 3]), np.array([9, 9, 9, 9]), 2).tolist()
