"""From trajectories to equations of motion: rates, a search for each state, systems judged by integrating them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.stages import stage
from shine.base.typing import Floats
from shine.data.trajectories import Trajectories
from shine.evaluate.rollouts.fitting import FitSettings, fit_rollouts
from shine.evaluate.rollouts.native import functions
from shine.lang.forms.names import listed, shown
from shine.search.constraints.constraints import Constraints
from shine.search.constraints.units import is_product
from shine.search.dynamics.closing import closed
from shine.search.dynamics.conserved import Plane, planes_of
from shine.search.dynamics.doubt import doubt_about
from shine.search.dynamics.equations import Equation, equations_of, unknowns_of
from shine.search.dynamics.flows import flow_equations
from shine.search.dynamics.forms import Form, form_of, hidden_forms, units_of
from shine.search.dynamics.joining import (
    Candidate,
    alike,
    best_first,
    candidates_of,
    model_of,
    with_integrals,
    with_terms_of_others,
)
from shine.search.dynamics.known_parts import RUN, Part, bare
from shine.search.dynamics.rate_search import LEAST_SECONDS
from shine.search.dynamics.result import MOST_RIVALS, NEAR, DynamicsResult, distinct, front_of
from shine.search.dynamics.rows import (
    EXACT,
    LEAST_AGAIN,
    RateRows,
    RateSearches,
    feature_columns,
    features_of,
    rate_rows,
)
from shine.search.dynamics.session import Session
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.dynamics.sharing import with_sharing, with_short_numbers
from shine.search.dynamics.system import SystemModel, digits_of
from shine.search.evolution.observers import NOBODY, Observers
from shine.search.models.model import Model
from shine.search.models.result import USER

FIRST_SEARCHES, FIRST_SYSTEMS, LAST_SEARCHES, LAST_SYSTEMS = 0.5, 0.65, 0.83, 0.93
"""Shares of the seconds at which the stages end: a search for each state, rollouts of systems, and both once more."""

TRIED = 0.5
"""Share of the seconds in which forms with and without a hidden state are tried; the best one has the rest."""

APART, MOST_SHARING = 0.7, 10
"""Share of a stage's seconds for systems of the equations as they were found, and most systems that are tried with
shared constants then."""

FIRST = 12
"""Systems that are integrated whatever the rates say: the front shows what simpler ones miss."""


@np.errstate(all="ignore")
def find_dynamics(
    trajectories: Trajectories,
    settings: DynamicsSettings,
    observers: Observers | Session = NOBODY,
) -> DynamicsResult:
    """Find the equations of motion of some trajectories.

    Parameters
    ----------
    trajectories : Trajectories
    settings : DynamicsSettings
    observers : Observers or Session
        Observers get the reports of the searches for single rates.

    Returns
    -------
    DynamicsResult
        Ctrl-C ends the search early; the result has what was found so far.

    Raises
    ------
    DataError, UnsupportedSyntaxError, ValueError
        If the trajectories, a function or a setting is invalid.
    """
    session = Session.of(observers)
    with stage("preparing the integrator"):
        functions()  # before the searches, whose time is what this leaves: its first call on a machine compiles
    with stage("smoothing the trajectories"):
        forms = hidden_forms(trajectories, settings) if settings.hidden else (form_of(trajectories, settings),)
    return _of_form(forms[0], settings, session) if len(forms) == 1 else _of_forms(forms, settings, session)


def _of_forms(forms: Sequence[Form], settings: DynamicsSettings, session: Session) -> DynamicsResult:
    """The shortest description by a system with a hidden state, or by the first form, which has none."""
    seconds = math.inf if settings.search.stop.seconds is None else settings.search.stop.seconds

    def found(form: Form, share: float, name: str) -> DynamicsResult:
        search = settings.search
        if math.isfinite(share):
            search = replace(search, stop=replace(search.stop, seconds=max(share, LEAST_SECONDS)))
        session.begin(name)
        return _of_form(form, replace(settings, search=search), session)

    def left() -> float:
        return seconds - session.seconds

    results = [found(forms[0], TRIED * seconds / len(forms), "form 0")]
    tried, problem = [forms[0]], ""
    for number, form in enumerate(forms[1:], 1):
        late = left() < 0.1 * seconds and not session.has_begun(f"form {number}")
        if results[-1].stopped_by in USER or late:
            break
        try:
            results.append(found(form, TRIED * seconds / len(forms), f"form {number}"))
            tried.append(form)
        except DataError as error:
            # The rates of its hidden state are not known at any time.
            problem = str(error)
    if problem and len(results) == 1:
        raise DataError(problem)
    # A state that nobody read has to explain something.
    at = int(np.argmin([each.chosen.nats + NEAR * (number > 0) for number, each in enumerate(results)]))
    best = results[at]
    if results[-1].stopped_by not in USER and LEAST_AGAIN < left() < math.inf and not best.chosen.error < EXACT:
        results.append(found(tried[at], left(), f"form {at} again"))
        best = min(best, results[-1], key=lambda each: each.chosen.nats)
    front, more = best.front, results[0].chosen.nats - best.chosen.nats
    if len(results) > 1 and math.isfinite(best.chosen.nats):
        front = replace(front, reason=f"{front.reason}; {_shown(settings.hidden, best.chosen, more)}")
    systems = sum(each.systems for each in results)
    return replace(best, front=front, seconds=session.seconds, systems=systems)


def _shown(name: str, best: SystemModel, more: float) -> str:
    """What the readings tell of a hidden state, by the nats that the states alone need more."""
    if best.hidden is None:
        return f"{name} is not identifiable from these data, which the states that were read explain as well alone"
    if best.restarts:
        return f"none with {name} follows them from start to end: more is hidden, or the readings are too few"
    return f"without {name}, {more:.0f} nats more" if math.isfinite(more) else f"without {name}, none follows them"


def _of_form(form: Form, settings: DynamicsSettings, session: Session) -> DynamicsResult:
    """The result of the searches for one form."""
    rows = [_rows_of(part, form, settings.autonomous) for part in form.parts]
    units = units_of(form, settings.units) if settings.units else ({}, {})
    if settings.units and settings.search.constraints.dimensionless_constants:
        _check_units(form, rows, units)
    searches = RateSearches(form.trajectories.states, form.parts, rows, settings.search, units, session)
    return _Finding(form, searches, session).result()


def _check_units(form: Form, rows: Sequence[Sequence[RateRows]], units: tuple[Mapping[str, str], ...]) -> None:
    """Raise a `DataError` for a rate whose unit no formula has, as its constants have none."""
    for part, own in zip(form.parts, rows, strict=True):
        for state, each in zip(part.states, own, strict=False):
            features = each.dataset.features
            if not is_product(units[1][state], [units[0][name] for name in features]):
                raise DataError(
                    f"units: no formula of {listed(features)} has the unit of the rate of {shown(state)}, "
                    f"{units[1][state]}, as constants have none; allow constants to have units, or give others"
                )


def _rows_of(part: Part, form: Form, autonomous: bool) -> tuple[RateRows, ...]:
    """The rows of each state of a part; none if its equations are known."""
    # The number of the run is for constants by run alone.
    without = RUN if form.runs and (part.template is None or part.template.groups is None) else None
    columns = [] if part.known else [form.trajectories.states.index(state) for state in part.states]
    return tuple(rate_rows(form.trajectories, form.smooth, column, autonomous, without) for column in columns)


@dataclass
class _Finding:
    """A search in progress."""

    form: Form
    searches: RateSearches
    session: Session
    systems: dict[tuple[Model, ...], SystemModel] = field(default_factory=dict)
    tried: set[tuple[Model, ...]] = field(default_factory=set)

    def result(self) -> DynamicsResult:
        """Search, integrate, and both once more for the states that need it."""
        searches, stopped_by = self.searches, ""
        searches.first(self._at(FIRST_SEARCHES))
        try:
            self._follow(self._at(FIRST_SYSTEMS))
            # A run that goes on may have lost the systems of this stage.
            least = (FIRST_SYSTEMS - FIRST_SEARCHES) * (searches.settings.stop.seconds or 0.0)
            until = max(self._at(FIRST_SYSTEMS), self.session.clock() + least)
            self._integrate("first systems", min(until, self._at(LAST_SYSTEMS)))
            best, until = self._best, self._at(LAST_SEARCHES)
            if not searches.stopped_by_user and searches.again(until, best.equations, best.error):
                self._integrate("last systems", self._at(LAST_SYSTEMS))
        except KeyboardInterrupt:
            stopped_by = "interrupted"
        if not self.systems:
            models = tuple(result.best for result in searches.results)
            self.systems[models] = unfitted(self._equations(models), self.form)
        best, *others = distinct(self.systems.values(), self._drawn)
        if not (stopped_by or searches.stopped_by_user):
            try:
                with stage("shortening numbers"):
                    stop = self._stop(lambda: False)
                    best = with_short_numbers(best, lambda equations: fitted(equations, self.form, stop))
            except KeyboardInterrupt:
                stopped_by = "interrupted"
        runs, states = self.form.smooth.runs, self._states
        planes = [] if stopped_by else self._planes
        equal = [others for plane in planes for others in plane.others(best)][:MOST_RIVALS]
        # They begin with constants that fit as well: when the time is over, they stay as they are.
        end = self._at(1.0)
        rivals = [
            fitted([Equation(model) for model in each], self.form, lambda: self.session.clock() > end) for each in equal
        ]
        front, doubt = front_of([best, *others]), doubt_about(best, self.form)
        told = f"; {listed([str(plane) for plane in planes])}: forms that differ by it are equal here" * bool(planes)
        front = replace(
            front,
            reason=f"nothing was found: {doubt}" if doubt else front.reason + told,
            found=not doubt,
            others=(*front.others, *rivals),
            ranges=(states.min(axis=0), states.max(axis=0)),
            duration=self.form.step * max(float(run.times[-1] - run.times[0]) for run in runs),
        )
        return DynamicsResult(
            front=front,
            equations={
                ", ".join(part.states): result.front
                for part, result in zip(searches.parts, searches.results, strict=True)
                if not part.known
            },
            seconds=self.session.seconds,
            seed=searches.settings.seed,
            stopped_by=stopped_by or searches.stopped_by,
            systems=len(self.systems),
        )

    @property
    def _best(self) -> SystemModel:
        return min(self.systems.values(), key=lambda system: system.nats)

    @property
    def _states(self) -> Floats:
        """Smoothed states of all runs, shape (n_times, n_states)."""
        return np.concatenate([run.states for run in self.form.smooth.runs])

    @property
    def _drawn(self) -> dict[str, Floats]:
        """States, controls and times drawn from the ranges of the data, and from half as much beyond."""
        values = feature_columns(self.form.smooth, False)
        low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        low, high = low - 0.5 * (high - low), high + 0.5 * (high - low)
        drawn = low + (high - low) * np.random.default_rng(0).random((50, len(low)))
        return dict(zip(features_of(self.form.trajectories, False), drawn.T, strict=True))

    @cached_property
    def _planes(self) -> list[Plane]:
        """Sums of states that stay as they are along the runs, of states that are all read, at one time."""
        alone = self.form.lags == 0 and self.form.order == 1
        return planes_of(self._states, self.form.trajectories.states) if alone else []

    def _at(self, share: float) -> float:
        """End of a share of the seconds; inf without a limit."""
        seconds = self.searches.settings.stop.seconds
        return math.inf if seconds is None else self.session.origin + share * seconds

    def _integrate(self, name: str, until: float) -> None:
        """Fit the most likely systems of the equations found so far."""
        session = self.session
        clock, began = session.clock, session.clock()
        session.stage(name)

        def late(share: float = 1.0) -> bool:
            return not session.repeats and clock() > began + share * (until - began)

        fronts = [
            candidates_of(result.front, rows)
            for result, rows in zip(self.searches.results, self.searches.joined, strict=True)
        ]
        images: list[tuple[Candidate, ...]] = []
        apart = self._apart
        if apart and not self.form.is_map:
            fronts = with_integrals(fronts, self.searches.joined, self.form.trajectories.states, self.form.readings)
        if apart:
            # Most systems of one law for exchanged states that are integrated in a stage, whatever the rates say.
            images = alike(fronts, self.searches.joined, self.form.trajectories.states, 4)
        if self._sums:
            most = self.searches.settings.evolution.max_size
            fronts = with_terms_of_others(fronts, self.searches.joined, self.form.trajectories.states, most)
        rows = [own for own in self.searches.joined if own is not None]
        if self._sums and self._planes and not self.form.is_map and len(rows) == len(fronts):
            images += closed(fronts, rows, self.form.trajectories.states, self._planes)
        systems = best_first(fronts)
        with stage("integrating systems"):
            for number, candidates in enumerate(chain(islice(systems, FIRST), images, systems)):
                # Nats by which the rates may speak against the equations of a system that is still integrated, beyond
                # the first.
                hopeless = number >= FIRST + len(images) and sum(each.nats for each in candidates) > 30.0
                ended = self.systems and (late(APART) or self.searches.stopped_by_user)
                if hopeless or number == 100 or ended:  # most systems that are fitted to the trajectories in a stage
                    break
                models = tuple(each.model for each in candidates)
                if models not in self.systems:
                    self.systems[models] = fitted(self._equations(models), self.form, self._stop(late), session)
            if apart or images:
                self._share([tuple(each.model for each in own) for own in images], late)

    def _follow(self, until: float) -> None:
        """Fit the polynomials whose flow leads from each reading to the next."""
        form, session = self.form, self.session
        continuous = form.order == 1 and not form.is_map and not form.trajectories.controls
        rows = [own for own in self.searches.joined if own is not None]
        # On planes, many polynomials are equal; and known equations stay as they are.
        if not (continuous and self._sums) or self._planes or len(rows) < len(form.trajectories.states):
            return
        session.stage("flows")

        def late() -> bool:
            return self.searches.stopped_by_user or (not session.repeats and session.clock() > until)

        with stage("following the flow from reading to reading"):
            spread = np.sqrt(form.readings.variances)
            trees = flow_equations(form.trajectories, [own.dataset.features for own in rows], spread, late)
            if trees and max(tree.size for tree in trees) <= self.searches.settings.evolution.max_size:
                models = tuple(model_of(tree, own) for tree, own in zip(trees, rows, strict=True))
                equations, stop = self._equations(models), self._stop(late)
                self.systems[models] = fitted(equations, form, stop, session, from_readings=True)

    @property
    def _apart(self) -> bool:
        """Whether what the equations share can tell more: they may be sums, and some rates are not clean."""
        return self._sums and any(rows is not None and not rows.clean for rows in self.searches.joined)

    @property
    def _sums(self) -> bool:
        """Whether the equations are found apart, as sums if that suits, without a constraint that others may break."""
        settings, names = self.searches.settings, {str(each) for each in self.searches.settings.primitives}
        unknown = [part for part in self.form.parts if not part.known]
        return (
            settings.constraints == Constraints()
            and self.form.hidden is None
            and not self.searches.units[0]
            and not any(part.template for part in unknown)
            and {"add", "sub", "mul"} <= names
        )

    def _share(self, images: Sequence[tuple[Model, ...]], late: Callable[[], bool]) -> None:
        """Share constants in the best systems where that is shorter, in those of one law first: they share most."""
        best, session = self._best.nats, self.session
        # Nats by which the description of a system may be longer than the shortest one to be tried with shared
        # constants.
        near = [key for key, each in self.systems.items() if each.nats <= best + 12.0 and key not in self.tried]
        for key in sorted(near, key=lambda each: (each not in images, self.systems[each].nats))[:MOST_SHARING]:
            if late():
                break
            self.tried.add(key)
            found = with_sharing(self.systems[key], lambda equations: fitted(equations, self.form, late, session))
            if found is not None and found.nats < self.systems[key].nats:
                self.systems[key] = found

    def _equations(self, models: Sequence[Model]) -> list[Equation]:
        """The equation of each state, by formulas of all parts."""
        found: dict[str, Equation] = {}
        for part, model in zip(self.form.parts, models, strict=True):
            found.update(zip(part.states, part.known or equations_of(model), strict=True))
        return [found[state] for state in self.form.trajectories.states]

    def _stop(self, late: Callable[[], bool]) -> Callable[[], bool]:
        """Whether a fit is to end: the first one may go on for a while, as there is no other."""
        return late if self.systems else lambda: self.session.clock() > self._at(LAST_SYSTEMS)


def fitted(
    equations: Sequence[Equation],
    form: Form,
    stop: Callable[[], bool],
    session: Session | None = None,
    *,
    from_readings: bool = False,
) -> SystemModel:
    """The system of some equations, with the constants and initial states that fit the readings best.

    Parameters
    ----------
    equations : sequence of Equation
        One a state.
    form : Form
    stop : callable
        Says whether the time is over; the fit then ends with what it has.
    session : Session, optional
        Keeps the fit.
    from_readings : bool
        Whether stretches start at the readings: by default at smoothed states, which are wrong where readings are few.

    Returns
    -------
    SystemModel
        Its error is infinite if no rollout follows the readings to their end.
    """
    start = unfitted(equations, form)
    system, readings = start.compiled, form.readings

    def told() -> Floats:
        smooth = None if from_readings else [run.states for run in readings.smooth.runs]
        settings = FitSettings(stop=stop, sizes=readings.sizes)
        fit = fit_rollouts(system, readings.trajectories, unknowns=start.unknowns, smooth=smooth, settings=settings)
        losses, relative = readings.losses(fit.states)
        losses = losses if fit.succeeded else np.full(len(losses), math.inf)
        starts = np.stack([states[0] for states in fit.states])
        further = np.array([len(fit.starts) - len(starts), fit.stiff])
        parts = fit.constants, starts, losses, relative, fit.noise, fit.covariance, further
        return np.concatenate([part.ravel() for part in parts], dtype=np.float64)

    size, (runs, states) = len(system.constants), start.starts.shape
    ends = np.cumsum([size, runs * states, states, states, states, size * size])
    texts = str([(str(each.model.tree), each.names, each.factors) for each in equations])
    numbers = told() if session is None else session.fit(texts, int(ends[-1]) + 2, told)
    constants, starts, losses, relative, noise, covariance, (anew, stiff) = np.split(numbers, ends)
    if not (np.isfinite(losses).all() and np.isfinite(constants).all()):
        return start
    covariance, restarts = covariance.reshape(size, size), int(anew)
    trees = system.trees_with(constants)
    parts = [slice(first, end) for first, end in zip((0, *system.ends[:-1]), system.ends, strict=True)]
    assert start.unknowns is not None
    counts = start.unknowns.counts(parts)
    errors = np.sqrt(np.diagonal(covariance))
    digits = [
        model.digits or digits_of(constants[part], errors[part])
        for model, part in zip(start.equations, parts, strict=True)
    ]
    if start.unknowns.count < int((start.unknowns.numbers >= 0).sum()):
        # A constant of several equations reads the same in all.
        digits = [max((own for own in digits if own is not None), default=None)] * len(digits)
    models = tuple(
        replace(model, tree=tree, digits=own) for model, tree, own in zip(start.equations, trees, digits, strict=True)
    )
    sizes = [bare(tree).size - each.saved for tree, each in zip(trees, equations, strict=True)]
    # Stretches that start anew are paid for as constants.
    return replace(
        start,
        equations=models,
        losses=losses,
        starts=starts.reshape(runs, states),
        noise=noise,
        covariance=covariance,
        nats=readings.nats(relative, sizes, [count + restarts for count in counts]),
        rest=readings.nats(relative, [0] * len(trees), [restarts] * len(trees)),
        restarts=restarts,
        stiff=bool(stiff),
    )


def unfitted(equations: Sequence[Equation], form: Form) -> SystemModel:
    """The system as the rates gave it, without an error of rollouts (see `fitted` for the parameters)."""
    given, readings, time = form.trajectories, form.readings, form.time
    models = tuple(each.model for each in equations)
    used = time if any(time in model.tree.used_parameters for model in models) else None
    return SystemModel(
        equations=models,
        states=given.states,
        controls=given.controls,
        time=used,
        losses=np.full(len(given.states), math.inf),
        variances=readings.variances,
        starts=readings.starts,
        noise=np.full(len(given.states), math.inf),
        headings=given.headings,
        is_map=form.is_map,
        step=form.step,
        lags=form.lags,
        order=form.order,
        runs=form.runs,
        hidden=form.hidden,
        unknowns=unknowns_of(equations, form.parameters),
    )
