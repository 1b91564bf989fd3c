"""A run kept on disk while it goes on: its log and its state; a failed write never stops it.

log.jsonl has a line of JSON for each generation.
"""

from __future__ import annotations

import errno
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shine.base.errors import ExportError
from shine.base.files import UNLINKED
from shine.faces.runs.checkpoints import Checkpoint, Shelf
from shine.faces.runs.files import unwritable
from shine.faces.runs.records import PutInRecord

if TYPE_CHECKING:
    from shine.search.evolution.observers import Progress
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


def progress_record(progress: Progress) -> dict[str, int | float | str | None]:
    """One line of log.jsonl, with the best individual so far before linear scaling."""
    best = progress.front.tree(len(progress.front) - 1) if len(progress.front) else None
    return {
        "generation": progress.generation,
        "evaluations": progress.evaluations,
        "seconds": round(progress.seconds, 6),
        "loss": None if best is None else progress.best_loss,
        "size": None if best is None else best.size,
        "formula": None if best is None else str(best),
        **({"refuted": progress.refuted} if progress.refuted else {}),
    }


class Log:
    """Appends lines to a file; lines that cannot be written wait until they can."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._waiting, self._written = b"", 0

    def begin(self, generation: int) -> int:
        """Keep the lines of the generations before a given one, and drop the others.

        Returns
        -------
        int
            Number of earlier generations without a line.

        Raises
        ------
        OSError
            If the file cannot be read or written.
        """
        kept, known = 0, set()
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):  # reading a pipe would block
            raise OSError(errno.EINVAL, "is not a file")
        if generation and self.path.exists():
            for line in self.path.read_bytes().splitlines(keepends=True):
                number = _generation(line)
                if number is None or number >= generation:
                    break
                kept += len(line)
                known.add(number)
        descriptor = self._opened()
        try:
            os.ftruncate(descriptor, kept)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._written = kept
        return generation - len(known)

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a line.

        Raises
        ------
        OSError
            If it cannot be written completely. The rest of it is written before the next line.
        """
        self._waiting += json.dumps(record).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Write the waiting lines; an `OSError` if that fails."""
        if not self._waiting:
            return
        # Opened each time, because a network folder may disappear for a while.
        descriptor = self._opened()
        try:
            # The line has a fixed place, so that writing it again after an interrupt does not double it.
            self._written = os.lseek(descriptor, min(self._written, os.fstat(descriptor).st_size), os.SEEK_SET)
            while self._waiting:
                count = os.write(descriptor, self._waiting)
                self._written, self._waiting = self._written + count, self._waiting[count:]
        finally:
            os.close(descriptor)

    def sync(self) -> None:
        """Write the waiting lines, and make the log survive a power failure; an `OSError` if that fails."""
        self.flush()
        descriptor = self._opened()
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_CREAT | UNLINKED, 0o666)


def formulas_put_in(path: Path) -> list[PutInRecord]:
    """The formulas that a person put in, by the lines of a log; an `OSError` if it cannot be read."""
    found: list[PutInRecord] = []
    with path.open("rb") as stream:
        for line in stream:
            if b'"put_in"' in line and (generation := _generation(line)) is not None:
                found += [PutInRecord(generation=generation, formula=text) for text in json.loads(line)["put_in"]]
    return found


def _generation(line: bytes) -> int | None:
    """The generation of a line; None if the line is incomplete."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    number = value.get("generation") if isinstance(value, dict) and line.endswith(b"\n") else None
    return number if isinstance(number, int) else None
