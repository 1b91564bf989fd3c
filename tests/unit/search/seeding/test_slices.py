"""Slices of the seeding: together they find what the stage finds in one go, and each tells what it adds."""

from __future__ import annotations

import time

import numpy as np
import pytest

from shine import Evaluator, PrimitiveSet
from shine.lang.forms.primitives import select
from shine.lang.vocabulary import primitive_table
from shine.search.seeding import Guesses, SeedingTask, Slices, find_guesses, guesses_in_slices, slices
from shine.search.seeding.effort import Deadline, Effort
from shine.search.seeding.screen.skeletons import Rows

NEVER = Deadline()


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr(slices, "FIRST_SLICE", 4000)
    monkeypatch.setattr(slices, "SLICE", 5000)


def task():
    rng = np.random.default_rng(1)
    columns = rng.uniform(1, 5, (2, 200))
    target = np.sin(columns[0]) * columns[1] + rng.normal(size=200)
    table, names = primitive_table(["add", "mul", "sin"])
    predict = Evaluator(columns.T, target).predict
    return SeedingTask(Rows(columns, target, np.ones(200)), PrimitiveSet(select(table, names), ("a", "b")), predict)


def begun(known=-1):
    found = Slices(lambda rng, effort: guesses_in_slices(task(), rng, effort))
    found.start(np.random.default_rng(0), known)
    return found


def texts(found):
    return [] if found is None else [str(found.candidates.tree(at)) for at in range(len(found.candidates))]


@pytest.mark.slow
def test_all_slices_find_what_the_stage_finds_in_one_go():
    stage = begun()
    told = [texts(stage.until(number, NEVER)) for number in range(40)]
    assert sum(map(bool, told)) > 2
    every = [text for each in told for text in each]
    assert len(set(every)) == len(every)
    assert set(texts(find_guesses(task(), np.random.default_rng(0)))) <= set(every)


@pytest.mark.slow
def test_a_repeated_stage_goes_on_where_the_first_one_was():
    whole = begun()
    expected = [texts(whole.until(number, NEVER)) for number in (2, 5, 9)]
    again = begun(known=2)
    assert [texts(again.until(number, NEVER)) for number in (2, 5, 9)] == [[], *expected[1:]]


def test_an_interrupt_is_told_while_slices_are_repeated():
    def interrupted(rng, effort):
        found = find_guesses(task(), rng, Effort(100.0))
        yield Guesses(found.candidates, found.unexplained, found.kinds, found.parts, found.scores, False, True)

    stage = Slices(interrupted)
    stage.start(np.random.default_rng(0), known=4)
    assert stage.until(4, NEVER) is None
    assert stage.until(5, NEVER).interrupted


def test_a_stage_that_ends_early_is_closed():
    closed = []

    def stage(rng, effort):
        try:
            yield find_guesses(task(), rng, Effort(100.0))
            effort.work = effort.pause
            yield find_guesses(task(), rng, Effort(100.0))
        finally:
            closed.append(time.time())

    found = Slices(stage)
    found.start(np.random.default_rng(0))
    found.until(0, NEVER)
    found.close()
    assert closed
