"""The effort of the seeding: counted work, and little of it after an exact formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shine import Evaluator, PrimitiveSet
from shine.lang.forms.primitives import select
from shine.lang.vocabulary import primitive_table
from shine.search.seeding import SeedingTask, find_guesses
from shine.search.seeding.effort import A_SEARCH, AFTER_EXACT, Deadline, Effort
from shine.search.seeding.screen.skeletons import Rows

RNG = np.random.default_rng(0)
COLUMNS = RNG.uniform(1, 5, (2, 200))


def guesses(target, work=math.inf, deadline=None):
    table, names = primitive_table(["add", "mul", "sin"])
    primitives = PrimitiveSet(select(table, names), ("a", "b"))
    predict = Evaluator(COLUMNS.T, target).predict
    task = SeedingTask(Rows(COLUMNS, target, np.ones(len(target))), primitives, predict)
    return find_guesses(task, np.random.default_rng(0), Effort(work, deadline or Deadline()))


def test_an_effort_ends_with_its_work():
    effort = Effort(most=2 * A_SEARCH)
    effort.add_search(0)
    assert not effort.is_over
    effort.add_search(0)
    assert effort.is_over


def test_little_work_follows_an_exact_formula():
    effort = Effort()
    effort.note_exact()
    assert not effort.is_over
    effort.add_search(AFTER_EXACT)
    effort.note_exact()
    assert effort.is_over


@pytest.mark.slow
def test_the_same_work_gives_the_same_guesses_whatever_the_clock_says():
    noisy = COLUMNS[0] * COLUMNS[1] + RNG.normal(size=200)
    ticks = iter(range(10**9))
    one, other = guesses(noisy, 20_000), guesses(noisy, 20_000, deadline=Deadline(lambda: next(ticks)))
    assert one.candidates.codes.tolist() == other.candidates.codes.tolist()
    assert one.candidates.values.tolist() == other.candidates.values.tolist()
