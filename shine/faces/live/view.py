"""The live view of one or several searches: what its page shows, and what one may ask for there."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from shine.base.errors import ShineError, placed, reason
from shine.base.lazy import cached_property
from shine.base.stages import Stages, Text, listening
from shine.faces.live.parts import PARTS, Board, Painter, Picture, Searched, final_parts
from shine.faces.live.server import Server
from shine.faces.live.watch import Controls, Watch
from shine.formats.page.markup import Content, Element, element, render
from shine.formats.page.page import html_page, own_text
from shine.formats.page.subject import ResultLike, count, number

if TYPE_CHECKING:
    from shine.search.evolution.observers import Progress

SCRIPT = Path(__file__).parent / "live.js"

SOURCES = "connect-src 'self'; img-src data:; "
"""The page asks its own server only. The empty icon, which browsers would ask for, is data."""


class Live:
    """Shows the searches of a block on a page of its own, which ends with the block; whoever knows its `url` can steer
    them. Nothing is painted while no page is open."""

    def __init__(self, title: str, target: str = "y") -> None:
        self._title, self._painter = title, Painter(title, target)
        self._watch: Watch | None = None
        self._stages = Stages()
        self._searched: list[Searched] = []
        self._report: Sequence[Content] | None = None
        self._settings: Mapping[str, Any] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._board = Board(self._picture)
        self._controls = Controls(self._board.changed)
        try:
            self._server = Server(self)
        except OSError as error:
            self._board.end(Picture())
            raise ShineError(f"the live page cannot be served on this machine: {reason(error)}") from None
        self._stack.enter_context(listening(self._stage_begun, self._stage_ended, self._stage_found))
        self.url = self._server.url
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._board.end(self._last_picture(error) if self._board.is_watched else Picture())
        finally:
            self._server.close()
            self._stack.close()

    def watch(self, title: str = "", history: Sequence[Mapping[str, Any]] = ()) -> Watch:
        """The visitor of the next search (see `shine.faces.live.watch.Watch` for the parameters)."""
        self._watch = Watch(self._controls, title, history)
        self._board.changed(True)
        return self._watch

    def ended(self, result: ResultLike, settings: Mapping[str, Any] | None = None) -> None:
        """The search that is watched has ended."""
        assert self._watch is not None
        self._searched.append((self._watch.moment(), result))
        self._settings = settings

    def __call__(self, progress: Progress) -> None:
        """As a callback of a run of several searches, the page learns their names and their ends."""
        assert self._watch is not None
        self._watch.title = progress.search

    def end(self, result: ResultLike | None) -> None:
        """A search of several has ended."""
        if result is not None:
            self.ended(result)

    def reports(self, parts: Sequence[Content]) -> None:
        """The page ends with these parts, in place of the report of the last search."""
        self._report = parts

    def show_in_browser(self) -> bool:
        """Open the page in the user's browser; return whether there is one."""
        return self._stack.enter_context(opened(self.url))

    def final_page(self) -> str:
        """The report of the last search, as a page that needs no server; empty if none has ended."""
        if not (self._searched or self._report):
            return ""
        return html_page(self._title, element("main", *self._final_parts.values()), own_text("script.js"))

    def page(self) -> str:
        """The page without its parts, which come as messages."""
        parts = [element("div", id=f"part-{name}", class_="part") for name in PARTS]
        script = own_text("script.js") + SCRIPT.read_text(encoding="utf-8")
        return html_page(self._title, element("main", _controls(), parts), script, sources=SOURCES)

    def messages(self) -> Iterator[str]:
        """News for an open page."""
        return self._board.messages()

    @property
    def actions(self) -> Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]]:
        """Requests of a page, by path."""
        return {"pause": self._pause, "stop": self._stop, "formula": self._put_in}

    def _pause(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        paused = values.get("paused")
        if not isinstance(paused, bool):
            raise ValueError("paused is true or false")
        self._controls.pause(paused)
        return {}

    def _stop(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        self._controls.stop()
        return {}

    def _put_in(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        text = values.get("formula")
        if not isinstance(text, str) or not text.strip():
            raise ValueError("formula is the text of a formula")
        if self._watch is None:
            raise ValueError("no search has begun")
        with placed("", ShineError, TypeError, ValueError, kind=ValueError):
            self._watch.put_in(text.strip())
        return {"text": "Accepted: it joins after this generation; if there are several islands, when they meet."}

    def _stage_begun(self, text: str) -> None:
        self._stages.enter(text)
        self._board.changed(False)

    def _stage_ended(self) -> None:
        self._stages.leave()
        self._board.changed(False)

    def _stage_found(self, text: Text) -> None:
        self._stages.find(text)
        self._board.changed(False)

    def _picture(self) -> Picture:
        """The page while a search runs."""
        watch, controls = self._watch, self._controls
        stage, _, told = self._stages.text().partition(": ")
        status = {"state": "running", "text": stage or "beginning"}
        if watch is None:
            return Picture({}, status)
        moment = watch.moment()
        with np.errstate(all="ignore"):
            parts = self._painter.parts(moment, self._searched, told)
        if moment.place is not None:
            status |= {"example": moment.place.example, "hint": moment.place.hint}
        state = moment.state
        if state is not None and moment.place is not None:
            best = number(moment.place.loss(state.archive.best_loss))
            rate = f", {count(state.evaluations / state.seconds)} evaluations a second" if state.seconds > 0 else ""
            status["text"] = f"generation {state.generation}, loss {best}{rate}"
        if controls.stopping:
            status |= {"state": "stopping", "text": f"ending: the last formulas are fitted; {status['text']}"}
        elif controls.paused:
            told = "paused" if moment.held else "pauses after this generation"
            status |= {"state": "paused", "text": f"{told}; {status['text']}"}
        return Picture(parts, status)

    def _last_picture(self, error: BaseException | None) -> Picture:
        """The page after all searches have ended."""
        status = {"state": "ended", "text": "The search has ended. This page no longer changes."}
        if error is not None or not (self._searched or self._report):
            told = str(error) if isinstance(error, Exception) and str(error) else type(error).__name__
            return Picture(dict(self._picture().parts), {**status, "text": f"The search has ended early: {told}"})
        return Picture({name: render(part) for name, part in self._final_parts.items()}, status)

    @cached_property
    def _final_parts(self) -> dict[str, Content]:
        if self._report is not None:
            return {"top": list(self._report)}
        with np.errstate(all="ignore"):
            return final_parts(self._painter, self._searched, self._settings)


def _controls() -> Element:
    """The buttons."""

    def button(identity: str, text: str) -> Element:
        return element("button", text, id=identity, type="button")

    told = {"aria_label": "A formula to put into the search", "spellcheck": "false"}
    editor = element("textarea", id="formula", rows="1", **told)
    state = element("span", "connecting", id="state", role="status")
    rows = [
        element("div", state, button("pause", "Pause"), button("stop", "Stop"), class_="row"),
        element("div", editor, button("put", "Put in"), class_="row editor"),
        element("p", id="answer", role="status"),
    ]
    return element("section", rows, id="controls", class_="card controls", aria_label="The search")


@contextmanager
def opened(url: str) -> Iterator[bool]:
    """Open an address that nobody else may know; tells whether there is a browser.

    Other users see the arguments of programs, so the browser gets the name of a file that only this user can read, and
    that leads to the address. It is deleted in the end.
    """
    descriptor, name = tempfile.mkstemp(".html", "shine-live-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(
                f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={escape(url)}"><title>Shine</title>'
            )
        yield webbrowser.open(Path(name).as_uri())
    finally:
        with suppress(OSError):
            os.unlink(name)
