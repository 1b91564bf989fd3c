"""log.jsonl: a line of JSON for each generation, written as the run goes on."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shine.base.files import UNLINKED
from shine.faces.runs.records import PutInRecord

if TYPE_CHECKING:
    from shine.search.evolution.observers import Progress


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
    }


class Log:
    """Appends lines to a file; lines that cannot be written wait until they can.

    Parameters
    ----------
    path : Path
    """

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
