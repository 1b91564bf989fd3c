"""Reports of a running search: callbacks, a bar of progress, and lines of the log."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from shine.base.stages import listening, ticking
from shine.faces.live.notebook import in_notebook
from shine.faces.progress import SearchBar, Status
from shine.search.following import Callback, Several

if TYPE_CHECKING:
    from shine.search.evolution.observers import Progress
    from shine.search.evolution.settings import StopSettings

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
        if verbose == 1 and _has_bar():
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


def _has_bar() -> bool:
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def _line(progress: Progress, seconds: float) -> str:
    return (
        f"generation {progress.generation:>4}  {seconds:>7.1f} s  "
        f"loss {progress.best_loss:<10.4g}  {progress.formula or '-'}"
    )
