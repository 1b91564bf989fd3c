"""Time of the end of a search on all rows, measured before it begins, on some of the rows themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import numpy as np

from shine.data.datasets.dataset import AllRows, Dataset
from shine.evaluate.losses.form import Loss
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.growth import Terminals
from shine.search.evolution.operators.creation import ptc2
from shine.search.problem.budget import FRONT, PASSES, TimeBudget
from shine.search.problem.lines import LINE_FUNCTIONS, with_functions
from shine.search.problem.preparation import Task

FEW = 50_000
"""Rows up to which the work on all rows is part of refining; with more, so many tell how long it takes."""

STREAMED = 1 << 20
"""Rows of a stream that tell it, about: to open a file takes as long as to read some of its blocks."""

LEAST = 10_000
"""Rows that the end works on, however little time there is."""

NODES = 12
"""Nodes of a typical formula."""

Work = Callable[[Dataset | AllRows], object]
"""The repeated work of the end: a step of a fit of `FRONT` typical formulas to some rows."""


def steps_of(primitives: PrimitiveSet, loss: Loss | str, threads: int) -> Work:
    """The work of a search for one formula."""
    own = with_functions(primitives, LINE_FUNCTIONS)
    formulas = ptc2(FRONT, own, NODES, NODES, Terminals(), np.random.default_rng(0))
    ones, limits = np.ones(FRONT), np.full(FRONT, np.inf)

    def work(rows: Dataset | AllRows) -> object:
        linearizer = MachineLinearizer(rows, loss, threads, primitives.features)
        return linearizer.normal_equations(formulas, ones, 0 * ones, limits)

    return work


def planned(budget: TimeBudget, rows: Dataset | AllRows, work: Work, passes: int = PASSES) -> TimeBudget:
    """The budget that knows how long the end will work on all rows, in memory or streamed.

    Parameters
    ----------
    budget : TimeBudget
    rows : Dataset or Whole
    work : callable
    passes : int
        How often the end does this work on all rows, about.
    """
    if budget.seconds is None or rows.n_rows <= FEW:
        return budget.planned()
    some = rows.sampled(FEW, np.random.default_rng(0)) if isinstance(rows, Dataset) else _beginning(rows)
    work(some)  # what is compiled or loaded takes its time once
    began = budget.clock()
    work(some)
    a_pass = (budget.clock() - began) * rows.n_rows / some.n_rows
    return budget.planned(rows.n_rows, passes * a_pass)


def _beginning(all_rows: AllRows) -> AllRows:
    """The first blocks of streamed rows."""

    def read(names: Collection[str]) -> Iterator[Dataset]:
        count = 0
        for block in all_rows.read(names):
            yield block
            count += block.n_rows
            if count >= STREAMED:
                break

    return replace(all_rows, n_rows=min(STREAMED, all_rows.n_rows), read=read)


def affordable(budget: TimeBudget, rows: int, least: int = LEAST) -> int:
    """As many of the rows as the end can work on within the seconds.

    Parameters
    ----------
    budget : TimeBudget
        Of `planned`.
    rows : int
        In memory.
    least : int
        Rows that it works on in any case.
    """
    return max(int(budget.affordable() * rows), min(least, rows))


def with_affordable_rows(budget: TimeBudget, task: Task, given: Dataset) -> tuple[TimeBudget, Task, Dataset]:
    """The task with a random sample of its rows if the end cannot work on all of them within the seconds.

    Parameters
    ----------
    budget : TimeBudget
        Of `planned`.
    task : Task
    given : Dataset
        The rows before they were prepared.
    """
    most = affordable(budget, given.n_rows)
    if most == given.n_rows:
        return budget, task, given
    some, own = (each.sampled(most, np.random.default_rng(0)) for each in (given, task.dataset))
    return budget.with_share(most / given.n_rows), replace(task, dataset=own), some
