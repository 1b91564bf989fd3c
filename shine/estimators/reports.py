"""Reports of a running search: callbacks, a bar of progress, and lines of the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from shine.live.notebook import in_notebook
from shine.search.following import Callback, Several
from shine.search.progress import SearchBar
from shine.stages import listening

if TYPE_CHECKING:
    from shine.gp.evolution import Progress
    from shine.gp.settings import StopSettings

LOGGER = logging.getLogger("shine")
"""Gets the lines of `verbose`, at the level INFO."""


@contextmanager
def reporter(
    callbacks: Callback | Iterable[Callback] | None, verbose: int, title: str, stop: StopSettings
) -> Iterator[Callable[[Progress], bool]]:
    """A function that receives the progress of every generation of a search and returns whether to stop.

    Parameters
    ----------
    callbacks : callable, or several, optional
        All are called with each `Progress`; one that returns True stops the search. Their methods ``begin(settings)``
        and ``end(result)``, if they have them, are called around each search.
    verbose : int
        1 shows a bar on a terminal or in a notebook, and elsewhere logs a line when a stage begins and whenever the
        loss has fallen; 2 logs a line in every generation.
    title : str
        Beginning of each line.
    stop : StopSettings
        Limits of the search.
    """
    several = (callbacks,) if callable(callbacks) else tuple(callbacks or ())
    least = float("inf")
    with ExitStack() as stack:
        bar = stack.enter_context(closing(SearchBar(stop, title))) if verbose == 1 and _has_bar() else None

        if bar is not None:
            stack.enter_context(listening(bar.enter, lambda: None))
        elif verbose:
            stack.enter_context(listening(lambda text: log(f"{title}{text}"), lambda: None))

        def show(progress: Progress) -> None:
            nonlocal least
            if bar is not None:
                bar.generation(progress)
            elif verbose and (progress.best_loss < least or verbose > 1):
                log(_line(title, progress))
            least = min(least, progress.best_loss)

        yield Several((show, *several))


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


def _line(title: str, progress: Progress) -> str:
    return (
        f"{title}generation {progress.generation:>4}  {progress.seconds:>7.1f} s  "
        f"loss {progress.best_loss:<10.4g}  {progress.formula or '-'}"
    )
