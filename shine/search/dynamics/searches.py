"""The searches for the right-hand side of each state; the worst explained are searched again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shine.base.stages import stage
from shine.search.dynamics.rows import RateRows
from shine.search.evolution.observers import Observers
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.problem.settings import SearchSettings
from shine.search.run import search
from shine.search.templates.template import Template

LEAST_SECONDS = 1e-3
"""Seconds of a search when the time is over: enough for a part of its first population."""

LEAST_AGAIN = 0.5
"""Seconds from which another search for a state is worth its start."""

EXPLAINED = 2.0
"""Mean squared error of an equation, in units of those of the rates, up to which it explains them."""

EXACT = 1e-12
"""Error of the rollouts, as a share of the variance, of a system that explains all."""

SHORT = 12
"""Complexity from which a shorter equation is looked for."""

USER = ("interrupted", "callback")
"""Reasons to stop that end all searches."""


@dataclass
class RateSearches:
    """One search for each state.

    Parameters
    ----------
    states : tuple of str
    rows : sequence of RateRows or None
        None for a state whose equation is known.
    known : sequence of Model or None
        The equations that are known.
    templates : mapping of int to Template
        The equations of which a part is known, by the position of the state.
    settings : SearchSettings
        The first search has the seed, the others the numbers that follow it.
    observers : Observers
    """

    states: tuple[str, ...]
    rows: Sequence[RateRows | None]
    known: Sequence[Model | None]
    templates: Mapping[int, Template]
    settings: SearchSettings
    observers: Observers

    def __post_init__(self) -> None:
        self.results: list[Result] = []

    @property
    def stopped_by(self) -> str:
        """The user's reason to end the searches, if there is one; else that of the last search."""
        reasons = [result.stopped_by for result in self.results]
        return next((reason for reason in reasons if reason in USER), reasons[-1])

    @property
    def stopped_by_user(self) -> bool:
        """Whether the user ended a search; no other begins then."""
        return any(result.stopped_by in USER for result in self.results)

    def first(self, until: float) -> None:
        """Search for each state, with an even share of the time that is left."""
        sought = sum(rows is not None for rows in self.rows)
        for number, (rows, known) in enumerate(zip(self.rows, self.known, strict=True)):
            if rows is None:
                assert known is not None
                self.results.append(Result(Front((known,), 0, "known"), 0, 0, 0, 0.0, self.settings.seed, "loss"))
                continue
            share, sought = (until - self.observers.clock()) / sought, sought - 1
            self.results.append(self._search(number, rows, share, rows.enough))

    def again(self, until: float, best: Sequence[Model], error: float) -> bool:
        """Search once more for states whose equation misses the rates or is long; say whether there are any.

        Parameters
        ----------
        until : float
        best : sequence of Model
            The equations of the best system.
        error : float
            Of its rollouts, as a share of the variance.
        """
        missed = {
            number: 0.0 if error < EXACT else rows.misfit(model)
            for number, (rows, model) in enumerate(zip(self.rows, best, strict=True))
            if rows is not None
        }
        wanting = [number for number, misfit in missed.items() if misfit > EXPLAINED or best[number].complexity > SHORT]
        for place, number in enumerate(sorted(wanting, key=lambda each: -missed[each])):
            share = (until - self.observers.clock()) / (len(wanting) - place)
            if self.stopped_by_user or share < LEAST_AGAIN:
                return place > 0
            rows, earlier = self.rows[number], tuple(self.results[number].front)
            assert rows is not None
            self.results[number] = self._search(number, rows, share, 0.0, earlier)
        return bool(wanting)

    def _search(
        self, number: int, rows: RateRows, seconds: float, enough: float, earlier: Sequence[Model] = ()
    ) -> Result:
        settings = self.settings
        stop = replace(settings.stop, loss=max(settings.stop.loss, enough))
        if math.isfinite(seconds):
            stop = replace(stop, seconds=max(seconds, LEAST_SECONDS))
        if self.stopped_by_user:
            stop = replace(stop, generations=0, seconds=LEAST_SECONDS)
        fitness = replace(settings.fitness, noise="absolute", evidence=rows.evidence)
        shift = len(self.states) if earlier else 0
        law = self.templates.get(number)
        own = replace(settings, stop=stop, fitness=fitness, seed=settings.seed + number + shift, template=law)
        with stage(f"searching for {self.states[number]}'"):
            return search(rows.dataset, own, replace(self.observers, began=None, state=None), earlier)
