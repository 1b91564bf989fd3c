"""Survival policies against definitions that compare pairs of individuals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shine.search.evolution.operators.survival import SURVIVAL, age_fitness, best_of_each_complexity, nsga2

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
