"""A cache on disk for results made once for a host instead of once for a process, mainly object code of machines.

Object code from the cache is executed. So nobody else may be able to write to the folder (see
`shine.base.files`), and an entry is trusted only if it carries the digest of its name and content under a
secret of the user. Anything else (a truncated file, a foreign one, one that was moved) is made again and is never an
error. Entries are written whole or not at all, so processes may write at the same time.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import os
import re
import secrets
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import llvmlite

from shine.base import files
from shine.base.files import WRITING
from shine.compiler.llvm.target import host_cpu, host_triple, llvm_version

NAME = ".secret"
"""Name of its file."""

BYTES = 32


def secret_of(folder: Path) -> bytes:
    """The secret in a private folder; made if there is none, or others may know it.

    An `OSError` if it can be neither read nor made.
    """
    path = folder / NAME
    known = _read(path)
    if known is None:
        with _only_maker(folder):
            known = _read(path)
            if known is None:
                files.write(path, secrets.token_bytes(BYTES))
                # Without locks another process may have made one meanwhile: the last one counts.
                known = _read(path)
    if known is None:
        raise OSError(f"{path} cannot be made")
    return known


def _read(path: Path) -> bytes | None:
    """The secret, if it is whole; a crash can leave a file of zeros."""
    try:
        found = files.read(path, BYTES, hidden=True)
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
        end = time.monotonic() + 1.0  # seconds to wait for another process that is making the secret
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


_MAGIC = b"shine cache 2\n"
_DIGEST_BYTES = 32

ENTRIES = 256
"""Most entries that are kept: the most recently used ones. Queries have one each, some kilobytes long."""

MOST_BYTES = 1 << 26
"""Most bytes of an entry; a machine has some hundred kilobytes."""

ENTRY = re.compile(r"[0-9a-f]{64}")
"""Names of entries; other files in the folder stay untouched."""


def cache_folder() -> Path:
    """The folder of the cache: ``$SHINE_CACHE_DIR``, or the user's cache directory of the platform."""
    chosen = os.environ.get("SHINE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "shine" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "shine"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shine"


def problem() -> str | None:
    """The reason why nothing is kept, and the remedy; None if the cache works, or the user wants none."""
    try:
        folder = cache_folder()
    except RuntimeError:
        return "there is no home directory; set SHINE_CACHE_DIR to a folder of your own"
    if _is_nowhere(folder):
        return None
    try:
        files.make_folder(folder)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        why = files.exposure(folder)
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        return f"{folder} cannot be used: {reason}; set SHINE_CACHE_DIR to a folder of your own"
    if why is None:
        return None
    remedy = "take that right from them (chmod go-w)" if "may write" in why else "choose another folder"
    return f"{folder} is not safe: {why}; {remedy}, or set SHINE_CACHE_DIR to a folder of your own"


def cached(
    description: Iterable[str], make: Callable[[], bytes], accepts: Callable[[bytes], bool] = lambda content: True
) -> bytes:
    """Bytes from the cache, made and put there if they are not in it: object code, or measurements of this host.

    If nothing can be kept, each process makes them, and warns once.

    Parameters
    ----------
    description : iterable of str
        Everything that the bytes depend on; the host and the version of LLVM are added.
    make : callable
        Returns the bytes.
    accepts : callable
        Whether bytes from the cache are as expected.
    """
    host = (*host_cpu(), host_triple(), llvmlite.__version__, llvm_version())
    name = hashlib.sha256("\0".join((*host, *description)).encode()).hexdigest()
    obstacle = problem()
    if obstacle is not None:
        _warn(obstacle)
    if obstacle is not None or _is_nowhere(cache_folder()):
        return make()
    path = cache_folder() / name
    try:
        secret = secret_of(path.parent)
    except OSError as error:
        _warn(
            f"{path.parent} cannot be written: {error.strerror or error}; set SHINE_CACHE_DIR to a folder of your own"
        )
        return make()
    known = _cache_read(path, secret)
    if known is not None and accepts(known):
        return known
    content = make()
    try:
        files.write(path, _head(name, content, secret) + content)
    except OSError as error:
        # A folder in the place of an entry concerns that entry only.
        if not path.is_dir():
            _warn(_unwritable(path.parent, error))
    _forget(path.parent)
    return content


def _is_nowhere(folder: Path) -> bool:
    """Whether the user wants no cache."""
    return str(folder) == os.devnull


def _unwritable(folder: Path, error: OSError) -> str:
    return (
        f"{folder} cannot be written: {error.strerror or error}; make room there, or set SHINE_CACHE_DIR to a folder "
        "of your own"
    )


@cache
def _warn(obstacle: str) -> None:
    """Warn once of each obstacle."""
    warnings.warn(
        f"Compiled code is not kept, so that every process compiles it again: {obstacle} ({os.devnull} to keep nothing "
        "without this warning)",
        RuntimeWarning,
        stacklevel=3,
    )


def _head(name: str, content: bytes, secret: bytes) -> bytes:
    """The bytes before the content of an entry."""
    digest = hashlib.blake2b(_MAGIC + name.encode(), key=secret, digest_size=_DIGEST_BYTES)
    digest.update(content)
    return _MAGIC + digest.digest()


def _cache_read(path: Path, secret: bytes) -> bytes | None:
    """Content of an entry; None if there is none, or it cannot be trusted."""
    try:
        found = files.read(path, MOST_BYTES)
    except OSError:
        return None
    if found is None:
        return None
    size = len(_MAGIC) + _DIGEST_BYTES
    content = found[size:]
    if not hmac.compare_digest(found[:size], _head(path.name, content, secret)):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # entries in use are kept
    return content


def _forget(folder: Path) -> None:
    """Remove the entries used longest ago, and files of processes that were killed while writing."""
    ages: list[tuple[float, str]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for each in found:
            with contextlib.suppress(OSError):
                changed = each.stat(follow_symlinks=False).st_mtime
                if ENTRY.fullmatch(each.name):
                    ages.append((changed, each.path))
                elif each.name.startswith(WRITING) and time.time() - changed > 3600:
                    os.unlink(each.path)
    for _, path in sorted(ages)[:-ENTRIES]:
        with contextlib.suppress(OSError):
            os.unlink(path)
