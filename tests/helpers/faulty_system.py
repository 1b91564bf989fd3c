"""An operating system on which one call fails: opening, writing, syncing, closing or renaming."""

from __future__ import annotations

import errno
import os
from typing import Any


class FaultySystem:
    """The module `os` with one call that fails.

    Parameters
    ----------
    call : str
        Name of the call; ``short`` is a write of only half.
    first : int
        Which of these calls fails, from 1.
    error : int
        Its error number.
    lasting : bool
        Whether all later ones fail too.
    """

    def __init__(self, call: str, first: int, error: int, lasting: bool) -> None:
        self.name, self.first, self.error, self.lasting = call.replace("short", "write"), first, error, lasting
        self.short, self.count, self.failed = call == "short", 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name) if name != self.name else self._call

    def _call(self, *arguments: Any) -> Any:
        self.count += 1
        if self.count == self.first or (self.lasting and self.count > self.first):
            self.failed += 1
            if self.short and self.failed == 1:
                os.write(arguments[0], arguments[1][: len(arguments[1]) // 2])
            if self.name == "close":
                os.close(*arguments)  # close() closes the file even if it reports an error
            raise OSError(self.error, os.strerror(self.error))
        return getattr(os, self.name)(*arguments)


FAULTS = {
    "open": (errno.EACCES, errno.ENOSPC, errno.EROFS, errno.ENOENT),
    "write": (errno.ENOSPC, errno.EIO, errno.EDQUOT),
    "short": (errno.ENOSPC,),
    "fsync": (errno.EIO, errno.ENOSPC),
    "close": (errno.EIO, errno.ENOSPC),
    "replace": (errno.EACCES, errno.ENOSPC, errno.EROFS),
}
