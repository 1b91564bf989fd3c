"""Searches for rates, and those that workers have while this process has others."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

from shine.base.parallel import Pool, Round, Shipment
from shine.data.datasets.dataset import Dataset
from shine.lang.vocabulary import portable
from shine.search.evolution.epochs import SECONDS_TO_RETURN
from shine.search.evolution.observers import NOBODY, Progress
from shine.search.evolution.run_state import State
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.problem.settings import SearchSettings
from shine.search.run import search

LEAST_SECONDS = 1e-3
"""Seconds of a search when the time is over: enough for a part of its first population."""


@dataclass(frozen=True, eq=False)
class RateSearch:
    """A search for the rate of a state, or of several.

    Parameters
    ----------
    name : str
    dataset : Dataset
    settings : SearchSettings
    earlier : sequence of Model
        The front of an earlier search: it competes with what this one finds.
    """

    name: str
    dataset: Dataset
    settings: SearchSettings
    earlier: Sequence[Model] = ()

    def within(self, seconds: float, generations: int | None = None) -> RateSearch:
        """The search with other limits; an infinite number of seconds, and None, change nothing."""
        stop = self.settings.stop
        if math.isfinite(seconds):
            stop = replace(stop, seconds=max(seconds, LEAST_SECONDS))
        if generations is not None:
            stop = replace(stop, generations=generations)
        return replace(self, settings=replace(self.settings, stop=stop))

    def on_one_thread(self) -> RateSearch:
        """The search with a thread, unless the user says how many: others use the other cores."""
        fitness = self.settings.fitness
        return replace(self, settings=replace(self.settings, fitness=replace(fitness, threads=fitness.threads or 1)))

    def portable(self) -> RateSearch:
        """The search for another process, which has no source of the functions that were written here."""
        own = self.on_one_thread()
        return replace(own, settings=replace(own.settings, primitives=tuple(portable(own.settings.primitives))))


@dataclass(frozen=True, eq=False)
class Ended:
    """What a search in a worker leaves."""

    search: str
    """Its name."""
    result: Result
    state: State | None
    """After its last whole epoch."""
    progress: Progress | None
    """Of its last generation."""


class Elsewhere:
    """Searches that workers have; they end with the `with` block.

    Parameters
    ----------
    pool : Pool
    searches : sequence of RateSearch
    seconds : float
        Until they are to end, whenever they begin.
    """

    def __init__(self, pool: Pool, searches: Sequence[RateSearch], seconds: float) -> None:
        self._until = time.monotonic() + seconds + SECONDS_TO_RETURN
        self._shipment = Shipment([each.portable() for each in searches])
        tasks = [(number, time.time() + seconds) for number in range(len(searches))]
        self._round = Round(pool, _searched, tasks, self._shipment)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._round.cancel()
        self._shipment.recall()

    def results(self, *, hurry: bool) -> Iterator[Ended]:
        """What the searches leave, in their order; fewer if workers do not answer.

        Parameters
        ----------
        hurry : bool
            Whether the searches end now.
        """
        if hurry:
            # Tasks are not done again: a worker that has not begun finds nothing to begin with.
            self._shipment.recall()
            yield from self._round.finished(SECONDS_TO_RETURN)
            return
        with suppress(TimeoutError):
            yield from self._round.results(self._until)


def _searched(searches: Sequence[RateSearch], task: tuple[int, float], stopped: Callable[[], bool]) -> Ended:
    """Search in a worker, until a time."""
    number, until = task
    states: deque[State | None] = deque([None], maxlen=1)
    reports: deque[Progress | None] = deque([None], maxlen=1)

    def clock() -> float:
        return math.inf if stopped() else time.monotonic()

    own = searches[number].within(until - time.time(), 0 if stopped() else None)
    observers = replace(NOBODY, save=states.append, report=reports.append, clock=clock)
    result = search(own.dataset, own.settings, observers, own.earlier)
    return Ended(own.name, result, states[-1], reports[-1])
