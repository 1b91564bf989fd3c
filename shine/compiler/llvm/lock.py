"""The lock around LLVM, and how it survives a fork.

llvmlite lets one thread at a time into LLVM. A child process has only the thread that forked: if another thread was
inside LLVM, the lock would stay taken for ever, with LLVM's state half changed. So a fork waits until no thread is
inside LLVM.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

from llvmlite.binding import ffi

_GUARD: Any = getattr(ffi.lib, "_lock", None)
"""llvmlite's guard, which offers no public way to hold it; its `_lock` is an `RLock`."""


class _Lock:
    """llvmlite's lock, or one of Shine's own if llvmlite's is not found."""

    def __init__(self) -> None:
        self._own = threading.RLock()

    @property
    def _current(self) -> Any:
        return getattr(_GUARD, "_lock", self._own)

    def __enter__(self) -> None:
        self._current.acquire()

    def __exit__(self, *error: object) -> None:
        self._current.release()

    def after_fork_in_parent(self) -> None:
        with suppress(RuntimeError):  # an interrupt ended the wait for it
            self._current.release()

    def after_fork_in_child(self) -> None:
        try:
            self._current.release()
        except RuntimeError:  # as above; the thread that holds it does not run here
            self._own = threading.RLock()
            if hasattr(_GUARD, "_lock"):
                _GUARD._lock = threading.RLock()


LOCK = _Lock()
"""Held while LLVM works. The thread that holds it may take it again."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.__enter__, after_in_parent=LOCK.after_fork_in_parent, after_in_child=LOCK.after_fork_in_child
    )
