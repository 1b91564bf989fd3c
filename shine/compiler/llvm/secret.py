"""A secret of the user, stored beside the files it authenticates."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shine.compiler.llvm import private

NAME = ".secret"
"""Name of its file."""

BYTES = 32

_PATIENCE = 1.0
"""Seconds to wait for another process that is making the secret."""


def secret_of(folder: Path) -> bytes:
    """The secret in a private folder; made if there is none, or others may know it.

    Raises
    ------
    OSError
        If it can be neither read nor made.
    """
    path = folder / NAME
    known = _read(path)
    if known is None:
        with _only_maker(folder):
            known = _read(path)
            if known is None:
                private.write(path, secrets.token_bytes(BYTES))
                # Without locks another process may have made one meanwhile: the last one counts.
                known = _read(path)
    if known is None:
        raise OSError(f"{path} cannot be made")
    return known


def _read(path: Path) -> bytes | None:
    """The secret, if it is whole; a crash can leave a file of zeros."""
    try:
        found = private.read(path, BYTES, hidden=True)
    except OSError:
        return None
    return found if found is not None and len(found) == BYTES and any(found) else None


@contextmanager
def _only_maker(folder: Path) -> Iterator[None]:
    """Let one process in at a time, if the file system has locks; do not wait long for a stopped process."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        end = time.monotonic() + _PATIENCE
        with suppress(OSError):
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > end:
                        break
                    time.sleep(0.005)
        yield
    finally:
        # A process that was forked meanwhile has the descriptor too: closing it here would not unlock.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)
