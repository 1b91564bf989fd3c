"""Contents of open pages: parts with versions. A thread paints them anew at most once a second while a page is open."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PERIOD = 1.0
"""Least seconds between two pictures of a search that nobody touches."""

SOON = 0.05
"""Least seconds between two pictures after something that a user has done."""

SHARE = 25
"""The next picture waits at least so many times the seconds that painting the last one took of a processor: it takes
Python's lock, which the search needs, too."""

HEARTBEAT = 5.0
"""Seconds after which a page gets an empty message, so that a page that was closed is noticed."""


@dataclass(frozen=True)
class Picture:
    """Contents of a page.

    Parameters
    ----------
    parts : mapping of str to str
        HTML by the name of the part; parts that are not in it are empty.
    status : mapping
        State and texts of the controls, as JSON values.
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)


class Board:
    """Pictures for the pages that are open.

    Parameters
    ----------
    paint : callable
        Makes the picture of this moment; called in a thread of the board's own.
    """

    def __init__(self, paint: Callable[[], Picture]) -> None:
        self._paint = paint
        self._condition = threading.Condition()
        self._parts: dict[str, tuple[int, str]] = {}
        self._status: Mapping[str, Any] = {}
        self._version = self._viewers = 0
        self._new = self._urgent = self._ended = False
        self._thread = threading.Thread(target=self._painting, name="shine-live-painter", daemon=True)
        self._thread.start()

    @property
    def is_watched(self) -> bool:
        """Whether a page is open."""
        return self._viewers > 0

    def changed(self, urgent: bool) -> None:
        """There is something new to show; at once if it is urgent."""
        if not self._viewers or (self._new and not urgent):  # the search calls this in every generation
            return
        with self._condition:
            self._new, self._urgent = True, self._urgent or urgent
            self._condition.notify_all()

    def messages(self) -> Iterator[str]:
        """News for a page as they come: first everything, and last the end."""
        seen = 0
        with self._condition:
            self._viewers += 1
            self._new = self._urgent = True
            self._condition.notify_all()
        try:
            while True:
                with self._condition:
                    if self._version <= seen and not self._ended:
                        self._condition.wait(HEARTBEAT)
                    parts = {name: html for name, (version, html) in self._parts.items() if version > seen}
                    new, ended, status, seen = self._version > seen, self._ended, self._status, self._version
                yield json.dumps({"parts": parts, "status": status}) if new else ""
                if ended:
                    return
        finally:
            with self._condition:
                self._viewers -= 1

    def end(self, picture: Picture) -> None:
        """Show the last picture."""
        with self._condition:
            self._ended = True
            self._take(picture)
        self._thread.join()

    def _take(self, picture: Picture) -> None:
        """Remember a picture, and which of its parts are new."""
        version = self._version + 1
        for name in {*self._parts, *picture.parts}:
            html = picture.parts.get(name, "")
            if name not in self._parts or self._parts[name][1] != html:
                self._parts[name] = version, html
        self._version, self._status = version, picture.status
        self._condition.notify_all()

    def _painting(self) -> None:
        due = 0.0
        while True:
            with self._condition:
                while not self._ended and not (
                    self._new and self._viewers and (self._urgent or time.monotonic() >= due)
                ):
                    self._condition.wait(max(due - time.monotonic(), SOON) if self._new and self._viewers else None)
                if self._ended:
                    return
                self._new = self._urgent = False
            began = time.thread_time()
            try:
                picture = self._paint()
            except Exception as error:  # the search goes on, whatever the page cannot show
                parts = {name: html for name, (_, html) in self._parts.items()}
                picture = Picture(parts, {"state": "running", "text": f"the page cannot show this: {error}"})
            due = time.monotonic() + max(PERIOD, SHARE * (time.thread_time() - began))
            with self._condition:
                if self._ended:
                    return
                self._take(picture)
                self._condition.wait_for(lambda: self._ended, SOON)
