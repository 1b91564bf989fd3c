"""What is made once for a host and not once a process, kept on disk: the object code of machines above all.

An entry is trusted only if its digest is right; anything else - a truncated file, a foreign one, a directory that
cannot be written - means making it again, never an error. Entries are written whole or not at all, so processes may
write at the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from shine.llvm.target import host_cpu, host_triple

_MAGIC = b"shine cache 1\n"
_DIGEST_BYTES = 32

ENTRIES = 64
"""Entries kept; the least recently used ones go first."""


def cache_folder() -> Path:
    """Where object code is kept: ``$SHINE_CACHE_DIR``, or the user's cache directory of the platform."""
    chosen = os.environ.get("SHINE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "shine" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "shine"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shine"


def cached(description: Iterable[str], make: Callable[[], bytes]) -> bytes:
    """Bytes from the cache, or made and put there: object code, or what was measured of this host.

    Parameters
    ----------
    description : iterable of str
        All that they depend on, but for the host and the version of LLVM, which are added.
    make : callable
        Makes them.
    """
    host = (*host_cpu(), host_triple(), llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info)))
    name = hashlib.sha256("\0".join((*host, *description)).encode()).hexdigest()
    try:
        path = cache_folder() / name
        known = _read(path)
    except (OSError, RuntimeError):  # no home directory is a RuntimeError
        return make()
    if known is not None:
        return known
    code = make()
    with contextlib.suppress(OSError):
        _write(path, code)
        _forget(path.parent)
    return code


def _read(path: Path) -> bytes | None:
    """Code of an entry; None if there is none that can be trusted."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    head = len(_MAGIC) + _DIGEST_BYTES
    code = content[head:]
    if not content.startswith(_MAGIC) or content[len(_MAGIC) : head] != hashlib.sha256(code).digest():
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # what is used stays
    return code


def _write(path: Path, code: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + hashlib.sha256(code).digest() + code)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _forget(folder: Path) -> None:
    """Remove the entries used longest ago, and what a process that was killed while writing left."""
    for temporary in folder.glob(".writing-*"):
        if time.time() - temporary.stat().st_mtime > 3600:
            temporary.unlink(missing_ok=True)
    entries = sorted(folder.glob("[0-9a-f]*"), key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in entries[ENTRIES:]:
        entry.unlink(missing_ok=True)
