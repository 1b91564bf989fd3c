"""The time of a search: how much of it the evolution may take, and when refinement has to come to its end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

FINISHING = 0.1
"""Share of the seconds kept for refining the front: fitting its constants and making them simple."""

LEAST_FINISHING, LARGEST_SHARE = 1.3, 0.4
"""Seconds that refining may take however short the search is, but not a larger share than this."""

CLOSING = 0.4
"""Share of the time for refining that is left when constants are made simple no longer: formulas are then simplified,
measured and compared."""

REFINING = 0.03
"""Seconds that refining takes for each individual, about: a front and what nearly fits as well are 20 to 120."""

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
    clock : callable
        Seconds from any origin. The search begins now.
    """

    seconds: float | None
    before: float = 0.0
    clock: Callable[[], float] = time.monotonic
    entered: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entered", self.clock())

    def spent(self) -> float:
        """Seconds of the whole search so far."""
        return self.clock() - self.entered + self.before

    def for_evolution(self) -> float | None:
        """Seconds that the evolution may take so that refinement ends in time too; None for no limit.

        The evolution adds up the time before an interruption itself.
        """
        if self.seconds is None:
            return None
        return max(self.seconds - self._kept() - (self.clock() - self.entered), LEAST_SECONDS)

    def refinable(self) -> float:
        """Individuals that can be refined in the time that is left; inf for no limit."""
        return math.inf if self.seconds is None else max((self.seconds - self.spent()) / REFINING, 0.0)

    def is_closing(self) -> bool:
        """Whether the time that is left is needed for the end of refinement."""
        return self.seconds is not None and self.spent() >= self.seconds - CLOSING * self._kept()

    def _kept(self) -> float:
        """Seconds for refining the front."""
        assert self.seconds is not None
        return max(FINISHING * self.seconds, min(LEAST_FINISHING, LARGEST_SHARE * self.seconds))
