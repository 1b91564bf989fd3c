"""From trajectories to equations of motion: rates, a search for each state, systems judged by integrating them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from shine.base.stages import stage
from shine.data.trajectories import Trajectories
from shine.evaluate.rollouts.native import functions
from shine.search.dynamics.by_run import RUN
from shine.search.dynamics.fitting import fitted, unfitted
from shine.search.dynamics.forms import Form, form_of
from shine.search.dynamics.joining import best_first, candidates_of
from shine.search.dynamics.kept_back import confirmed
from shine.search.dynamics.result import DynamicsResult, distinct, front_of
from shine.search.dynamics.rows import RateRows, rate_rows
from shine.search.dynamics.searches import RateSearches
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.dynamics.system import SystemModel
from shine.search.evolution.observers import NOBODY, Observers
from shine.search.models.model import Model

FIRST_SEARCHES, FIRST_SYSTEMS, LAST_SEARCHES, LAST_SYSTEMS, LAST_CHECKS = 0.5, 0.65, 0.83, 0.93, 0.97
"""Shares of the seconds at which the stages end: a search for each state, rollouts of systems, both once more, and the
check on what was kept back."""

MOST_SYSTEMS = 100
"""Most systems that are fitted to the trajectories in a stage."""

HOPELESS = 30.0
"""Nats by which the rates may speak against the equations of a system that is still integrated, beyond the first."""

FIRST = 12
"""Systems that are integrated whatever the rates say: the front shows what simpler ones miss."""


@np.errstate(all="ignore")
def find_dynamics(
    trajectories: Trajectories, settings: DynamicsSettings, observers: Observers = NOBODY
) -> DynamicsResult:
    """Find the equations of motion of some trajectories.

    Parameters
    ----------
    trajectories : Trajectories
    settings : DynamicsSettings
    observers : Observers
        They get the reports of the searches for single rates.

    Returns
    -------
    DynamicsResult
        Ctrl-C ends the search early; the result has what was found so far.

    Raises
    ------
    DataError, UnsupportedSyntaxError, ValueError
        If the trajectories, a function or a setting is invalid.
    """
    observers = observers.begun()
    with stage("preparing the integrator"):
        functions()  # before the searches, whose time is what this leaves: its first call on a machine compiles
    with stage("smoothing the trajectories"):
        form = form_of(trajectories, settings)
    rows: list[RateRows | None] = []
    for column, known in enumerate(form.known):
        law = form.templates.get(column)
        # The number of the run is for constants by run alone.
        without = RUN if form.runs and (law is None or law.groups is None) else None
        own = known is None
        rows.append(rate_rows(form.trajectories, form.smooth, column, settings.autonomous, without) if own else None)
    searches = RateSearches(form.trajectories.states, rows, form.known, form.templates, settings.search, observers)
    return _Finding(form, searches, observers).result()


@dataclass
class _Finding:
    """A search in progress."""

    form: Form
    searches: RateSearches
    observers: Observers
    systems: dict[tuple[Model, ...], SystemModel] = field(default_factory=dict)

    def result(self) -> DynamicsResult:
        """Search, integrate, and both once more for the states that need it."""
        searches, stopped_by = self.searches, ""
        searches.first(self._at(FIRST_SEARCHES))
        try:
            self._integrate(self._at(FIRST_SYSTEMS))
            best, until = self._best, self._at(LAST_SEARCHES)
            if not searches.stopped_by_user and searches.again(until, best.equations, best.error):
                self._integrate(self._at(LAST_SYSTEMS))
        except KeyboardInterrupt:
            stopped_by = "interrupted"
        if not self.systems:
            models = [result.best for result in searches.results]
            self.systems[tuple(models)] = unfitted(models, self.form)
        systems = distinct(self.systems.values())
        with stage("checking the choice"):
            late = stopped_by or searches.stopped_by_user
            best = confirmed(systems, self.form, lambda: bool(late) or self._late(LAST_CHECKS))
        runs = self.form.smooth.runs
        states = np.concatenate([run.states for run in runs])
        front = replace(
            front_of(systems, best),
            ranges=(states.min(axis=0), states.max(axis=0)),
            duration=self.form.step * max(float(run.times[-1] - run.times[0]) for run in runs),
        )
        return DynamicsResult(
            front=front,
            equations=tuple(
                result.front for result, known in zip(searches.results, searches.known, strict=True) if known is None
            ),
            seconds=self.observers.clock() - self.observers.origin,
            seed=searches.settings.seed,
            stopped_by=stopped_by or searches.stopped_by,
            systems=len(self.systems),
        )

    @property
    def _best(self) -> SystemModel:
        return min(self.systems.values(), key=lambda system: system.nats)

    def _at(self, share: float) -> float:
        """End of a share of the seconds; inf without a limit."""
        seconds = self.searches.settings.stop.seconds
        return math.inf if seconds is None else self.observers.origin + share * seconds

    def _late(self, share: float) -> bool:
        return self.observers.clock() > self._at(share)

    def _integrate(self, until: float) -> None:
        """Fit the most likely systems of the equations found so far."""
        clock = self.observers.clock

        def late() -> bool:
            return clock() > until

        candidates = [
            candidates_of(result.front, rows)
            for result, rows in zip(self.searches.results, self.searches.rows, strict=True)
        ]
        with stage("integrating systems"):
            for number, joined in enumerate(best_first(candidates)):
                hopeless = number >= FIRST and sum(each.nats for each in joined) > HOPELESS
                if hopeless or number == MOST_SYSTEMS or (self.systems and (late() or self.searches.stopped_by_user)):
                    break
                equations = tuple(each.model for each in joined)
                if equations not in self.systems:
                    self.systems[equations] = fitted(equations, self.form, self._stop(late))

    def _stop(self, late: Callable[[], bool]) -> Callable[[], bool]:
        """Whether a fit is to end: the first one may go on for a while, as there is no other."""
        return late if self.systems else lambda: self.observers.clock() > self._at(LAST_SYSTEMS)
