"""Displays of a running search: a bar on a terminal, lines elsewhere, nothing if a program reads the output."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from shine.base.stages import listening, ticking
from shine.faces.cli.output import is_terminal
from shine.faces.progress import SearchBar, Status

if TYPE_CHECKING:
    from shine.search.evolution.observers import Progress


class Silence:
    """Shows messages only.

    Attributes
    ----------
    status : Status
        Where the search stands.
    """

    def __init__(self, status: Status) -> None:
        self.status = status

    def enter(self, stage: str) -> None:
        """A stage begins."""
        self.status.stages.enter(stage)

    def leave(self) -> None:
        """The latest stage has ended."""
        self.status.stages.leave()

    def generation(self, progress: Progress) -> None:
        """A generation has ended."""
        self.status.generation(progress)

    def tick(self) -> None:
        """Another second is over."""

    def message(self, text: str) -> None:
        """Show a message to the user."""
        click.echo(text, err=True)

    def close(self) -> None:
        """The search has ended."""


class Lines(Silence):
    """Prints a line for each stage, and another if the last one is old."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self._last = status.seconds

    def enter(self, stage: str) -> None:
        """Print the stage that begins."""
        super().enter(stage)
        self._say(stage)

    def generation(self, progress: Progress) -> None:
        """Print the generation if the last line is old."""
        super().generation(progress)
        self.tick()

    def tick(self) -> None:
        """Print where the search stands if the last line is old."""
        if self.status.is_due(self._last):
            self._say(self.status.text(longest=None))

    def _say(self, text: str) -> None:
        self._last = self.status.seconds
        with contextlib.suppress(OSError):  # a search goes on if standard error is closed
            click.echo(text, err=True)


class Bar(Silence):
    """Updates one line: the current stage or generation, and the share of the search that is over."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self._bar = SearchBar(status)

    def enter(self, stage: str) -> None:
        """Show the stage that begins."""
        super().enter(stage)
        self._bar.show()

    def leave(self) -> None:
        """Show what the search does next."""
        super().leave()
        self._bar.show()

    def tick(self) -> None:
        """Show the time that is over."""
        self._bar.show()

    def message(self, text: str) -> None:
        """Show a message above the bar."""
        self._bar.clear()
        super().message(text)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


@contextlib.contextmanager
def display_for(printed: str, first: str) -> Iterator[Silence]:
    """Show the stages and generations while a block runs.

    Parameters
    ----------
    printed : {"front", "formula", "json", "nothing"}
        The final output of the command; output for programs gets no lines beside it.
    first : str
        What is done before the first stage.
    """
    display = _chosen(printed, first)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(display))
        if type(display) is not Silence:
            stack.enter_context(listening(display.enter, display.leave, display.status.stages.find))
            stack.enter_context(ticking(display.tick))
        yield display


def _chosen(printed: str, first: str) -> Silence:
    status = Status(first=first)
    if printed == "formula":
        return Silence(status)
    if is_terminal(sys.stderr):
        return Bar(status)
    return Lines(status) if printed == "front" else Silence(status)
