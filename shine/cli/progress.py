"""Displays of a running search: a bar on a terminal, lines elsewhere, nothing if a program reads the output."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import click
from tqdm import tqdm

from shine.cli.output import is_terminal
from shine.search.progress import SHAPE, progress_text, share_over
from shine.stages import listening

if TYPE_CHECKING:
    from shine.gp.evolution import Progress
    from shine.gp.settings import StopSettings

PAUSE = 10.0
"""Least seconds between lines about generations."""


class Display(Protocol):
    """Shows the stages and generations of a search.

    Attributes
    ----------
    stop : StopSettings, optional
        The limits of the search.
    """

    stop: StopSettings | None

    def enter(self, stage: str) -> None:
        """A stage begins."""

    def leave(self) -> None:
        """The latest stage has ended."""

    def generation(self, progress: Progress) -> None:
        """A generation has ended."""

    def message(self, text: str) -> None:
        """Show a message to the user."""

    def close(self) -> None:
        """The search has ended."""


class Silence:
    """Shows messages only."""

    def __init__(self) -> None:
        self.stop: StopSettings | None = None

    def enter(self, stage: str) -> None:
        return

    def leave(self) -> None:
        return

    def generation(self, progress: Progress) -> None:
        return

    def close(self) -> None:
        return

    def message(self, text: str) -> None:
        click.echo(text, err=True)


class Lines(Silence):
    """Prints a line for each stage, and for a generation every `PAUSE` seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._last = time.monotonic()

    def enter(self, stage: str) -> None:
        self._say(stage)

    def generation(self, progress: Progress) -> None:
        if time.monotonic() - self._last >= PAUSE:
            self._say(progress_text(progress, self.stop, longest=None))

    def _say(self, text: str) -> None:
        self._last = time.monotonic()
        with contextlib.suppress(OSError):  # a search goes on if standard error is closed
            click.echo(text, err=True)


class Bar(Silence):
    """Updates one line: the current stage, and the share of the generations or seconds that are over."""

    def __init__(self, first: str) -> None:
        super().__init__()
        self._stages: list[str] = []
        # Some terminals, such as those of containers, have no size; tqdm would show nothing there.
        sized = os.get_terminal_size(sys.stderr.fileno()).columns > 0
        size = {"dynamic_ncols": True} if sized else {"ncols": 80, "nrows": 24}
        self._bar = tqdm(total=1, bar_format=SHAPE, leave=False, desc=first, **size)

    def enter(self, stage: str) -> None:
        self._stages.append(stage)
        self._bar.set_description_str(stage)

    def leave(self) -> None:
        self._stages.pop()
        if self._stages:
            self._bar.set_description_str(self._stages[-1])

    def generation(self, progress: Progress) -> None:
        self._bar.set_description_str(progress_text(progress, self.stop), refresh=False)
        self._bar.update(share_over(progress, self.stop) - self._bar.n)

    def message(self, text: str) -> None:
        self._bar.clear()
        super().message(text)

    def close(self) -> None:
        self._bar.close()


@contextlib.contextmanager
def display_for(printed: str, first: str) -> Iterator[Display]:
    """Show the stages and generations while a block runs.

    Parameters
    ----------
    printed : {"front", "formula", "json", "nothing"}
        The final output of the command; output for programs gets no lines beside it.
    first : str
        Text of the bar before the first stage.
    """
    display = _chosen(printed, first)
    with contextlib.closing(display), listening(display.enter, display.leave):
        yield display


def _chosen(printed: str, first: str) -> Display:
    if printed == "formula":
        return Silence()
    if is_terminal(sys.stderr):
        return Bar(first)
    return Lines() if printed == "front" else Silence()
