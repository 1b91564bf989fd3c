"""The stage in slices of counted work, in turn with the evolution: the clock does not decide where they end."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import replace

import numpy as np

from shine.search.seeding.effort import FIRST_SLICE, SLICE, Deadline, Effort
from shine.search.seeding.guesses import Guesses

AN_INDIVIDUAL = 0.5
"""Work that an individual of the evolution earns the seeding, at equal shares: it takes about as long."""

Begin = Callable[[np.random.Generator, Effort], Generator[Guesses]]
"""Random generator, effort -> all guesses so far, at each pause of the effort and at the end."""


class Slices:
    """The guesses of a stage, slice by slice: what each adds to those before it.

    Parameters
    ----------
    begin : callable
        Begins the stage.
    last : float
        Number of the last slice, from 0: a stage that is over is not repeated when a run is resumed.
    """

    def __init__(self, begin: Begin, last: float = math.inf) -> None:
        self._begin, self._last, self._effort = begin, last, Effort()
        self._steps: Generator[Guesses] | None = None
        self._done = self._known = -1
        self._told: set[str] = set()

    def start(self, rng: np.random.Generator, known: int = -1) -> None:
        """Begin, unless the stage has begun already.

        Parameters
        ----------
        rng : numpy.random.Generator
        known : int
            Number of the last slice that an earlier part of the run has made, or -1: it is made again, silently, before
            the next one.
        """
        if self._steps is None:
            self._known = known
            self._steps = self._begin(rng, self._effort) if known < self._last else None

    def until(self, number: int, deadline: Deadline, pause: Deadline | None = None) -> Guesses | None:
        """What the slices up to one add to those that were told; None if nothing.

        Parameters
        ----------
        number : int
            Of the last slice, from 0.
        deadline : Deadline
            Of the whole search.
        pause : Deadline, optional
            When the slices end at the latest.
        """
        # Slices of an earlier part of the run are made again only if others follow.
        steps = self._steps if number > self._known else None
        effort, latest = self._effort, None
        effort.deadline, effort.pause_deadline = deadline, pause or Deadline()
        while steps is not None and self._done < number:
            self._done += 1
            effort.pause = FIRST_SLICE + self._done * SLICE
            if effort.is_paused:
                continue
            with np.errstate(all="ignore"):
                found = next(steps, None)
            if found is None:
                break
            if self._done > self._known or found.interrupted:
                latest = found
            else:
                self._told.update(_texts(found))
        if latest is None:
            return None
        fresh = [at for at, text in enumerate(_texts(latest)) if text not in self._told]
        self._told.update(_texts(latest))
        return replace(latest, candidates=latest.candidates.take(np.array(fresh, np.int64)))

    def close(self) -> None:
        """End the stage, and take back what workers have not begun."""
        if self._steps is not None:
            self._steps.close()


def due_slices(individuals: int, share: float) -> int:
    """The last slice that so many individuals of the evolution have earned, if the seeding may take a share."""
    return int(AN_INDIVIDUAL * individuals * share / max(1 - share, 1 / SLICE) / SLICE)


def _texts(found: Guesses) -> list[str]:
    return [str(found.candidates.tree(at)) for at in range(len(found.candidates))]
