"""A lock that lets one process at a time write a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shine.base.errors import ExportError
from shine.base.files import remove_leftovers
from shine.faces.runs.files import unwritable


class BusyRunError(ExportError):
    """Another process is writing the run."""


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Keep other processes from writing the same run. The system drops the lock however the process ends.

    Raises
    ------
    ExportError
        If another process is writing the run.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        with suppress(OSError):  # file systems without locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BusyRunError(f"{folder}: another process is writing this run") from None
            for place in (folder, folder / "checkpoints"):
                remove_leftovers(place)
        yield
    finally:
        with suppress(OSError):  # nothing was written through it
            os.close(descriptor)
