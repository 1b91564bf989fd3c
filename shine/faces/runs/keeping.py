"""Keeping a run on disk while it goes on; a failed write never stops it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shine.base.errors import ExportError
from shine.faces.runs.checkpoints import Checkpoint, Shelf
from shine.faces.runs.files import unwritable
from shine.faces.runs.log import Log

if TYPE_CHECKING:
    from shine.search.evolution.run_state import State

CHECKPOINT_SECONDS = 5.0
"""Default seconds between checkpoints."""

LARGEST_SHARE = 0.01
"""Share of a run's time that checkpoints may take: slow checkpoints are written less often."""


@dataclass(frozen=True)
class Notice:
    """Something that a user should know about a run beyond its result.

    Parameters
    ----------
    text : str
    failed : bool
        Whether a file was not written: after showing the result, a program should end with the exit code of a failure.
    """

    text: str
    failed: bool = False


def as_warning(notice: Notice) -> None:
    """Turn a notice into a Python warning."""
    warnings.warn(notice.text, RuntimeWarning, stacklevel=2)


class Keeper:
    """Writes the log and the checkpoints of a run; reports the first failure and keeps trying.

    Parameters
    ----------
    folder : Path
    describe : callable
        Makes the description of data and settings for the headers of checkpoints; called once, when it is first needed.
    tell : callable
        Receives notices for the user.
    checkpoint_seconds : float
        Least time between checkpoints; 0 for one after every generation, however slow writing is.
    clock : callable
        Seconds from any origin.
    """

    def __init__(
        self,
        folder: Path,
        describe: Callable[[], Mapping[str, Any]],
        tell: Callable[[Notice], None],
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log = Log(folder / "log.jsonl")
        self._folder, self._shelf = folder, Shelf(folder)
        self._describe, self._tell, self._seconds, self._clock = describe, tell, checkpoint_seconds, clock
        self._description: Mapping[str, Any] | None = None
        self._due = clock() + checkpoint_seconds
        self._unsaved: State | None = None
        self._missing: dict[Path, str] = {}
        self._told = False

    @property
    def description(self) -> Mapping[str, Any]:
        """The description of data and settings, which is made when it is first needed."""
        if self._description is None:
            self._description = self._describe()
        return self._description

    def save(self, state: State) -> None:
        """Remember the state after a generation, and write it if a checkpoint is due."""
        self._unsaved = state
        if self._clock() >= self._due:
            self._write(state)

    def note(self, record: Mapping[str, Any]) -> None:
        """Add a line to the log."""
        self.attempt(self.log.path, lambda: self.log.add(record))

    def finish(self) -> None:
        """Write everything that is not written yet."""
        self.attempt(self.log.path, self.log.flush)
        if self._unsaved is not None:
            self._write(self._unsaved)

    def attempt(self, path: Path, write: Callable[[], object]) -> bool:
        """Write a file, and return whether that succeeded."""
        try:
            write()
        except (OSError, MemoryError, ExportError) as error:
            problem = str(error) if isinstance(error, ExportError) else str(unwritable(path, error))
            self._missing[path] = problem
            if not self._told:
                self._told = True
                self._tell(Notice(f"{problem}; the run goes on without it, and keeps trying", failed=True))
            return False
        self._missing.pop(path, None)
        return True

    def summarize(self) -> None:
        """At the end of a run in which a write failed, report the files that are still missing."""
        if not self._told:
            return
        for problem in self._missing.values():
            self._tell(Notice(f"{problem}; it is missing, or not the latest", failed=True))
        if not self._missing:
            self._tell(Notice(f"{self._folder}: everything was written in the end", failed=True))

    def _write(self, state: State) -> None:
        began = self._clock()
        checkpoint = Checkpoint({**self.description, **state.header()}, state.to_arrays())
        # The log must have every generation before the checkpoint.
        self.attempt(self.log.path, self.log.sync)
        if self.attempt(self._folder / "checkpoints", lambda: self._shelf.put(checkpoint)):
            self._unsaved = None
        now = self._clock()
        cost = now - began
        self._due = now + (max(self._seconds, cost / LARGEST_SHARE) if self._seconds else 0.0)
