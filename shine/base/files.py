"""Files written completely or not at all, and through no link of another user.

Folders may be open to others, who can put a link where a file is going to be. So a file is written under a name that
nobody can guess, is created and never opened, and then takes its place: a link there is replaced. Only where the user
names a file, the user's own links lead to it.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

HAS_OWNERS = hasattr(os, "geteuid")

WRITING = ".writing-"
"""Beginning of the names of files that are being written."""

UNLINKED = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))
"""Flags of `os.open`: a link is an error."""

_LINKS = 40
"""Most links in a row, as in Linux."""


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[Any]:
    """A binary file that takes the place of another when the block ends, or vanishes if that fails.

    Parameters
    ----------
    path : Path
        A link there is replaced itself.
    mode : int
        Permissions, of which the process's mask is taken away.

    Raises
    ------
    OSError
        If it cannot be written. An earlier file stays as it was.
    """
    # In the same folder, because a file can be replaced atomically only within one file system.
    temporary = path.with_name(f"{WRITING}{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | UNLINKED, mode)
    try:
        try:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, even if the process is killed or the power fails.

    Raises
    ------
    OSError
        If it cannot be written. An earlier file stays as it was.
    """
    with replacing(path) as file:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file.fileno(), rest) :]
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power failure, if the system can do that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes were writing in a folder; nobody else may be writing there now."""
    with suppress(OSError):
        for path in folder.glob(f"{WRITING}*"):
            path.unlink(missing_ok=True)


def target(path: Path) -> Path:
    """A path with the links followed that the user or the system has made.

    Raises
    ------
    OSError
        If a link belongs to another user, or links lead in a circle.
    """
    for _ in range(_LINKS):
        try:
            found = path.lstat()
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(found.st_mode):
            return path
        if HAS_OWNERS and found.st_uid not in (0, os.geteuid()):
            raise PermissionError(errno.EPERM, f"{path.name} is a link of another user")
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
