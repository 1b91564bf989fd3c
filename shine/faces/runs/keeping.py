"""A run kept on disk while it goes on: its log and its state; a failed write never stops it.

log.jsonl has a line of JSON for each generation that `Thinning` takes, for each that a person put formulas into, and
for the last.
"""

from __future__ import annotations

import errno
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shine.base.errors import ExportError
from shine.base.files import UNLINKED, write_bytes
from shine.faces.runs.checkpoints import Checkpoint, Shelf
from shine.faces.runs.files import record_in, unwritable
from shine.faces.runs.records import PutInRecord

if TYPE_CHECKING:
    from shine.search.dynamics.session import MotionState
    from shine.search.evolution.observers import Progress
    from shine.search.evolution.run_state import State


YOUNG = 256
"""Generations that a run tells of one by one; each doubling of their number adds half as many stretches."""


class Thinning:
    """Takes the first generation of each stretch, and the first of the stretch that has another loss.

    A stretch is one generation at first, and at most a 128th of the run so far. So a run of a million generations has
    about 1800 stretches, and at most twice as many are taken. What is taken follows from what was taken, never from the
    clock: a resumed run takes the same.
    """

    def __init__(self) -> None:
        self._stretch, self._changed = -1, False
        self._loss: object = None

    def takes(self, generation: int, loss: object) -> bool:
        """Whether the next generation of a run is taken.

        Parameters
        ----------
        generation : int
            Higher than that of the call before.
        loss : float or None
            Of the best formula.
        """
        now = stretch(generation)
        first = now != self._stretch
        if not first and (self._changed or loss == self._loss):
            return False
        self._stretch, self._changed, self._loss = now, not first, loss
        return True


def stretch(generation: int) -> int:
    """Number of the stretch of a generation; the first is 0."""
    doublings = max(0, generation.bit_length() - YOUNG.bit_length() + 1)
    return doublings * (YOUNG // 2) + (generation >> doublings)


CHECKPOINT_SECONDS = 5.0
"""Default seconds between checkpoints."""


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
        Least time between checkpoints; 0 for one after every generation, however slow or large.
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
        self._unsaved: State | MotionState | None = None
        self._unlogged: Progress | None = None
        self._missing: dict[Path, str] = {}
        self._told = False

    @property
    def description(self) -> Mapping[str, Any]:
        """The description of data and settings, which is made when it is first needed."""
        if self._description is None:
            self._description = self._describe()
        return self._description

    def save(self, state: State | MotionState) -> None:
        """Remember the state after a generation, and write it if a checkpoint is due."""
        self._unsaved = state
        if self._clock() >= self._due:
            self._write(state)

    def note(self, progress: Progress, put_in: Sequence[str] = ()) -> None:
        """Add a line to the log, unless the generation needs none or may be the last.

        Parameters
        ----------
        progress : Progress
        put_in : sequence of str
            Formulas that a person has put into the search.
        """
        loss = progress.best_loss if len(progress.front) else None
        if self.log.thinning.takes(progress.before + progress.generation, loss) or put_in:
            self._unlogged = None
            self._add(progress_record(progress, put_in))
        else:
            self._unlogged = progress

    def finish(self) -> None:
        """Write everything that is not written yet."""
        if self._unlogged is not None:
            last, self._unlogged = self._unlogged, None
            self._add(progress_record(last))
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

    def _add(self, record: Mapping[str, Any]) -> None:
        self.attempt(self.log.path, partial(self.log.add, record))

    def _write(self, state: State | MotionState) -> None:
        description = self.description  # it takes its time once, which says nothing about the next checkpoint
        began = self._clock()
        checkpoint = Checkpoint({**description, **state.header()}, state.to_arrays())
        size = sum(array.nbytes for array in checkpoint.arrays.values())
        # The log must have all lines of the generations before the checkpoint.
        self.attempt(self.log.path, self.log.sync)
        if self.attempt(self._folder / "checkpoints", lambda: self._shelf.put(checkpoint)):
            self._unsaved = None
        now = self._clock()
        # Bytes a second that checkpoints may write: large checkpoints are written less often.
        # Share of a run's time that checkpoints may take: slow checkpoints are written less often
        cost = max((now - began) / 0.01, size / (1e7 / 60))
        self._due = now + (max(self._seconds, cost) if self._seconds else 0.0)


def progress_record(progress: Progress, put_in: Sequence[str] = ()) -> dict[str, Any]:
    """One line of log.jsonl, with the best individual so far before linear scaling, and the formulas put in."""
    best = progress.front.tree(len(progress.front) - 1) if len(progress.front) else None
    return {
        "generation": progress.before + progress.generation,
        **({"search": progress.search} if progress.search else {}),
        **({"life": progress.life + 1} if progress.life else {}),
        "evaluations": progress.evaluations,
        "seconds": round(progress.seconds, 6),
        "loss": None if best is None else progress.best_loss,
        "size": None if best is None else best.size,
        "formula": None if best is None else str(best),
        **({"refuted": progress.refuted} if progress.refuted else {}),
        **({"put_in": list(put_in)} if put_in else {}),
    }


class Log:
    """Appends lines to a file; lines that cannot be written wait until they can."""

    def __init__(self, path: Path) -> None:
        self.path, self.thinning = path, Thinning()
        self._waiting, self._written = b"", 0

    def begin(self, generation: int) -> int:
        """Keep the lines that a run has before a given generation, and drop the others.

        Returns
        -------
        int
            Number of lines that are lacking: one for each earlier stretch of generations (see `Thinning`).

        Raises
        ------
        OSError
            If the file cannot be read or written.
        """
        kept, known = list[bytes](), set[int]()
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):  # reading a pipe would block
            raise OSError(errno.EINVAL, "is not a file")
        if generation and self.path.exists():
            for line in self.path.read_bytes().splitlines(keepends=True):
                record = _record(line)
                if record is None or record["generation"] >= generation:
                    break
                known.add(stretch(record["generation"]))
                # The last line of an interrupted run may be one that the whole run does not have.
                if self.thinning.takes(record["generation"], record.get("loss")) or "put_in" in record:
                    kept.append(line)
        content = b"".join(kept)
        write_bytes(self.path, content)
        self._written = len(content)
        return stretch(generation - 1) + 1 - len(known)

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
            if b'"put_in"' in line and (record := _record(line)) is not None:
                found += [PutInRecord(generation=record["generation"], formula=text) for text in record["put_in"]]
    return found


def _record(line: bytes) -> dict[str, Any] | None:
    """A line with its generation; None if the line is incomplete."""
    record = record_in(line)
    return record if record is not None and isinstance(record.get("generation"), int) else None
