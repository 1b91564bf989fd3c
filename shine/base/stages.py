"""Slow stages of a run report themselves through `logging`, so that a user interface can show them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("shine.base.stages")
"""Gets an INFO record when a stage begins, a DEBUG record when it has ended, and others for what it finds. Stages
may be nested."""

Text = Callable[[], str]
"""Makes a text when it is shown."""

_DONE, _SO_FAR = "done: %s", "so far: %s"


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
        LOGGER.debug(_DONE, text)


class _Late:
    """A text that is made when it is asked for."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text()


def so_far(text: Text) -> None:
    """Log what the latest stage has found so far.

    Parameters
    ----------
    text : callable
        Called only if somebody shows the text, perhaps later and in another thread: what it reads must not change.
    """
    LOGGER.debug(_SO_FAR, _Late(text))


def is_followed() -> bool:
    """Whether anybody listens to what stages find."""
    return LOGGER.isEnabledFor(logging.DEBUG)


class Stages:
    """The stages that a run is in."""

    def __init__(self) -> None:
        # Pairs in one list: another thread never sees a stage with what another one found.
        self._stages: list[tuple[str, Text | None]] = []

    def __len__(self) -> int:
        return len(self._stages)

    def enter(self, text: str) -> None:
        """A stage begins."""
        self._stages.append((text, None))

    def leave(self) -> None:
        """The latest stage has ended."""
        del self._stages[-1:]  # it may have begun before anybody listened

    def find(self, text: Text) -> None:
        """The latest stage has found something."""
        if self._stages:
            self._stages[-1] = self._stages[-1][0], text

    def text(self, suffix: str = "") -> str:
        """The latest stage, a text beside its name, and what it has found so far; empty without a stage."""
        for stage, found in self._stages[-1:]:
            return f"{stage}{suffix}" + (f": {found()}" if found is not None else "")
        return ""


class _Listener(logging.Handler):
    def __init__(self, begun: Callable[[str], None], ended: Callable[[], None], found: Callable[[Text], None]) -> None:
        super().__init__()
        self._begun, self._ended, self._found = begun, ended, found

    def emit(self, record: logging.LogRecord) -> None:
        """The beginning or the end of a stage, or what it has found."""
        if record.levelno >= logging.INFO:
            self._begun(record.getMessage())
        elif record.msg == _DONE:
            self._ended()
        else:
            (late,) = record.args  # type: ignore[misc]
            self._found(late.text)  # type: ignore[union-attr]


@contextmanager
def listening(begun: Callable[[str], None], ended: Callable[[], None], found: Callable[[Text], None]) -> Iterator[None]:
    """Tell of the stages while a block runs; to nobody else, unless they have asked for them.

    Parameters
    ----------
    begun : callable
        Called with the text of a stage when it begins.
    ended : callable
        Called when the latest stage has ended.
    found : callable
        Called with what the latest stage has found so far, whenever that is something better.
    """
    listener, level, propagate = _Listener(begun, ended, found), LOGGER.level, LOGGER.propagate
    LOGGER.propagate = propagate and LOGGER.isEnabledFor(logging.DEBUG)
    LOGGER.addHandler(listener)
    LOGGER.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        LOGGER.removeHandler(listener)
        LOGGER.setLevel(level)
        LOGGER.propagate = propagate


@contextmanager
def ticking(tick: Callable[[], object], pause: float = 0.25) -> Iterator[None]:
    """Call a function again and again, in a thread of its own, while a block runs.

    Parameters
    ----------
    tick : callable
    pause : float
        Seconds before each call.
    """
    over = threading.Event()

    def run() -> None:
        while not over.wait(pause):
            tick()

    thread = threading.Thread(target=run, name="shine-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
