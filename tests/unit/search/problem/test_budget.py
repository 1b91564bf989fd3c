"""The time of a search: a share is kept for refinement, and time before an interruption counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import shine
from shine.base.stages import listening
from shine.data.datasets.dataset import AllRows, Dataset
from shine.search.evolution.observers import Observers
from shine.search.evolution.settings import StopSettings
from shine.search.problem.budget import FEW, FRONT, REFINING, TimeBudget, affordable, planned
from shine.search.problem.settings import SearchSettings
from shine.search.run import search


@pytest.mark.parametrize(("seconds", "kept"), [(0.5, 0.2), (2.0, 0.8), (5.0, 1.3), (20.0, 2.0)])
def test_short_searches_keep_a_larger_share(seconds, kept):
    assert TimeBudget(seconds).for_evolution() == pytest.approx(seconds - kept, abs=0.1)


def test_as_many_individuals_are_refined_as_the_time_allows():
    assert TimeBudget(None).refinable() == math.inf
    assert TimeBudget(10 * REFINING).refinable() == pytest.approx(10, abs=1)
    assert TimeBudget(1.0, before=2.0).refinable() == 0


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


@pytest.mark.slow
@pytest.mark.parametrize("primitives", [["add", "sin"], ["mul"]])
def test_a_search_without_time_has_a_formula_of_all_required_columns(primitives):
    X, required = np.random.default_rng(0).normal(size=(30, 5)), [f"x{place}" for place in range(5)]
    y = X.sum(axis=1) if "add" in primitives else X.prod(axis=1)
    found = shine.evolve(X, y, primitives=primitives, seconds=1e-6, constraints={"required": required})
    assert found.best.tree.used_parameters == tuple(required)


class Clock:
    """A clock that stands still but for work, which takes a microsecond for each row it reads."""

    def __init__(self):
        self.now, self.rows = 0.0, []

    def __call__(self):
        return self.now

    def work(self, rows):
        count = rows.n_rows if isinstance(rows, Dataset) else sum(block.n_rows for block in rows.read(()))
        self.rows.append(count)
        self.now += 1e-6 * count + (1.0 if len(self.rows) == 1 else 0.0)  # compiling takes a second, once


def rows_of(count):
    return Dataset.from_arrays(np.arange(float(count))[:, None], np.arange(float(count)))


def stream_of(count, block):
    def read(names):
        for start in range(0, count, block):
            yield rows_of(min(block, count - start))

    return AllRows(count, float(count), float(count), 0.0, 1.0, {}, 0, read)


def test_some_rows_tell_how_long_all_take_and_compiling_is_not_counted():
    clock = Clock()
    found = planned(TimeBudget(100.0, clock=clock), rows_of(20 * FEW), clock.work, 3)
    assert max(clock.rows) == FEW
    assert found.each * FRONT == pytest.approx(3 * 1e-6 * 20 * FEW, rel=0.01)


def test_the_first_blocks_of_a_stream_tell_how_long_all_take():
    clock = Clock()
    found = planned(TimeBudget(100.0, clock=clock), stream_of(20_000_000, 1 << 17), clock.work, 2)
    assert max(clock.rows) < 2_000_000
    assert found.each * FRONT == pytest.approx(40.0, rel=0.01)


def test_rows_are_left_out_until_the_end_fits_into_its_share():
    clock = Clock()
    budget = planned(TimeBudget(10.0, clock=clock), rows_of(20 * FEW), clock.work, 20)
    share = affordable(budget, 20 * FEW) / (20 * FEW)
    assert 0 < share < 1
    assert budget.with_share(share).affordable() == pytest.approx(1.0, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("template", [None, "f(x0) + x1"])
def test_a_search_that_cannot_work_on_all_rows_works_on_a_sample_and_says_so(template):
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (600_000, 2))
    y = X[:, 0] ** 2 + X[:, 1] + rng.normal(0, 0.1, len(X))
    found = shine.evolve(X, y, template=template, seconds=0.5, population=100, threads=1)
    assert "of 600000 rows; more seconds allow all" in found.front.reason


def test_formulas_of_the_seeding_count_even_if_the_time_is_over():
    rng, now = np.random.default_rng(0), [0.0]
    X = rng.uniform(1, 2, (200, 2))
    y = X[:, 0] * X[:, 1] + rng.normal(0, 0.01, 200)

    def found(text):
        now[0] = 100.0  # the limit is over when the seeding tells its first formula

    settings = SearchSettings(stop=StopSettings(seconds=10.0))
    with listening(lambda name: None, lambda: None, found):
        result = search(Dataset.from_arrays(X, y), settings, Observers(clock=lambda: now[0]))
    assert now == [100.0]
    assert result.best.r2 > 0.5
    assert (result.stopped_by, result.generations) == ("seconds", 0)
