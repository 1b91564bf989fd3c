"""How long the end of a search will work on all rows: measured before it begins, on the rows themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shine.data.datasets.dataset import Dataset
from shine.evaluate.tiers.machine_tier import MachineEvaluator
from shine.lang.growth import Terminals
from shine.search.evolution.operators.creation import ptc2
from shine.search.problem.budget import FRONT, TimeBudget
from shine.search.problem.preparation import Task

FEW = 50_000
"""Rows up to which the work on all rows is part of refining."""

LEAST = 10_000
"""Rows that the end works on, however little time there is."""

NODES = 12
"""Nodes of a typical formula."""


def planned(budget: TimeBudget, task: Task, threads: int) -> TimeBudget:
    """The budget that knows how long the end will work on all rows.

    Parameters
    ----------
    budget : TimeBudget
    task : Task
    threads : int
    """
    rows = task.dataset
    if budget.seconds is None or rows.n_rows <= FEW:
        return budget
    formulas = ptc2(FRONT, task.primitives, NODES, NODES, Terminals(), np.random.default_rng(0))
    began = budget.clock()
    MachineEvaluator(rows, "mse", False, "float64", threads).score(formulas)
    return budget.with_rows(rows.n_rows, budget.clock() - began)


def affordable(budget: TimeBudget, task: Task, given: Dataset) -> tuple[TimeBudget, Task, Dataset]:
    """As many rows as the end can work on within the seconds: a random sample if there are too many.

    Parameters
    ----------
    budget : TimeBudget
        Of `planned`.
    task : Task
    given : Dataset
        The rows before they were prepared.
    """
    rows = given.n_rows
    most = max(int(budget.affordable() * rows), min(LEAST, rows))
    if most == rows:
        return budget, task, given
    some, own = (each.sampled(most, np.random.default_rng(0)) for each in (given, task.dataset))
    return replace(budget, each=budget.each * most / rows), replace(task, dataset=own), some
