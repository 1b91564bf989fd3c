"""One search that people watch: what it told last, and what they asked of it.

The search's thread calls the methods of `shine.search.evolution.observers.Visitor`; they only exchange references, and
wait only while the search is paused. The threads of the page call the others.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shine.lang.population import Population
from shine.search.evolution.memory import symbols
from shine.search.evolution.observers import SearchView

if TYPE_CHECKING:
    from shine.search.evolution.run_state import State

MOST_WAITING = 100
"""Most formulas that wait for the end of a generation: more are no work of a person."""

MOST_LOSSES = 4000
"""Most changes of the loss that are remembered for the chart; when there are more, every second one is forgotten."""


@dataclass(frozen=True)
class PutIn:
    """A formula that a person has put into the search; it waits until it has a generation, and has no loss until it is
    among the kept ones, perhaps with fitted constants."""

    text: str
    individual: Population
    generation: int | None = None
    loss: float | None = None
    on_front: bool = False


@dataclass(frozen=True, eq=False)
class Moment:
    """A search at one moment; its title is empty if there is only one.

    `place` is None until it begins to evolve, `state` before the first population is complete. The history has lines
    like those of ``log.jsonl``, one for each change of the best loss, and the last. `held` is whether it waits until it
    may go on.
    """

    title: str
    place: SearchView | None
    state: State | None
    history: tuple[Mapping[str, Any], ...]
    put_in: tuple[PutIn, ...]
    held: bool


class Controls:
    """Requests of the users of a page: all its searches pause and end together.

    `changed` is called, in any thread, when there is something new to show; with True if it should be shown at once.
    """

    def __init__(self, changed: Callable[[bool], None]) -> None:
        self.condition = threading.Condition()
        self.changed = changed
        self.paused = self.stopping = False

    def pause(self, paused: bool) -> None:
        """Hold the search up after the generation, or let it go on."""
        with self.condition:
            self.paused = paused
            self.condition.notify_all()
        self.changed(True)

    def stop(self) -> None:
        """End the search after the generation."""
        with self.condition:
            self.stopping = True
            self.condition.notify_all()
        self.changed(True)


class Watch:
    """The visitor of one search (see `shine.search.evolution.observers.Visitor`), with lines of ``log.jsonl`` from
    before it was interrupted."""

    def __init__(self, controls: Controls, title: str = "", history: Sequence[Mapping[str, Any]] = ()) -> None:
        self.title = title
        self._controls, self._condition = controls, controls.condition
        self._place: SearchView | None = None
        self._state: State | None = None
        self._history: list[Mapping[str, Any]] = list(history)
        self._before = len(self._history)
        self._put_in: list[PutIn] = []
        # How many of them have been passed on to the search, have joined it, and were told of to who keeps its log.
        self._forwarded = self._joined = self._told = 0
        self._held, self._held_up = False, 0.0

    def clock(self) -> float:
        """Seconds, without those in which the search was held up."""
        return time.monotonic() - self._held_up

    def enter(self, place: SearchView) -> None:
        """The search is about to evolve its first population; it may be the next of several."""
        with self._condition:
            if self._place is not None:
                self._state, self._history, self._put_in = None, [], []
                self._before = self._forwarded = self._joined = self._told = 0
            self._place = place
        self._controls.changed(False)

    def arrivals(self) -> Population | None:
        """The formulas that were put in since the last generation."""
        with self._condition:
            waiting = [each.individual for each in self._put_in[self._forwarded :]]
            self._forwarded = len(self._put_in)
        return Population.concatenate(waiting) if waiting else None

    def saw(self, state: State) -> None:
        """A generation has ended, and those who arrived have joined."""
        place, best = self._place, state.archive.best_loss
        loss = None if place is None or math.isinf(best) else place.loss(best)
        with self._condition:
            new = range(self._joined, self._forwarded)
            for at in new:
                formula = replace(self._put_in[at], generation=state.generation)
                self._put_in[at] = formula if place is None else judged(formula, state, place)
            self._state, self._joined = state, self._forwarded
            self._remember({"generation": state.generation, "seconds": state.seconds, "loss": loss})
        self._controls.changed(bool(new))

    def _remember(self, line: Mapping[str, Any]) -> None:
        """Keep the lines at which the loss falls, and the last one."""
        lines, first = self._history, self._before
        if len(lines) > first + 1 and lines[-1]["loss"] == lines[-2]["loss"]:
            lines.pop()
        lines.append(line)
        if len(lines) > first + MOST_LOSSES:
            lines[first:-1] = lines[first:-1:2]

    def pauses(self) -> bool:
        """Wait while the search is paused, unless a formula waits; return whether the search is to end."""
        controls = self._controls
        with self._condition:
            while controls.paused and not controls.stopping and self._forwarded == len(self._put_in):
                if not self._held:
                    self._held = True
                    controls.changed(True)
                began = time.monotonic()
                try:
                    # Seconds after which a waiting search looks whether Ctrl-C was pressed, where waiting itself does
                    # not notice.
                    self._condition.wait(0.2)
                finally:
                    self._held_up += time.monotonic() - began
            self._held = False
            return controls.stopping

    def joined(self) -> tuple[str, ...]:
        """The formulas that have joined since this was asked last, as they were written."""
        with self._condition:
            new = self._put_in[self._told : self._joined]
            self._told = self._joined
        return tuple(each.text for each in new)

    def put_in(self, text: str) -> None:
        """Let a formula join the search after the generation.

        A `ShineError`, `TypeError` or `ValueError` if the formula is none of this search; the errors are those of
        guesses.
        """
        place = self._place
        if place is None:
            raise ValueError("the search has not begun to evolve formulas; wait for its first generation")
        with np.errstate(all="ignore"):
            individual = place.read(text)
        with self._condition:
            if len(self._put_in) - self._joined >= MOST_WAITING:
                raise ValueError(f"{MOST_WAITING} formulas are waiting already; wait for the end of the generation")
            self._put_in.append(PutIn(text, individual))
            self._condition.notify_all()
        self._controls.changed(True)

    def moment(self) -> Moment:
        """The search as it is now."""
        with self._condition:
            return Moment(self.title, self._place, self._state, tuple(self._history), tuple(self._put_in), self._held)


def judged(formula: PutIn, state: State, place: SearchView) -> PutIn:
    """A formula that has joined, with its loss as far as it is known, and whether it is on the front."""
    archive, own = state.archive, symbols(formula.individual)
    # Its constants may have been fitted.
    alike = np.isin(symbols(archive.individuals), own) & np.isfinite(archive.scores.losses)
    losses = archive.scores.losses[alike].tolist()
    for island in state.islands:
        losses += island.losses[np.isin(symbols(island.parents), own)].tolist()
    found = [place.loss(loss) for loss in losses if math.isfinite(loss)]
    found += [] if formula.loss is None else [formula.loss]
    on_front = bool(alike[archive.front_rows(place.enough)].any())
    return replace(formula, loss=min(found, default=None), on_front=on_front)
