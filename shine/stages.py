"""Slow stages of a run report themselves through `logging`, so that a user interface can show them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("shine.stages")
"""Gets an INFO record when a stage begins, and a DEBUG record when it has ended; stages may be nested."""


@contextmanager
def stage(text: str) -> Iterator[None]:
    """Log a stage while a block runs.

    Parameters
    ----------
    text : str
        What the stage does, such as "compiling ...".
    """
    LOGGER.info(text)
    try:
        yield
    finally:
        LOGGER.debug("done: %s", text)
