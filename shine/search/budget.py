"""The time of a search: how much of it the evolution may take, and when it is over."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

FINISHING = 0.1
"""Share of the seconds kept for refining the front: fitting its constants and making them simple."""

LEAST_SECONDS = 1e-3
"""Least seconds for the evolution: it must have a first population."""


@dataclass(frozen=True)
class TimeBudget:
    """The seconds that a search may take.

    Parameters
    ----------
    seconds : float, optional
        None for no limit.
    before : float
        Seconds that the search took before it was interrupted and resumed in this process.
    entered : float
        When this process began the search, by the monotonic clock; now by default.
    """

    seconds: float | None
    before: float = 0.0
    entered: float = field(default_factory=time.monotonic)

    def spent(self) -> float:
        """Seconds of the whole search so far."""
        return time.monotonic() - self.entered + self.before

    def for_evolution(self) -> float | None:
        """Seconds that the evolution may take so that refinement ends in time too; None for no limit.

        The evolution adds up the time before an interruption itself.
        """
        if self.seconds is None:
            return None
        return max((1 - FINISHING) * self.seconds - (time.monotonic() - self.entered), LEAST_SECONDS)

    def is_over(self) -> bool:
        """Whether the seconds are over."""
        return self.seconds is not None and self.spent() >= self.seconds
