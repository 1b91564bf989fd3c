"""Limits of the stage: time, and counted work, which ends it at the same point on every machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST_SLICE, SLICE = 60_000, 20_000
"""Work of the first slice, which holds all searches of a small bank, some seconds; and of each other one."""

A_SEARCH = 1500
"""Members that most searches count as, besides those of their bank: its views, and the formulas that they complete."""

AFTER_EXACT = 4000
"""Work that may follow an exact formula: the next searches of a small bank, which may find a shorter one. One search of
a large bank is as much."""


@dataclass(frozen=True)
class Deadline:
    """A time on a clock; by default never.

    Parameters
    ----------
    clock : callable
        Seconds from any origin.
    at : float
    """

    clock: Callable[[], float] = time.monotonic
    at: float = math.inf

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.at - self.clock()

    @property
    def is_over(self) -> bool:
        """Whether the time has come."""
        return self.clock() >= self.at


@dataclass
class Effort:
    """The effort of the stage so far, and its limits.

    Parameters
    ----------
    most : float
        Most work: members that searches look at, all searches together. It does not depend on the clock.
    deadline : Deadline
        When the stage ends.
    work : float
        The work so far.
    exact_at : float
        The work when a formula was exact for the first time.
    pause : float
        The work after which the stage pauses.
    pause_deadline : Deadline
        When it pauses at the latest; the search that runs ends there.
    """

    most: float = math.inf
    deadline: Deadline = field(default_factory=Deadline)
    work: float = 0.0
    exact_at: float = math.inf
    pause: float = math.inf
    pause_deadline: Deadline = field(default_factory=Deadline)

    @property
    def is_paused(self) -> bool:
        """Whether the work of this slice is done, or its time over."""
        return self.work >= self.pause or self.pause_deadline.is_over

    @property
    def is_over(self) -> bool:
        """Whether the time or the work is over."""
        return self.work >= min(self.most, self.exact_at + AFTER_EXACT) or self.deadline.is_over

    def note_exact(self) -> None:
        """Note that a formula is exact: only little work may follow."""
        self.exact_at = min(self.exact_at, self.work)

    def add_search(self, members: int, work: int = A_SEARCH) -> None:
        """Count one search of a bank with so many members, which counts as some work besides."""
        self.work += work + members

    def capacity(self, members: int) -> int:
        """Most members of a bank that leave enough work to search it."""
        # Share of the work that growing one bank to its capacity may count as: one over the searches of a round, about.
        return int(max(min(members, self.most / 16), 1))
