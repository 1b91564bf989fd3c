"""The time of a search: a share is kept for refinement, and time before an interruption counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import shine
from shine.search.problem.budget import FINISHING, LARGEST_FINAL, LEAST_SECONDS, REFINING, TimeBudget


def test_a_share_is_kept_for_refinement():
    assert TimeBudget(100.0).for_evolution() == pytest.approx((1 - FINISHING) * 100, abs=1)


@pytest.mark.parametrize(("seconds", "kept"), [(0.5, 0.2), (2.0, 0.8), (5.0, 1.3), (20.0, 2.0)])
def test_short_searches_keep_a_larger_share(seconds, kept):
    assert TimeBudget(seconds).for_evolution() == pytest.approx(seconds - kept, abs=0.1)


def test_as_many_individuals_are_refined_as_the_time_allows():
    assert TimeBudget(None).refinable() == math.inf
    assert TimeBudget(10 * REFINING).refinable() == pytest.approx(10, abs=1)
    assert TimeBudget(1.0, before=2.0).refinable() == 0


def test_the_last_part_of_refinement_ends_in_time():
    assert not TimeBudget(100.0, before=95.0).is_closing()
    assert TimeBudget(100.0, before=97.0).is_closing()


def test_the_evolution_always_gets_some_time():
    assert TimeBudget(1.0, clock=lambda: 5.0, began=0.0).for_evolution() == 5.0 + LEAST_SECONDS


def test_the_seconds_count_from_the_call():
    budget = TimeBudget(100.0, clock=lambda: 30.0, began=10.0)
    assert budget.spent() == 20
    assert budget.left() == 80


def test_work_on_all_rows_is_kept_time_for():
    plain, planned = TimeBudget(100.0), TimeBudget(100.0).planned(2_000_000, 6.0)
    assert plain.for_evolution() - planned.for_evolution() == pytest.approx(6 + planned.closing, abs=0.1)
    assert planned.refinable() < plain.refinable()


def test_rows_that_the_end_cannot_work_on_in_time_are_left_out():
    assert TimeBudget(100.0).planned(2_000_000, 6.0).affordable() == 1
    assert TimeBudget(100.0).planned(2_000_000_000, 6000.0).affordable() == pytest.approx(
        LARGEST_FINAL * (1 - FINISHING) * 100 / 6000, rel=0.02
    )


def test_whatever_is_left_after_reading_the_evolution_gets_some_of_it():
    for left in (0.1, 1.0, 5.0, 50.0):
        budget = TimeBudget(100.0, before=100 - left, clock=lambda: 0.0).planned(2_000_000, 60.0)
        assert budget.for_evolution() - budget.spent() > 0.2 * left


def test_time_before_an_interruption_counts_once():
    budget = TimeBudget(100.0, before=99.0)
    assert budget.spent() == pytest.approx(99, abs=1)
    assert budget.for_evolution() == pytest.approx(99, abs=1)
    assert budget.is_closing()


def test_without_a_limit_time_is_never_over():
    budget = TimeBudget(None, before=1e9)
    assert budget.for_evolution() is None
    assert not budget.is_closing()


def test_a_search_whose_seconds_end_before_the_first_generation_says_so():
    rng = np.random.default_rng(0)
    found = shine.evolve(rng.normal(size=(30, 1)), rng.normal(size=30), seconds=1e-3, population=50, threads=1)
    assert found.generations == 0
    assert found.front.reason.endswith("the seconds were over before the first generation: allow more")
