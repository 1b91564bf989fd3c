"""Callbacks that follow a search from its beginning to its end.

A callback is a function of the `Progress`. If it also has a method ``begin(settings)`` or ``end(result)``, these are
called before the first generation and after the formula has been chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shine.search.evolution.observers import Progress
    from shine.search.models.result import Result
    from shine.search.problem.settings import SearchSettings

Callback = Callable[["Progress"], object]
"""Receives the progress of each generation, and ends the search by returning True."""


@dataclass(frozen=True)
class Several:
    """Several callbacks as one: all are called, also those after one that ends the search."""

    callbacks: tuple[Callback, ...]

    def __call__(self, progress: Progress) -> bool:
        """Pass on the progress; True if any callback wants the search to end."""
        return True in [callback(progress) for callback in self.callbacks]

    def begin(self, settings: SearchSettings) -> None:
        """Pass on the settings of a search that begins."""
        for callback in self.callbacks:
            _begin(callback, settings)

    def end(self, result: Result | None) -> None:
        """Pass on the result of a search that has ended."""
        for callback in self.callbacks:
            _end(callback, result)


def followed(callback: Callback | None, settings: SearchSettings, search: Callable[[], Result]) -> Result:
    """The result of a search whose beginning and end are passed on to a callback.

    Parameters
    ----------
    callback : callable, optional
    settings : SearchSettings
        For ``begin``.
    search : callable
        If it raises an error, ``end`` receives None.
    """
    _begin(callback, settings)
    result = None
    try:
        result = search()
    finally:
        _end(callback, result)
    return result


def _begin(callback: Callback | None, settings: SearchSettings) -> None:
    begin = getattr(callback, "begin", None)
    if begin is not None:
        begin(settings)


def _end(callback: Callback | None, result: Result | None) -> None:
    end = getattr(callback, "end", None)
    if end is not None:
        end(result)
