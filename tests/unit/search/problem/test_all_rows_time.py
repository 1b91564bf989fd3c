"""The end's work on all rows is predicted from some of them, and kept time for."""

from __future__ import annotations

import numpy as np
import pytest

import shine
from shine.data.datasets.dataset import AllRows, Dataset
from shine.search.problem.all_rows_time import FEW, affordable, planned
from shine.search.problem.budget import FRONT, TimeBudget


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


def test_few_rows_and_searches_without_a_limit_need_no_plan():
    clock = Clock()
    planned(TimeBudget(100.0, clock=clock), rows_of(FEW), clock.work)
    planned(TimeBudget(None, clock=clock), rows_of(2 * FEW), clock.work)
    assert clock.rows == []


def test_what_is_left_after_reading_is_shared_out():
    clock = Clock()
    clock.now = 9.0
    budget = planned(TimeBudget(10.0, clock=clock, began=0.0), rows_of(10), clock.work)
    assert 9.5 < budget.for_evolution() < 9.9


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
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, (200, 2))
    found = shine.evolve(X, X[:, 0] * X[:, 1] + rng.normal(0, 0.01, 200), seconds=0.2, threads=1)
    assert found.best.r2 > 0.5
