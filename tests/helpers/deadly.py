"""A search of the seeding that kills the worker it runs in; workers import it from here."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any


def deadly(screen: Any, folder: str, test: int) -> Iterator[Any]:
    """Finds nothing, and kills its process as long as there are files in a folder; never that of the test."""
    if os.getpid() != test:
        for name in os.listdir(folder)[:1]:
            os.remove(os.path.join(folder, name))
            os.kill(os.getpid(), signal.SIGKILL)
    yield from ()
