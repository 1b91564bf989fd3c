"""The time of a search: a share is kept for refinement, and time before an interruption counts."""

from __future__ import annotations

import time

import pytest

from shine.search.budget import FINISHING, LEAST_SECONDS, TimeBudget


def test_a_share_is_kept_for_refinement():
    assert TimeBudget(100.0).for_evolution() == pytest.approx((1 - FINISHING) * 100, abs=1)


def test_the_evolution_always_gets_some_time():
    assert TimeBudget(1.0, entered=time.monotonic() - 5).for_evolution() == LEAST_SECONDS


def test_time_before_an_interruption_counts_once():
    budget = TimeBudget(100.0, before=99.0)
    assert budget.spent() == pytest.approx(99, abs=1)
    assert budget.for_evolution() == pytest.approx(90, abs=1)
    assert not budget.is_over()
    assert TimeBudget(100.0, before=100.0).is_over()


def test_without_a_limit_time_is_never_over():
    budget = TimeBudget(None, before=1e9)
    assert budget.for_evolution() is None
    assert not budget.is_over()
