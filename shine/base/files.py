"""Files written completely or not at all, and through no link of another user; the conditions for trusting a folder.

The conditions are those of OpenSSH for keys (``StrictModes``): the folder belongs to the user and nobody else can write
to it; the same holds for every folder above, except root's and sticky ones (``/tmp``). On systems without owners and
modes, such as Windows, a folder of the user's profile counts as private.
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

    An `OSError` if a link belongs to another user, or links lead in a circle.
    """
    for _ in range(40):  # most links in a row, as in Linux
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


# A FIFO would wait for its other end; a link would lead elsewhere.
_READ = os.O_RDONLY | UNLINKED | getattr(os, "O_NONBLOCK", 0)


def make_folder(folder: Path) -> None:
    """Make a folder, and missing ones above it, for the user alone."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir(mode=0o700)


def exposure(folder: Path) -> str | None:
    """Reason why others can change the contents of a folder; None if they cannot.

    An `OSError` if it cannot be inspected.
    """
    if not HAS_OWNERS:
        return None
    user, given, real = os.geteuid(), Path(os.path.abspath(folder)), Path(os.path.realpath(folder))
    own = real.stat()
    if own.st_uid != user:
        return f"it belongs to user {own.st_uid}, and this is user {user}"
    if own.st_mode & 0o022 and not _is_of_one(own, user):
        return "others may write to it"
    # The owner of the root folder can do anything: root, or in a container the user that root is outside.
    trusted = {0, user, os.stat("/").st_uid}
    for above in (given, *given.parents, *real.parents):
        found = above.lstat()
        if found.st_uid not in trusted:
            return f"{above} belongs to user {found.st_uid}, who can replace it"
        is_open = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
        if stat.S_ISDIR(found.st_mode) and is_open and not _is_of_one(found, user):
            return f"others may write to {above}, and can replace it"
    return None


def _is_of_one(found: os.stat_result, user: int) -> bool:
    """Whether the group that may write to a folder has only this user; many systems make such a group for each user."""
    if found.st_mode & 0o002:
        return False
    import grp
    import pwd

    try:
        name, group = pwd.getpwuid(user).pw_name, grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}


def read(path: Path, most: int, hidden: bool = False) -> bytes | None:
    """Content of a regular file that nobody else can write; None if it is something else, or larger than `most`.

    Parameters
    ----------
    path : Path
        In a folder that is private.
    most : int
        Bytes.
    hidden : bool
        Whether others may not read it either.

    Raises
    ------
    OSError
        If there is no such file, or it cannot be read.
    """
    descriptor = os.open(path, _READ)
    try:
        # Inspect the file that was opened: another file may have its name by now.
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        if HAS_OWNERS and (found.st_uid != os.geteuid() or found.st_mode & (0o077 if hidden else 0o022)):
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
    return content if len(content) <= most else None


def write(path: Path, content: bytes) -> None:
    """Write a file that the user alone can read and write, whole or not at all.

    An `OSError` if it cannot be written.
    """
    with replacing(path, 0o600) as file:
        file.write(content)
