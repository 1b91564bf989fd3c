"""What takes a moment says so through `logging`, for whoever wants to show it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("shine.stages")
"""Gets an INFO record when a stage begins, and a DEBUG record when it has ended; stages may lie within each other."""


@contextmanager
def stage(text: str) -> Iterator[None]:
    """Log what goes on while a block runs.

    Parameters
    ----------
    text : str
        What is being done, as "compiling ...".
    """
    LOGGER.info(text)
    try:
        yield
    finally:
        LOGGER.debug("done: %s", text)
