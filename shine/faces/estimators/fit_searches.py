"""The searches of one fit: they share its time, report together, and end together when the user ends one."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shine.base.parallel import ExecutorSource, opened
from shine.base.stages import listening, ticking
from shine.data.datasets.dataset import Dataset
from shine.data.user_data import TrainingArrays
from shine.faces.live.notebook import in_notebook, live_page
from shine.faces.progress import SearchBar, Status
from shine.formats.read.guesses import Guess
from shine.search.evolution.observers import Observers, Progress
from shine.search.evolution.settings import StopSettings
from shine.search.models.result import Result, Searches
from shine.search.problem.settings import SearchSettings
from shine.search.problem.template_data import with_template
from shine.search.run import Callback, Several

if TYPE_CHECKING:
    from shine.faces.live.view import Live
    from shine.search.evolution.observers import Progress
    from shine.search.evolution.settings import StopSettings

_LEAST_SECONDS = 1e-3
"""Seconds of a search when the fit's time is over: enough for a part of its first population."""


Search = Callable[[Dataset, SearchSettings, Observers], Result]
"""`shine.search.run.search`, or a search for something else."""


@dataclass
class FitSearches(Searches):
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
    target: str = field(default="", init=False)

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
        with_unit = self.settings.constraints.with_unit
        self.target = with_unit(called) if isinstance(called, str) else ""
        with live_page(live, name, self.target or with_unit("y")) as self.page:
            yield

    def run(self, search: Search, arrays: TrainingArrays, earlier: Sequence[Guess]) -> Result:
        """Search with a fair share of the time that is left, from the guesses of the settings and earlier formulas.

        Once the user has ended the fit, a search has only its first population: the fit needs its result soon.

        A `KeyboardInterrupt` if the search was interrupted and the fit does not keep its results, or an earlier search
        was interrupted.
        """
        number, settings = len(self.results), self.settings
        generations = 0 if self.stopped_by_user else settings.stop.generations
        stop = replace(settings.stop, generations=generations, seconds=self._share())
        arrays = replace(arrays, names=self.features, headings=self.headings)
        law = settings.template
        dataset = arrays.dataset() if law is None else with_template(law, arrays, self.labels)
        guesses = (*settings.guesses, *earlier)
        settings = replace(settings, stop=stop, seed=settings.seed + number, guesses=guesses)
        visitor = None if self.page is None else self.page.watch(self.titles[number % len(self.titles)])
        with self.report(number, stop) as report, opened(self.executor) as pool:
            began = None if self.results else self.began
            observers = Observers(report, visitor, pool=pool, began=began)
            result = search(dataset, settings, observers)
        if self.page is not None:
            units = dict(settings.constraints.units)
            self.page.ended(result, {"constraints": {"units": units}} if units else None)
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


LOGGER = logging.getLogger("shine")
"""Gets the lines of `verbose`, at the level INFO."""


@contextmanager
def reporter(
    callbacks: Callback | Iterable[Callback] | None,
    verbose: int,
    title: str,
    stop: StopSettings,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[Progress], bool]]:
    """A function that receives the progress of every generation of a search and returns whether to stop.

    Parameters
    ----------
    callbacks : callable, or several, optional
        All are called with each `Progress`; one that returns True stops the search. Their methods ``begin(settings)``
        and ``end(result)``, if they have them, are called around each search.
    verbose : int
        1 shows a bar on a terminal or in a notebook, and elsewhere logs a line when a stage begins and whenever the
        loss has fallen; 2 logs a line in every generation. If there is nothing of all that for a second, or a sixtieth
        of the time so far, another line tells where the search stands.
    title : str
        Beginning of each line.
    stop : StopSettings
        Limits of the search.
    clock : callable
        Seconds from any origin.
    """
    several = (callbacks,) if callable(callbacks) else tuple(callbacks or ())
    with ExitStack() as stack:
        if not verbose:
            yield Several(several)
            return
        status = Status(stop, clock)
        if verbose == 1 and (in_notebook() or (sys.stderr is not None and sys.stderr.isatty())):
            shown: _Bar | _Lines = _Bar(stack.enter_context(closing(SearchBar(status, title))), status)
        else:
            shown = _Lines(status, title, every_generation=verbose > 1)
        stack.enter_context(listening(shown.enter, status.stages.leave, status.stages.find))
        stack.enter_context(ticking(shown.tick))
        yield Several((shown.generation, *several))


class _Bar:
    """The status as a bar."""

    def __init__(self, bar: SearchBar, status: Status) -> None:
        self._status, self.tick, self.generation = status, bar.show, status.generation

    def enter(self, stage: str) -> None:
        self._status.stages.enter(stage)
        self.tick()


class _Lines:
    """The status as lines of the log."""

    def __init__(self, status: Status, title: str, every_generation: bool) -> None:
        self._status, self._title, self._every_generation = status, title, every_generation
        self._least, self._last = float("inf"), status.seconds

    def enter(self, stage: str) -> None:
        """A stage begins."""
        self._status.stages.enter(stage)
        self._log(stage)

    def generation(self, progress: Progress) -> None:
        """A generation has ended."""
        self._status.generation(progress)
        if progress.best_loss < self._least or self._every_generation:
            self._log(_line(progress, progress.seconds))
        self._least = min(self._least, progress.best_loss)

    def tick(self) -> None:
        """Another second is over."""
        if self._status.is_due(self._last):
            progress = self._status.evolving
            text = self._status.text(longest=None) if progress is None else _line(progress, self._status.seconds)
            self._log(text)

    def _log(self, text: str) -> None:
        self._last = self._status.seconds
        log(f"{self._title}{text}")


def log(line: str) -> None:
    """Log a line that the user has asked for: it is shown even if logging is not configured."""
    record = LOGGER.makeRecord(LOGGER.name, logging.INFO, __file__, 0, line, (), None)
    if LOGGER.hasHandlers():
        # Not by the level of the logger, which hides lines by default: `verbose` says what is shown.
        LOGGER.handle(record)
    else:
        logging.StreamHandler(sys.stderr).handle(record)


def _line(progress: Progress, seconds: float) -> str:
    return (
        f"generation {progress.generation:>4}  {seconds:>7.1f} s  "
        f"loss {progress.best_loss:<10.4g}  {progress.formula or '-'}"
    )
