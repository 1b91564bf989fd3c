"""The searches and fits of one run for equations of motion: how far they have come, and what the run goes on from.

A run that goes on begins its stages again. Searches that have ended end at once, from their last states, and fits are
not repeated: they are found by the text of their equations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from typing import Any, Self

import numpy as np

from shine.base.stages import stage
from shine.base.typing import AnyArray, Floats
from shine.lang.forms.tree import Primitive
from shine.search.dynamics.rate_search import Elsewhere, Ended, RateSearch
from shine.search.evolution.observers import Observers, Progress, ignore, is_true
from shine.search.evolution.run_state import State
from shine.search.evolution.run_state_checks import check_integer, formed, seconds_of, text_of
from shine.search.evolution.settings import StopSettings
from shine.search.models.result import USER, Result
from shine.search.run import Several, search


@dataclass(frozen=True, eq=False)
class SearchState:
    """A search for a rate, as far as it has come."""

    state: State
    """After its last whole epoch."""
    limit: float | None
    """Its seconds."""
    generations: int
    """Those it has passed, also in an epoch that a limit cut short."""
    ended: str = ""
    """Reason for its end; empty while it goes on."""


@dataclass(frozen=True, eq=False)
class MotionState:
    """A run for equations of motion, as far as it has come."""

    searches: dict[str, SearchState] = field(default_factory=dict)
    """By name, in the order of their begin."""
    fits: Mapping[str, Floats] = field(default_factory=dict)
    """What fits tell, by stage and equations."""
    begins: Mapping[str, float] = field(default_factory=dict)
    """Seconds at which the work on each form began."""
    seconds: float = 0.0
    """Since the run began."""

    @property
    def generation(self) -> int:
        """Generations before that of the last state, in all searches, their first populations included."""
        last = next(reversed(self.searches.values()), None)
        passed = sum(each.generations + 1 for each in self.searches.values() if each is not last)
        return 0 if last is None else passed + last.state.generation

    @property
    def least_generation(self) -> int:
        """Generation of the search that has passed the fewest."""
        return min((each.generations for each in self.searches.values()), default=0)

    def under(self, before: StopSettings, stop: StopSettings) -> MotionState:
        """The state to go on from with other limits: what followed the first search that they let go on is left out."""
        limits = "generations", "loss", "stagnation"
        changed = [name for name in limits if getattr(before, name) != getattr(stop, name)]
        place = len(list(takewhile(lambda each: each.ended not in changed, self.searches.values())))
        same = place == len(self.searches)
        return self if same else replace(self, searches=dict(islice(self.searches.items(), place + 1)), fits={})

    def header(self) -> dict[str, Any]:
        """Everything except arrays, as JSON values (see `shine.search.evolution.run_state.State.header`)."""
        return {
            "generation": self.generation,
            "seconds": self.seconds,
            "begins": dict(self.begins),
            "searches": {name: {**vars(each), "state": each.state.header()} for name, each in self.searches.items()},
            "fits": list(self.fits),
        }

    def to_arrays(self) -> dict[str, AnyArray]:
        """All arrays by name, those of each search and each fit after its number."""
        parts = {f"searches.{at}": each.state.to_arrays() for at, each in enumerate(self.searches.values())}
        parts["fits"] = {str(at): numbers for at, numbers in enumerate(self.fits.values())}
        return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}

    @classmethod
    def from_arrays(
        cls, header: Mapping[str, Any], arrays: Mapping[str, AnyArray], table: Mapping[str, Primitive]
    ) -> Self:
        """The state of a header and arrays.

        A `ValueError` if a part is missing, does not fit the others, or is not a formula.
        """

        def of(part: str) -> dict[str, AnyArray]:
            return {name.removeprefix(part): array for name, array in arrays.items() if name.startswith(part)}

        with formed("run's state"):
            searches = {
                name: SearchState(
                    state := State.from_arrays(each["state"], of(f"searches.{at}."), table),
                    None if each["limit"] is None else seconds_of(each["limit"]),
                    check_integer(each["generations"], "generations of a search", state.generation),
                    text_of(each["ended"], "end of a search"),
                )
                for at, (name, each) in enumerate(header["searches"].items())
            }
            fits = {text_of(key, "name of a fit"): arrays[f"fits.{at}"] for at, key in enumerate(header["fits"])}
            begins = {name: seconds_of(value) for name, value in header["begins"].items()}
            return cls(searches, fits, begins, seconds_of(header["seconds"]))


class Session:
    """The searches and fits of one run.

    Parameters
    ----------
    observers : Observers
        They get the progress of each search: its evaluations and seconds are those of the run so far.
    state : MotionState, optional
        What the run goes on from.
    save : callable
        Receives the state after each epoch of a search, and after each fit.
    """

    def __init__(
        self, observers: Observers, state: MotionState | None = None, save: Callable[[MotionState], object] = ignore
    ) -> None:
        state = MotionState() if state is None else state
        self._observers = observers.begun()
        self.clock = self._observers.clock
        self._began = self.origin = self._observers.origin - state.seconds
        self._searches, self._fits, self._begins = dict(state.searches), dict(state.fits), dict(state.begins)
        self._repeated, self._save = set(state.fits), save
        self._form = self._stage = ""
        self._ended = False

    @classmethod
    def of(cls, observers: Observers | Session) -> Session:
        """The session itself, or one of observers that keeps nothing."""
        return observers if isinstance(observers, Session) else cls(observers)

    @property
    def seconds(self) -> float:
        """Seconds of the run so far."""
        return self.clock() - self._began

    def begin(self, form: str) -> None:
        """The work on a form begins, from now on or from when it did: `origin`, on `clock`."""
        self._form = f"{form}: "
        self.origin = self._began + self._begins.setdefault(form, self.seconds)

    def has_begun(self, form: str) -> bool:
        """Whether this run has ever begun with a form."""
        return form in self._begins

    def together(self, searches: Sequence[RateSearch], until: float, least: float = 0.0) -> list[Result | None]:
        """The results of searches: this process has some, one after the other; meanwhile workers have the others.

        Parameters
        ----------
        searches : sequence of RateSearch
        until : float
            When the last is to end, on `clock`.
        least : float
            Seconds that a search is worth: with less, or once the user has ended the run, it has no result. By default
            all have one.
        """
        pool = self._observers.pool
        waves = -(-len(searches) // (1 if pool is None else 1 + pool.workers))
        share = (until - self.clock()) / max(waves, 1)
        # What an earlier part of the run has begun goes on in this process.
        begun = self._searches
        here = [each for place, each in enumerate(searches) if place < waves or self._form + each.name in begun]
        others = [each.within(share) for each in searches if each not in here]
        found: dict[str, Result] = {}
        if least and share < least:
            return [None] * len(searches)
        if pool is None or not others:
            found.update(self._one_by_one(searches, until, least, self._observers))
        else:
            with Elsewhere(pool, others, share) as elsewhere:
                own = [each.on_one_thread() for each in here]
                found.update(self._one_by_one(own, until, least, replace(self._observers, pool=None)))
                with stage("waiting for the workers"):
                    try:
                        for ended in elsewhere.results(hurry=self._ended):
                            found[ended.search] = self._heard(ended, others[0].settings.stop.seconds)
                    except KeyboardInterrupt:
                        self._ended = True
                        found = {name: replace(result, stopped_by="interrupted") for name, result in found.items()}
            lost = [each for each in others if each.name not in found]
            found.update(self._one_by_one(lost, until, least, self._observers))
        return [found.get(each.name) for each in searches]

    def _one_by_one(
        self, searches: Sequence[RateSearch], until: float, least: float, observers: Observers
    ) -> Iterator[tuple[str, Result]]:
        """Names and results of searches that share the time (see `together`)."""
        for place, each in enumerate(searches):
            share = (until - self.clock()) / (len(searches) - place)
            if least and (self._ended or share < least):
                return
            with stage(f"searching for {each.name}"):
                result = self._search(each.within(0.0, 0) if self._ended else each.within(share), observers)
            yield each.name, result

    def _search(self, own: RateSearch, observers: Observers) -> Result:
        """Search, or go on with the search of this name (see `shine.search.run.search`)."""
        name, dataset, settings = f"{self._form}{own.name}", own.dataset, own.settings
        found, others = self._searches.get(name), [*takewhile(lambda other: other != name, self._searches)]
        limit, state = (settings.stop.seconds, None) if found is None else (found.limit, found.state)
        observers, stop = replace(observers, began=None, state=state), replace(settings.stop, seconds=limit)
        if found is not None and len(others) + 1 < len(self._searches):
            # Another has followed: this one ends where it ended.
            stop = replace(stop, generations=found.generations) if found.ended == "seconds" else stop
            silent = replace(observers, report=ignore, visitor=None)
            result = search(dataset, replace(settings, stop=stop), silent, own.earlier)
            self._ended |= result.stopped_by == "interrupted"
            return result if self._ended else replace(result, stopped_by=found.ended)

        def save(state: State) -> None:
            self._searches[name] = SearchState(state, limit, state.generation)
            self._saved()

        report = Several((self._observers.report,), self._teller(name))
        observers = replace(observers, report=report, save=ignore if self._ended else save)
        result = search(dataset, replace(settings, stop=stop), observers, own.earlier)
        if result.stopped_by in USER:
            self._ended = True  # what is done after it in a hurry is done again if the run goes on
        elif name in self._searches:
            self._end(own.name, limit, result, self._searches[name].state)
        return result

    def _teller(self, name: str) -> Callable[[Progress], Progress]:
        """Tells the progress of a search as that of the run."""
        others = [self._searches[other] for other in takewhile(lambda other: other != name, self._searches)]
        before, evaluations = (
            sum(each.generations + 1 for each in others),
            sum(each.state.evaluations for each in others),
        )

        def told(progress: Progress) -> Progress:
            evaluated = evaluations + progress.evaluations
            return replace(progress, search=name, before=before, evaluations=evaluated, seconds=self.seconds)

        return told

    def _heard(self, ended: Ended, limit: float | None) -> Result:
        """The result of a search in a worker, whose last generation is told."""
        told = self._teller(self._form + ended.search)
        if ended.state is not None and not self._ended:
            self._end(ended.search, limit, ended.result, ended.state)
        if ended.progress is not None and is_true(self._observers.report(told(ended.progress))):
            self._ended = True
            return replace(ended.result, stopped_by="callback")
        return ended.result

    def _end(self, name: str, limit: float | None, result: Result, state: State) -> None:
        """Keep the end of a search."""
        self._searches[self._form + name] = SearchState(state, limit, result.generations, result.stopped_by)
        self._saved()

    def stage(self, name: str) -> None:
        """The fits of a stage begin."""
        self._stage = f"{self._form}{name}: "

    @property
    def repeats(self) -> bool:
        """Whether an earlier part of the run has made fits of this stage that this part has not used yet."""
        return any(key.startswith(self._stage) for key in self._repeated)

    def fit(self, equations: str, count: int, fit: Callable[[], Floats]) -> Floats:
        """What a fit tells of equations, in so many numbers; an earlier part of the run may have made it."""
        key = self._stage + hashlib.sha256(equations.encode()).hexdigest()
        found = self._fits.get(key)
        self._repeated.discard(key)
        if found is None or found.dtype != np.float64 or found.shape != (count,):
            self._repeated.clear()  # the run takes another way than before
            found = fit()
            if not self._ended:
                self._fits[key] = found
                self._saved()
        return found

    def _saved(self) -> None:
        self._save(MotionState(dict(self._searches), dict(self._fits), dict(self._begins), self.seconds))
