"""The searches of one fit: they share its time, and end together when the user ends one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from shine.base.parallel import ExecutorSource, opened
from shine.data.datasets.dataset import Dataset
from shine.data.user_data import TrainingArrays
from shine.faces.live.notebook import live_page
from shine.formats.read.guesses import Guess
from shine.search.evolution.observers import Observers, Progress
from shine.search.evolution.settings import StopSettings
from shine.search.following import followed
from shine.search.models.result import Result
from shine.search.problem.settings import SearchSettings
from shine.search.problem.template_data import with_template

if TYPE_CHECKING:  # slow to import, and few fits need it
    from shine.faces.live.view import Live

USER = ("interrupted", "callback")
"""Reasons to stop that end the whole fit, not only the running search."""

_LEAST_SECONDS = 1e-3
"""Seconds of a search when the fit's time is over: enough for a part of its first population."""


Search = Callable[[Dataset, SearchSettings, Observers], Result]
"""`shine.search.run.search`, or a search for something else."""


@dataclass
class FitSearches:
    """One search after the other.

    Parameters
    ----------
    count : int
        Largest number of searches.
    features : tuple of str
        Names of the columns in formulas.
    headings : sequence of str
        Headings of the columns.
    settings : SearchSettings
        All searches share the seconds; each has all generations. The first search has the seed, the others the numbers
        that follow it.
    report : callable
        Makes the report of a search, given its number and its limits.
    keep : bool
        Whether an interrupted fit keeps its results; otherwise the interrupt is raised again.
    labels : mapping of str to tuple of str
        Texts that columns number, by the column's name (see `Dataset`).
    titles : sequence of str
        What the searches are called.
    executor : Executor, dask.distributed.Client, str or int, optional
        Workers that share the islands and the seeding of each search (see `shine.base.parallel.opened`).
    began : float
        When the fit began, on `time.monotonic`: preparing the data is part of its seconds.
    """

    count: int
    features: tuple[str, ...]
    headings: Sequence[str]
    settings: SearchSettings
    report: Callable[[int, StopSettings], AbstractContextManager[Callable[[Progress], bool]]]
    keep: bool
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    titles: Sequence[str] = ("",)
    executor: ExecutorSource = None
    began: float = field(default_factory=time.monotonic)
    results: list[Result] = field(default_factory=list)
    page: Live | None = field(default=None, init=False)

    @contextmanager
    def shown(self, live: bool, name: str, target: object) -> Iterator[None]:
        """Show the searches of a block on a live page, if that is wanted.

        Parameters
        ----------
        live : bool
        name : str
            Heading of the page.
        target : object
            The target; its name, if it has one, is shown.
        """
        called = getattr(target, "name", None)
        with live_page(live, name, str(called) if isinstance(called, str) and called else "y") as self.page:
            yield

    @property
    def stopped_by_user(self) -> bool:
        """Whether the user has ended the fit."""
        return any(result.stopped_by in USER for result in self.results)

    @property
    def stopped_by(self) -> str:
        """Reason for the end of the fit: the user's if there is one, else the last search's."""
        reasons = [result.stopped_by for result in self.results]
        return next((reason for reason in reasons if reason in USER), reasons[-1])

    def run(self, search: Search, arrays: TrainingArrays, guesses: Sequence[Guess]) -> Result:
        """Search with a fair share of the time that is left.

        Once the user has ended the fit, a search has only its first population: the fit needs its result soon.

        Raises
        ------
        KeyboardInterrupt
            If the search was interrupted and the fit does not keep its results, or an earlier search was interrupted.
        """
        number, settings = len(self.results), self.settings
        generations = 0 if self.stopped_by_user else settings.stop.generations
        stop = replace(settings.stop, generations=generations, seconds=self._share())
        arrays = replace(arrays, names=self.features, headings=self.headings)
        law = settings.template
        dataset = arrays.dataset() if law is None else with_template(law, arrays, self.labels)
        settings = replace(settings, stop=stop, seed=settings.seed + number, guesses=tuple(guesses))
        visitor = None if self.page is None else self.page.watch(self.titles[number % len(self.titles)])
        with self.report(number, stop) as report, opened(self.executor) as pool:
            began = None if self.results else self.began
            observers = Observers(report, visitor, pool=pool, began=began)
            result = followed(report, settings, partial(search, dataset, settings, observers))
        if self.page is not None:
            self.page.ended(result)
        interrupted = result.stopped_by == "interrupted"
        if interrupted and (not self.keep or any(before.stopped_by == "interrupted" for before in self.results)):
            raise KeyboardInterrupt
        self.results.append(result)
        return result

    def _share(self) -> float | None:
        """Seconds of the next search."""
        seconds = self.settings.stop.seconds
        if seconds is None:
            return None
        if not self.results:
            prepared = time.monotonic() - self.began
            return prepared + max((seconds - prepared) / self.count, _LEAST_SECONDS)
        spent = sum(result.seconds for result in self.results)
        return max((seconds - spent) / (self.count - len(self.results)), _LEAST_SECONDS)
