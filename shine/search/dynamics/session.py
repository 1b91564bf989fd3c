"""The searches and fits of one run for equations of motion: how far they have come, and what the run goes on from.

A run that goes on begins its stages again. Searches that have ended end at once, from their last states, and fits are
not repeated: they are found by the text of their equations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Self

import numpy as np

from shine.base.typing import AnyArray, Floats
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.names import cut
from shine.lang.forms.tree import Primitive
from shine.search.evolution.observers import Observers, Progress, forget, ignore
from shine.search.evolution.run_state import State
from shine.search.evolution.run_state_checks import check_integer, seconds_of, text_of
from shine.search.evolution.settings import StopSettings
from shine.search.models.model import Model
from shine.search.models.result import USER, Result
from shine.search.problem.settings import SearchSettings
from shine.search.run import Several, search


@dataclass(frozen=True, eq=False)
class SearchState:
    """A search for a rate, as far as it has come.

    Parameters
    ----------
    state : State
        After its last whole epoch.
    limit : float, optional
        Its seconds.
    generations : int
        Those it has passed, also in an epoch that a limit cut short.
    ended : str
        Reason for its end; empty while it goes on.
    """

    state: State
    limit: float | None
    generations: int
    ended: str = ""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What the fit of a system to the readings tells.

    Parameters
    ----------
    constants, noise, covariance
        As of `shine.evaluate.rollouts.fitting.RolloutFit`.
    starts : ndarray of shape (n_runs, n_states)
    losses, relative : ndarray of shape (n_states,)
        Mean squared errors: plain, and in units of the expected ones; inf if no rollout reaches the last time.
    anew : int
        Stretches that start anew.
    stiff : bool
    """

    constants: Floats
    starts: Floats
    losses: Floats
    relative: Floats
    noise: Floats
    covariance: Floats
    anew: int
    stiff: bool

    @staticmethod
    def shapes(constants: int, runs: int, states: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the arrays, by name."""
        each = dict.fromkeys(("losses", "relative", "noise"), (states,))
        return {"constants": (constants,), "starts": (runs, states), **each, "covariance": (constants, constants)}

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of constants, runs and states."""
        return (len(self.constants), *self.starts.shape)


@dataclass(frozen=True, eq=False)
class MotionState:
    """A run for equations of motion, as far as it has come.

    Parameters
    ----------
    searches : mapping of str to SearchState
        In the order of their begin.
    fits : mapping of str to Fitted
        By stage and equations.
    begins : mapping of str to float
        Seconds at which the searches for each form began.
    seconds : float
        Since the run began.
    """

    searches: Mapping[str, SearchState] = field(default_factory=dict)
    fits: Mapping[str, Fitted] = field(default_factory=dict)
    begins: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def generation(self) -> int:
        """Generations of all searches so far, the first populations included, before that of the last state."""
        if not self.searches:
            return 0
        *others, last = self.searches.values()
        return sum(each.generations + 1 for each in others) + last.state.generation

    @property
    def least_generation(self) -> int:
        """Generation of the search that has passed the fewest."""
        return min((each.generations for each in self.searches.values()), default=0)

    def under(self, before: StopSettings, stop: StopSettings) -> MotionState:
        """The state to go on from with other limits: what follows the first search that they let go on is left out."""
        changed = {
            name for name in ("generations", "loss", "stagnation") if getattr(before, name) != getattr(stop, name)
        }
        names = list(takewhile(lambda name: self.searches[name].ended not in changed, self.searches))
        if len(names) == len(self.searches):
            return self
        own = dict(list(self.searches.items())[: len(names) + 1])
        return replace(self, searches=own, fits={})

    def header(self) -> dict[str, Any]:
        """Everything except arrays, as JSON values (see `shine.search.evolution.run_state.State.header`)."""
        return {
            "generation": self.generation,
            "seconds": self.seconds,
            "begins": dict(self.begins),
            "searches": [
                {
                    "name": name,
                    "limit": each.limit,
                    "generations": each.generations,
                    "ended": each.ended,
                    "state": each.state.header(),
                }
                for name, each in self.searches.items()
            ],
            "fits": [
                {"key": key, "shape": fit.shape, "anew": fit.anew, "stiff": fit.stiff} for key, fit in self.fits.items()
            ],
        }

    def to_arrays(self) -> dict[str, AnyArray]:
        """All arrays by name: those of each search after its number, and the numbers of all fits in one."""
        states = enumerate(each.state.to_arrays() for each in self.searches.values())
        numbers = [getattr(fit, name).ravel() for fit in self.fits.values() for name in Fitted.shapes(0, 0, 0)]
        return {
            **{f"{number}.{name}": array for number, arrays in states for name, array in arrays.items()},
            "fits": np.concatenate([np.zeros(0), *numbers]),
        }

    @classmethod
    def from_arrays(
        cls, header: Mapping[str, Any], arrays: Mapping[str, AnyArray], table: Mapping[str, Primitive]
    ) -> Self:
        """The state of a header and arrays.

        A `ValueError` if a part is missing, does not fit the others, or is not a formula.
        """
        try:
            searches = dict(_searches(header["searches"], arrays, table))
            begins = {str(name): seconds_of(value) for name, value in header["begins"].items()}
            return cls(searches, dict(_fits(header["fits"], arrays["fits"])), begins, seconds_of(header["seconds"]))
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError, MemoryError) as error:
            raise ValueError(f"a part of the run's state is missing or has another form: {cut(error)}") from None


def _searches(
    headers: Sequence[Mapping[str, Any]], arrays: Mapping[str, AnyArray], table: Mapping[str, Primitive]
) -> Iterator[tuple[str, SearchState]]:
    for number, header in enumerate(headers):
        begin = f"{number}."
        own = {name.removeprefix(begin): array for name, array in arrays.items() if name.startswith(begin)}
        state = State.from_arrays(header["state"], own, table)
        limit = None if header["limit"] is None else seconds_of(header["limit"])
        generations = check_integer(header["generations"], "generations of a search", state.generation)
        ended = text_of(header["ended"], "end of a search")
        yield text_of(header["name"], "name of a search"), SearchState(state, limit, generations, ended)


def _fits(headers: Sequence[Mapping[str, Any]], numbers: AnyArray) -> Iterator[tuple[str, Fitted]]:
    if numbers.dtype != np.float64 or numbers.ndim != 1:
        raise ValueError("the fits are no array of numbers")
    end = 0
    for header in headers:
        shapes = Fitted.shapes(*(check_integer(count, "size of a fit", 0, 10**6) for count in header["shape"]))
        values = {}
        for name, shape in shapes.items():
            values[name] = numbers[end : end + int(np.prod(shape))].reshape(shape)
            end += values[name].size
        if not np.isfinite(values["constants"]).all():
            raise ValueError("a fit has constants that are not finite")
        anew = check_integer(header["anew"], "new starts of a fit")
        yield text_of(header["key"], "key of a fit"), Fitted(**values, anew=anew, stiff=header["stiff"] is True)


class Session:
    """The searches and fits of one run, one after the other.

    Parameters
    ----------
    observers : Observers
        They get the progress of each search: its evaluations and seconds are those of the run so far.
    state : MotionState, optional
        What the run goes on from.
    save : callable
        Receives the state after each epoch of a search, and after each fit.

    Attributes
    ----------
    clock : callable
        Seconds from any origin.
    origin : float
        Begin of the run on this clock, or of its latest form.
    """

    def __init__(
        self, observers: Observers, state: MotionState | None = None, save: Callable[[MotionState], object] = forget
    ) -> None:
        state = MotionState() if state is None else state
        self._observers = observers.begun()
        self.clock = self._observers.clock
        self._began = self.origin = self._observers.origin - state.seconds
        self._searches, self._fits, self._begins = dict(state.searches), dict(state.fits), dict(state.begins)
        self._repeated, self._save = set(state.fits), save
        self._form = self._stage = ""
        self._ended = False

    @property
    def seconds(self) -> float:
        """Seconds of the run so far."""
        return self.clock() - self._began

    def begin(self, form: str) -> None:
        """Searches for a form begin; the clock of the run stays."""
        self._form, seconds = f"{form}: ", self._begins.setdefault(form, self.seconds)
        self.origin = self._began + seconds

    def has_begun(self, form: str) -> bool:
        """Whether an earlier part of the run has searched for a form."""
        return form in self._begins

    def search(self, name: str, dataset: Dataset, settings: SearchSettings, earlier: Sequence[Model] = ()) -> Result:
        """Search, or go on with the search of this name.

        Parameters
        ----------
        name : str
        dataset, settings, earlier
            See `shine.search.run.search`.
        """
        name = f"{self._form}{name}"
        found, others = self._searches.get(name), list(takewhile(lambda other: other != name, self._searches))
        before = sum(self._searches[other].generations + 1 for other in others)
        evaluations = sum(self._searches[other].state.evaluations for other in others)
        limit = settings.stop.seconds if found is None else found.limit
        observers = replace(self._observers, began=None, state=None if found is None else found.state)
        if found is not None and len(others) + 1 < len(self._searches):
            # Another has followed: this one ends where it ended.
            stop = replace(settings.stop, seconds=limit)
            stop = replace(stop, generations=found.generations) if found.ended == "seconds" else stop
            silent = replace(observers, report=ignore, save=forget, visitor=None)
            result = search(dataset, replace(settings, stop=stop), silent, earlier)
            return replace(result, stopped_by=found.ended)

        def told(progress: Progress) -> Progress:
            evaluated = evaluations + progress.evaluations
            return replace(progress, search=name, before=before, evaluations=evaluated, seconds=self.seconds)

        def save(state: State) -> None:
            self._searches[name] = SearchState(state, limit, state.generation)
            self._saved()

        report = Several((self._observers.report,), told)
        observers = replace(observers, title=name, report=report, save=forget if self._ended else save)
        settings = replace(settings, stop=replace(settings.stop, seconds=limit))
        result = search(dataset, settings, observers, earlier)
        if result.stopped_by in USER:
            self._ended = True  # what is done after it in a hurry is done again if the run goes on
        elif name in self._searches:
            state = self._searches[name].state
            self._searches[name] = SearchState(state, limit, result.generations, result.stopped_by)
            self._saved()
        return result

    def stage(self, name: str) -> None:
        """The fits of a stage begin."""
        self._stage = f"{self._form}{name}: "

    @property
    def repeats(self) -> bool:
        """Whether there are fits of this stage that an earlier part of the run has made, and this one has not used."""
        return any(key.startswith(self._stage) for key in self._repeated)

    def fit(self, equations: str, shape: tuple[int, int, int], fit: Callable[[], Fitted]) -> Fitted:
        """The fit of a system, which an earlier part of the run may have made.

        Parameters
        ----------
        equations : str
            What tells the system from others.
        shape : tuple of int
            See `Fitted.shape`.
        fit : callable
        """
        key = self._stage + hashlib.sha256(equations.encode()).hexdigest()
        found = self._fits.get(key)
        self._repeated.discard(key)
        if found is None or found.shape != shape:
            self._repeated.clear()  # the run takes another way than before
            found = fit()
            if not self._ended:
                self._fits[key] = found
                self._saved()
        return found

    def _saved(self) -> None:
        self._save(MotionState(dict(self._searches), dict(self._fits), dict(self._begins), self.seconds))
