"""Slow stages of a run report themselves through `logging`, so that a user interface can show them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
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


class _Listener(logging.Handler):
    def __init__(self, begun: Callable[[str], None], ended: Callable[[], None]) -> None:
        super().__init__()
        self._begun, self._ended = begun, ended

    def emit(self, record: logging.LogRecord) -> None:
        """The beginning or the end of a stage."""
        if record.levelno >= logging.INFO:
            self._begun(record.getMessage())
        else:
            self._ended()


@contextmanager
def listening(begun: Callable[[str], None], ended: Callable[[], None]) -> Iterator[None]:
    """Tell of the stages while a block runs; to nobody else, unless they have asked for them.

    Parameters
    ----------
    begun : callable
        Called with the text of a stage when it begins.
    ended : callable
        Called when the latest stage has ended.
    """
    listener, level, propagate = _Listener(begun, ended), LOGGER.level, LOGGER.propagate
    LOGGER.propagate = propagate and LOGGER.isEnabledFor(logging.DEBUG)
    LOGGER.addHandler(listener)
    LOGGER.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        LOGGER.removeHandler(listener)
        LOGGER.setLevel(level)
        LOGGER.propagate = propagate
