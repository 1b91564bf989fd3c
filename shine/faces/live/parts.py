"""The parts of the page for a search that still runs, and their versions on open pages.

A thread paints the parts anew at most once a second while a page is open.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from shine.faces.live.watch import Moment, PutIn, judged
from shine.formats.page.charts.fit import Fit
from shine.formats.page.markup import Content, breakable, element, render
from shine.formats.page.page import report_parts, running_parts
from shine.formats.page.sections import data_table, fit_charts, formula, section, tree_chart
from shine.formats.page.subject import ModelLike, ResultLike, columns_of, count, fraction, number
from shine.lang.interpret import evaluate
from shine.search.evolution.islands import Island
from shine.search.evolution.memory import symbols
from shine.search.evolution.observers import SearchView, Shown

PARTS = ("top", "figures", "searched", "charts", "islands", "put-in", "front", "fit", "certainty", "features",
         "structure", "settings", "footer")  # fmt: skip
"""Names of the parts of the page, from top to bottom. Some are only in the final report."""

ROWS = 2000
"""Most rows that the formula of the moment is compared with; the final report compares all."""


Searched = tuple[Moment, ResultLike]
"""The last moment of a search, and its result."""


@dataclass(frozen=True)
class Running:
    """A search that still runs, as a result to report (see `shine.formats.page.subject.ResultLike`)."""

    front: Sequence[ModelLike]
    best_index: int
    generations: int
    evaluations: int
    seconds: float
    seed: int
    reason: str = ""
    stopped_by: str = ""


class Painter:
    """Turns moments of one search into HTML; what depends on the front alone is made again only if it has changed."""

    def __init__(self, title: str, target: str) -> None:
        self.title, self.target = title, target
        self._front: tuple[Any, ...] = ()
        self._shown = Shown(())
        self._of_front: dict[str, Content] = {}

    def parts(self, moment: Moment, searched: Sequence[Searched] = (), told: str = "") -> dict[str, str]:
        """The parts of the page by name, as HTML; `told` is what a stage before the first population has found."""
        found = {**self._parts(moment, told.replace("R2", "R²")), "searched": searched_part(searched)}
        return {name: render(part) for name, part in found.items()}

    def heading(self, title: str) -> str:
        """The heading of the page for one of several searches."""
        return f"{self.title}: {title}" if title else self.title

    def _parts(self, moment: Moment, told: str) -> dict[str, Content]:
        place, state = moment.place, moment.state
        title = self.heading(moment.title)
        if place is None or state is None:
            badge = "The best formula so far" if told else "The first formulas are on their way."
            best = element("div", element("code", breakable(told)), class_="formula large") if told else None
            card = element("section", element("h2", badge, class_="badge"), best, class_="card hero")
            return {"top": [element("h1", breakable(title)), card]}
        archive = state.archive
        individuals, scores = archive.front(place.enough)
        key = (id(place), individuals.codes.tobytes(), individuals.values.tobytes(), scores.losses.tobytes())
        if key != self._front:
            self._front, self._shown = key, place.shown(individuals, scores)
            self._of_front = {}
        joined = [each if each.generation is None else judged(each, state, place) for each in moment.put_in]
        found: dict[str, Content] = {"islands": islands_part(state.islands, place), "put-in": put_in_part(joined)}
        if not self._shown.models:
            none = element("p", "No formula has a finite loss yet.", class_="summary")
            return {"top": [element("h1", breakable(title)), none], **found}
        found_so_far = (self._shown.models, self._shown.best_index, state.generation, state.evaluations, state.seconds)
        result = Running(*found_so_far, place.seed)
        found |= running_parts(result, place.dataset, history=moment.history, title=title, target=self.target)
        if not self._of_front:
            self._of_front = self._parts_of(result.front[result.best_index], place)
        return {**found, **self._of_front}

    def _parts_of(self, best: ModelLike, place: SearchView) -> dict[str, Content]:
        """The sections about the best formula."""
        found: dict[str, Content] = {"structure": section("Its structure", tree_chart(best))}
        if place.fits:
            rows = place.dataset.sampled(ROWS, np.random.default_rng(0))
            values = evaluate(best.tree, list(columns_of(best.tree, rows).T))
            predicted = np.broadcast_to(values, (rows.n_rows,)).astype(np.float64)
            found["fit"] = section("How well it fits", fit_charts(Fit.of(rows.target, predicted), self.target))
        return found


def final_parts(
    painter: Painter, searched: Sequence[Searched], settings: Mapping[str, Any] | None = None
) -> dict[str, Content]:
    """The parts of the page when all searches have ended, from top to bottom: the report of the last one."""
    moment, result = searched[-1]
    place, state, title = moment.place, moment.state, painter.heading(moment.title)
    assert place is not None
    history = [*moment.history, *({"generation": at, "put_in": texts} for at, texts in _texts(moment.put_in).items())]
    found: dict[str, Content] = {"searched": searched_part(searched) if len(searched) > 1 else None}
    if state is not None:
        joined = [judged(each, state, place) for each in moment.put_in if each.generation is not None]
        found |= {"islands": islands_part(state.islands, place), "put-in": put_in_part(joined)}
    if place.fits:
        make: Callable[..., dict[str, Content]] = partial(report_parts, settings=settings)
    else:
        make, best = running_parts, result.front[result.best_index]
        found["structure"] = section("Its structure", tree_chart(best))
    found |= make(result, place.dataset, history=history, title=title, target=painter.target)
    return {name: found[name] for name in PARTS if name in found}


def _texts(formulas: Sequence[PutIn]) -> dict[int, list[str]]:
    """The formulas that joined, by generation."""
    found: dict[int, list[str]] = {}
    for each in formulas:
        if each.generation is not None:
            found.setdefault(each.generation, []).append(each.text)
    return found


def searched_part(searched: Sequence[Searched]) -> Content:
    """A table of the searches that have ended, with the formula that each recommends."""
    rows = []
    for moment, result in searched:
        best = result.front[result.best_index]
        rows.append((moment.title, number(best.loss), fraction(best.r2), formula(best, None)))
    headings = [("Search", "row"), ("Loss", "number"), ("R²", "number"), ("Formula", "formula-cell")]
    return section("Found so far", rows and data_table(headings, rows, "The searches of this fit that have ended."))


def islands_part(islands: Sequence[Island], place: SearchView) -> Content:
    """A table of the islands."""
    headings = ("Island", "Best loss", "Formulas", "Different", "Median size", "Generation", "Improved", "Life")
    rows = []
    for at, island in enumerate(islands):
        population = island.parents
        different = len(np.unique(symbols(population))) / max(len(population), 1)
        ago = island.generation - island.improved
        rows.append((
            str(at + 1), number(place.loss(island.best_loss)) if math.isfinite(island.best_loss) else number(None),
            count(len(population)), f"{100 * different:.0f} %", f"{np.median(population.sizes):.0f}",
            count(island.generation), "now" if ago == 0 else f"{count(ago, 'generation')} ago", str(island.life + 1),
        ))  # fmt: skip
    caption = "Each island is a population. Different: share of formulas that differ in more than their constants."
    return section("Islands", data_table([(text, "number") for text in headings], rows, caption))


def put_in_part(formulas: Sequence[PutIn]) -> Content:
    """A table of the formulas that people put in; nothing if there are none."""
    rows = [
        ("waits" if each.generation is None else f"after generation {each.generation}", number(each.loss),
         "yes" if each.on_front else "no" if each.generation is not None else "", element("code", breakable(each.text)))
        for each in formulas
    ]  # fmt: skip
    caption = "A formula without a loss is worse than all that are kept, breaks a constraint, or is not finite."
    headings = [("Joined", None), ("Loss", "number"), ("On the front", "number"), ("Formula", "formula-cell")]
    return section("Put in by hand", rows and data_table(headings, rows, caption))


SOON = 0.05
"""Least seconds between two pictures after something that a user has done."""

SHARE = 25
"""The next picture waits at least so many times the seconds that painting the last one took of a processor: it takes
Python's lock, which the search needs, too."""


@dataclass(frozen=True)
class Picture:
    """Contents of a page: HTML by the name of the part, and the state and texts of the controls as JSON values."""

    parts: Mapping[str, str] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)


class Board:
    """Pictures for the pages that are open; `paint` makes that of this moment, in a thread of the board's own."""

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
                        # Seconds after which a page gets an empty message, so that a page that was closed is noticed.
                        self._condition.wait(5.0)
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
            # Least seconds between two pictures of a search that nobody touches.
            due = time.monotonic() + max(1.0, SHARE * (time.thread_time() - began))
            with self._condition:
                if self._ended:
                    return
                self._take(picture)
                self._condition.wait_for(lambda: self._ended, SOON)
