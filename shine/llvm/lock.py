"""The lock around LLVM, and what becomes of it when the process is forked.

llvmlite lets one thread at a time into LLVM. A child has only the thread that forked: if another one was inside LLVM,
its lock would stay taken for ever, and LLVM's own state half changed. So a fork waits until LLVM is left.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

from llvmlite.binding import ffi

_GUARD: Any = getattr(ffi.lib, "_lock", None)
"""llvmlite's own, which has no public way to hold it; its `_lock` is an `RLock`."""


class _Lock:
    """llvmlite's lock, or, where it is not found, one that only Shine knows."""

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
        except RuntimeError:  # as above; whoever holds it does not run here
            self._own = threading.RLock()
            if hasattr(_GUARD, "_lock"):
                _GUARD._lock = threading.RLock()


LOCK = _Lock()
"""Held while LLVM works. The thread that holds it may take it again."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.__enter__, after_in_parent=LOCK.after_fork_in_parent, after_in_child=LOCK.after_fork_in_child
    )
