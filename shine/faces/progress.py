"""The progress of a search for people: as text, by its stages, and as a bar."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shine.base.stages import Stages
from shine.faces.live.notebook import in_notebook
from shine.lang.forms.names import shortened
from shine.search.models.front_table import loss_text

if TYPE_CHECKING:  # the evolution is slow to import, and the command line shows progress before it is needed
    from shine.search.evolution.observers import Progress
    from shine.search.evolution.settings import StopSettings

PAUSE = 10.0
"""Least seconds between two lines if no stage begins."""

LONGEST = 40
"""Characters of a formula in the text."""

SHAPE = "{percentage:3.0f}%|{bar:12}| {desc}"
"""Shape of a bar."""


def progress_text(progress: Progress, stop: StopSettings | None, longest: int | None = LONGEST) -> str:
    """Generation, best loss, evaluations per second, and the formula, which is last because terminals cut it."""
    most = "" if stop is None or stop.generations is None else f"/{stop.generations}"
    rate = progress.evaluations / progress.seconds if progress.seconds > 0 else 0.0
    told = f"generation {progress.generation}{most}, loss {loss_text(progress.best_loss)}, {rate:,.0f} evaluations/s"
    formula = progress.formula or "-"
    return f"{told}, {formula if longest is None else shortened(formula, longest)}"


def share_over(progress: Progress, stop: StopSettings | None) -> float:
    """Share of the search that is over for certain, by its generations or its seconds; 0 if neither is limited."""
    if stop is None:
        return 0.0
    spent = ((progress.generation, stop.generations), (progress.seconds, stop.seconds))
    return min(max((done / most for done, most in spent if most), default=0.0), 1.0)


class Status:
    """Progress of a search: its generation or its stage.

    Parameters
    ----------
    stop : StopSettings, optional
        The limits of the search.
    clock : callable
        Seconds from any origin.
    first : str
        What is done before the first stage.
    """

    def __init__(
        self,
        stop: StopSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
        first: str = "preparing the rows",
    ) -> None:
        self.stop, self.stages = stop, Stages()
        self.stages.enter(first)
        self._clock, self._began = clock, clock()
        self._progress: Progress | None = None
        self._depth = 0

    def generation(self, progress: Progress) -> None:
        """A generation has ended."""
        self._began = self._clock() - progress.seconds
        # Within this stage the search evolves.
        self._progress, self._depth = progress, len(self.stages)

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return self._clock() - self._began

    @property
    def evolving(self) -> Progress | None:
        """The latest generation, unless a stage is shorter or came later."""
        return self._progress if len(self.stages) <= self._depth else None

    def text(self, longest: int | None = LONGEST) -> str:
        """The generation, or the stage, its seconds so far and what it has found."""
        progress = self.evolving
        if progress is not None:
            return progress_text(progress, self.stop, longest)
        text = self.stages.text(f", {self.seconds:.0f} s")
        return text if longest is None else shortened(text, 3 * longest)

    def is_due(self, said: float) -> bool:
        """Whether a line of an earlier time, by `seconds`, is old: by `PAUSE`, or a sixtieth of the time so far."""
        seconds = self.seconds
        return seconds - said >= max(PAUSE, seconds / 60)

    @property
    def share(self) -> float:
        """Share of the search that is over for certain, by its generations or its seconds; 0 if neither is limited."""
        generations = 0.0 if self._progress is None else share_over(self._progress, self.stop)
        most = None if self.stop is None else self.stop.seconds
        return min(max(generations, self.seconds / most if most else 0.0), 1.0)


class SearchBar:
    """A bar of tqdm's in a notebook or on a terminal, which moves with time; its text is that of the status."""

    def __init__(self, status: Status, title: str = "") -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that ipywidgets is not installed: the bar is then text
            from tqdm.auto import tqdm
        self._status, self._title = status, title
        # A notebook's bar has a width of its own; the text after it is the progress.
        shape = "{l_bar}{bar}" if in_notebook() else SHAPE
        size: dict[str, Any] = {"dynamic_ncols": True} if _has_size() else {"ncols": 80, "nrows": 24}
        self._bar = tqdm(total=1, leave=False, bar_format=shape, desc=f"{title}{status.text()}", **size)

    def show(self) -> None:
        """Show where the search stands."""
        self._bar.set_description_str(f"{self._title}{self._status.text()}", refresh=False)
        self._bar.n = self._status.share
        self._bar.refresh()

    def clear(self) -> None:
        """Clear the line of the bar until it is shown again."""
        self._bar.clear()

    def close(self) -> None:
        """The search has ended."""
        self._bar.close()


def _has_size() -> bool:
    """Whether the terminal has a size. Those of containers may have none, and tqdm would show nothing there."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns > 0
    except (OSError, ValueError):  # no terminal, but a notebook
        return True
