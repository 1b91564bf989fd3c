"""The time of a search: how much of it the evolution may take, and how much its end on all rows will."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from shine.data.datasets.dataset import AllRows, Dataset
from shine.evaluate.losses.form import Loss
from shine.evaluate.tiers.gradients import MachineLinearizer
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.growth import Terminals
from shine.search.evolution.operators.creation import ptc2
from shine.search.problem.preparation import Task
from shine.search.problem.scaling import LINE_FUNCTIONS, with_functions

FINISHING = 0.1
"""Share of the seconds kept for refining the front: fitting its constants and making them simple."""

REFINING = 0.03
"""Seconds that refining takes for each individual, about: a front and what nearly fits as well are 20 to 120."""

FRONT = 16
"""Formulas whose work on all rows is planned; others are refined if the time allows."""

PASSES, FEWER_PASSES = 20, 8
"""Steps of a fit to all rows that the end takes as long as, about: two last fits, digits, losses of each version. With
streamed rows, a sample in memory tells the digits; with a template, all numbers are fitted together, once."""

LARGEST_FINAL = 0.5
"""Largest share, of the seconds without those for refining, for work on all rows; of more rows, a sample has to do."""

INTERVALS, INTERVAL_ROWS = 6e-6, 1 << 17
"""Seconds that the intervals of a formula take for each row, and the rows from which on a sample tells them."""

LEAST_SECONDS = 1e-3
"""Least seconds for the evolution: it must have a first population."""


@dataclass(frozen=True)
class TimeBudget:
    """The seconds that a search may take, everything included.

    Parameters
    ----------
    seconds : float, optional
        None for no limit.
    before : float
        Seconds that the search took before it was interrupted and resumed in this process.
    clock : callable
        Seconds from any origin.
    began : float, optional
        When the user's call began, on that clock; by default now.
    reading : float
        Seconds that were spent when the search was planned.
    each : float
        Seconds that the end takes for a formula on all rows.
    rows : int
        Rows in memory that the intervals of the chosen formula need; 0 if their time is not worth a plan.
    """

    seconds: float | None
    before: float = 0.0
    clock: Callable[[], float] = time.monotonic
    began: float | None = None
    reading: float = 0.0
    each: float = 0.0
    rows: int = 0

    def __post_init__(self) -> None:
        if self.began is None:
            object.__setattr__(self, "began", self.clock())

    def spent(self) -> float:
        """Seconds of the whole search so far."""
        assert self.began is not None
        return self.clock() - self.began + self.before

    def left(self) -> float:
        """Seconds that are left; inf for no limit."""
        return math.inf if self.seconds is None else max(self.seconds - self.spent(), 0.0)

    def planned(self, rows: int = 0, seconds: float = 0.0) -> TimeBudget:
        """The budget of the seconds that are left, with the time that the end will take on many rows.

        Parameters
        ----------
        rows : int
        seconds : float
            Those that the end takes for `FRONT` formulas, beside what is planned already.
        """
        each = self.each + seconds / FRONT
        return replace(self, reading=self.spent(), each=each, rows=self.rows or rows)

    def with_share(self, share: float) -> TimeBudget:
        """The budget for a share of the rows."""
        return replace(self, each=share * self.each, rows=int(share * self.rows))

    @property
    def closing(self) -> float:
        """Seconds for the intervals of the chosen formula."""
        return INTERVALS * min(self.rows, INTERVAL_ROWS)

    def affordable(self) -> float:
        """Share of the rows that the end can work on; 1 for all."""
        if self.seconds is None or not self.each:
            return 1.0
        # With a sample that is small enough, the intervals take less time, too.
        most, work = self._most_final(), FRONT * self.each
        return min(max((most - self.closing) / work, most / (work + INTERVALS * self.rows)), 1.0)

    def for_evolution(self) -> float | None:
        """Seconds from the beginning after which the evolution ends, so that refinement ends in time; None for no
        limit.
        """
        if self.seconds is None:
            return None
        return max(self.seconds - self._kept() - self._final(), self.spent() + LEAST_SECONDS)

    def refinable(self) -> float:
        """Individuals that can be refined in the time that is left; inf for no limit."""
        return max(self.left() - self.closing, 0.0) / (REFINING + self.each)

    def is_closing(self) -> bool:
        """Whether the time that is left is needed for the end of refinement."""
        # Share of the time for refining that is left when constants are made simple no longer: formulas are then
        # simplified, measured and compared.
        return self.seconds is not None and self.spent() >= self.seconds - 0.4 * self._kept() - self._final()

    def _kept(self) -> float:
        """Seconds for refining the front."""
        seconds = self._searching()
        # Seconds that refining may take however short the search is, but not a larger share than this
        return max(FINISHING * seconds, min(1.3, 0.4 * seconds))

    def _final(self) -> float:
        """Seconds for the work on all rows, and for what follows."""
        return min(FRONT * self.each + self.closing, self._most_final())

    def _most_final(self) -> float:
        return LARGEST_FINAL * (self._searching() - self._kept())

    def _searching(self) -> float:
        """Seconds from the plan to the end."""
        assert self.seconds is not None
        return max(self.seconds - self.reading, 0.0)


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
