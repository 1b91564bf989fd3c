"""The form of the equations: rates, second derivatives, or next states; the states and equations that belong to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from shine.base.errors import DataError, UnsupportedSyntaxError, placed
from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.kernels.kernel import Kernel
from shine.evaluate.rollouts.rates import with_named_constants
from shine.lang.derivative import derivative, unused_name
from shine.lang.forms.names import listed, shown
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse
from shine.lang.simplify.simplifier import simplify
from shine.search.constraints.units import parse_unit
from shine.search.dynamics.equations import Equation
from shine.search.dynamics.known_parts import RUN, Part, known_parts, parts_of, uses_runs
from shine.search.dynamics.readings import Readings
from shine.search.dynamics.rows import features_of
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.dynamics.smoothing.smoothing import Smoothed, SmoothedRun, smoothed
from shine.search.dynamics.system import SystemModel, whole_steps
from shine.search.models.model import Model
from shine.search.templates.template import Parameter


@dataclass(frozen=True, eq=False)
class Form:
    """Trajectories of all states, with what is to be found.

    Parameters
    ----------
    trajectories : Trajectories
        Those of a map have numbers of steps as times, and lagged states as further states; those of a second order have
        the rates as further states, which nobody read.
    smooth : Smoothed
        Of a map, the readings with the next ones as rates.
    parts : tuple of Part
        Each state occurs in one.
    time : str, optional
        Name of the time, if formulas may use it.
    is_map : bool
    step : float
        Of the times of a map.
    lags, order : int
        See `DynamicsSettings`.
    parameters : mapping of str to Parameter
        What is known of constants in known parts.
    runs : tuple of str
        Names of the runs if constants depend on them: their number is the last control then.
    hidden : int, optional
        Position of the state whose rate shows the last state, which nobody read.
    """

    trajectories: Trajectories
    smooth: Smoothed
    parts: tuple[Part, ...]
    time: str | None
    is_map: bool
    step: float = 1.0
    lags: int = 0
    order: int = 1
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    hidden: int | None = None

    @cached_property
    def readings(self) -> Readings:
        """The readings that systems are fitted to."""
        return Readings(self.trajectories, self.smooth)


def form_of(trajectories: Trajectories, settings: DynamicsSettings) -> Form:
    """The form that the settings ask for.

    Raises
    ------
    DataError
        If the times of a map are not whole steps apart, a run is too short for the lags, or a further state or the
        number of the run would have the name of a column.
    UnsupportedSyntaxError
        If the known parts cannot be read.
    """
    if not settings.template and not settings.conserve:
        return _free(trajectories, settings)
    options = settings.template if isinstance(settings.template, Mapping) else {"formula": settings.template}
    runs: tuple[str, ...] = ()
    if settings.template:
        rights = known_parts(options["formula"], trajectories.states, settings.kind, settings.order)
        if uses_runs(rights):
            runs = tuple(run.name or str(number) for number, run in enumerate(trajectories.runs))
            trajectories = _numbered(trajectories)
    form = _free(trajectories, settings)
    features = features_of(form.trajectories, settings.autonomous)
    if settings.conserve:
        rights = conserving(settings.conserve, form.trajectories, form.smooth, features)
    ending = "_dot" * (settings.order - 1)
    rights = {f"{state}{ending}": right for state, right in rights.items()}
    given, parameters = parts_of(rights, features, len(trajectories.runs), options)
    others = [part for part in form.parts if not any(state in rights for state in part.states)]
    return replace(form, parts=(*given, *others), parameters=parameters, runs=runs)


def known_units(trajectories: Trajectories, states: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Units by name, given by names or headings; empty if nothing is given.

    A `ValueError` if a state, a control or the time has no unit, something else has one, or a text is no unit.
    """
    headings = dict(zip(trajectories.headings, trajectories.states, strict=False))
    known = {headings.get(name, name): unit for name, unit in given.items()}
    wanted = (*states, *trajectories.controls, trajectories.time) if given else ()
    for name in (*(each for each in wanted if each not in known), *(each for each in known if each not in wanted)):
        raise ValueError(
            f"units: {shown(name)} {'has none' if name in wanted else 'is unknown'}; "
            + (f'give {listed(wanted)} a unit, "1" for none')
        )
    for name, unit in known.items():
        with placed(f"units: of {shown(name)}", ValueError):
            parse_unit(unit)
    return known


def units_of(form: Form, given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Units of what formulas may use, and of what they stand for by state; empty if nothing is given.

    A `ValueError` if a state, a control or the time has no unit, or something else has one.
    """
    names = form.trajectories.states
    count = len(names) // (form.lags + form.order)
    known = known_units(form.trajectories, names[:count], given)
    time = known[form.trajectories.time]
    rates = {name: f"({known[name]})/({time})" for name in names[:count]}
    if form.order == 2:
        speeds = dict(zip(names[count:], rates.values(), strict=True))
        return {**known, **speeds}, {name: f"({speed})/({time})" for name, speed in speeds.items()}
    lagged = {name: known[names[place % count]] for place, name in enumerate(names)}
    return {**known, **lagged}, known if form.is_map else rates


def _numbered(trajectories: Trajectories) -> Trajectories:
    """Trajectories with the number of the run as a further control."""
    if RUN in (*trajectories.states, *trajectories.controls, trajectories.time):
        raise DataError(f"a column is named {RUN}, and the template has constants by the run; rename the column")
    runs = tuple(
        replace(run, controls=np.column_stack([run.controls, np.full(len(run.times), float(number))]))
        for number, run in enumerate(trajectories.runs)
    )
    return replace(trajectories, runs=runs, controls=(*trajectories.controls, RUN))


def _free(trajectories: Trajectories, settings: DynamicsSettings) -> Form:
    """The form without known parts."""
    time = None if settings.autonomous else trajectories.time
    if settings.kind == "ode":
        seconds = settings.search.stop.seconds
        # Most of the seconds that smoothing should take.
        smooth = smoothed(trajectories, None if seconds is None else 0.2 * seconds)
        if settings.order == 2:
            return _second_order(trajectories, smooth, settings.autonomous)
        return Form(trajectories, smooth, tuple(Part((name,)) for name in trajectories.states), time, False)
    step = min(float(np.diff(run.times).min()) for run in trajectories.runs)
    stepped = replace(trajectories, runs=tuple(_stepped(run, step, settings.lags) for run in trajectories.runs))
    names = stepped.states
    before = [names, *(tuple(f"{name}_lag{lag}" for name in names) for lag in range(1, settings.lags + 1))]
    wider = replace(stepped, states=_distinct(stepped, before), sigma=_repeated(stepped.sigma, settings.lags))
    features = features_of(wider, settings.autonomous)
    lagged = zip(wider.states[len(names) :], wider.states, strict=False)
    parts = (*(Part((name,)) for name in names), *(_same(name, as_what, features) for name, as_what in lagged))
    steps = tuple(_as_steps(run) for run in wider.runs)
    # Each reading counts once: lagged states are no further ones.
    wider = replace(wider, runs=tuple(_unread_from(run, len(names)) for run in wider.runs))
    return Form(wider, Smoothed(steps, (None,) * len(wider.states)), parts, time, True, step, settings.lags)


def _second_order(trajectories: Trajectories, smooth: Smoothed, autonomous: bool) -> Form:
    """Positions and their rates as states: the first ones' equations are known, the others are to be found."""
    names = trajectories.states
    rates = tuple(f"{name}_dot" for name in names)
    wider = _with_unread(trajectories, rates)
    features = features_of(wider, autonomous)
    known = (_same(name, rate, features) for name, rate in zip(names, rates, strict=True))
    parts = (*known, *(Part((rate,)) for rate in rates))
    both = [
        _beside(run, (run.rates, run.bends, run.rate_errors, run.bend_errors), run.independent) for run in smooth.runs
    ]
    processes = (*smooth.processes, *smooth.processes)
    time = None if autonomous else trajectories.time
    return Form(wider, Smoothed(tuple(both), processes), parts, time, False, order=2)


def hidden_forms(trajectories: Trajectories, settings: DynamicsSettings) -> tuple[Form, ...]:
    """The form of the states that were read alone, and those with a hidden state beside them.

    Readings show a hidden state only up to a change of variable: h and g(h) move the others alike. Where it moves a
    state x, the rate of x is such a variable, and so is x'/x if x keeps its sign: x' = h, or x' = x*h.
    """
    plain = _free(trajectories, settings)
    wider = _with_unread(trajectories, (settings.hidden,))
    features, smooth, found = features_of(wider, settings.autonomous), plain.smooth, [plain]
    for place, state in enumerate(trajectories.states):
        values = np.concatenate([run.states[:, place] for run in smooth.runs])
        keeps = bool((values > 0).all() or (values < 0).all())
        for right in (settings.hidden, *([f"{state}*{settings.hidden}"] if keeps else [])):
            runs = tuple(_with_rate(run, place, right != settings.hidden) for run in smooth.runs)
            parts = list(plain.parts)
            parts[place] = _same(state, right, features)
            own = Smoothed(runs, (*smooth.processes, smooth.processes[place]))
            every = (*parts, Part((settings.hidden,)))
            found.append(replace(plain, trajectories=wider, smooth=own, parts=every, hidden=place))
    return tuple(found)


def form_of_system(model: SystemModel, readings: Trajectories) -> Form:
    """Readings with estimates of the states that a system has beside them: rates, or a hidden one."""
    smooth = smoothed(readings)
    if model.hidden is None:
        return _second_order(readings, smooth, True)
    relative = len(model.trees[model.hidden].used_parameters) > 1
    runs = tuple(_with_rate(run, model.hidden, relative) for run in smooth.runs)
    return Form(_with_unread(readings, model.states[-1:]), replace(smooth, runs=runs), (), None, False)


def _with_rate(run: SmoothedRun, place: int, relative: bool) -> SmoothedRun:
    """A smoothed run with the rate of a state, or its share of the state, as a state beside the others."""
    kinds = ("states", "rates", "bends", "state_errors", "rate_errors", "bend_errors")
    value, rate, bend, unsure, rate_error, bend_error = (getattr(run, kind)[:, place] for kind in kinds)
    parts = (rate, bend, rate_error, bend_error)
    if relative:
        share = rate / value
        change = bend / value - share**2
        share_error = np.sqrt(rate_error**2 + (share * unsure) ** 2) / np.abs(value)
        own = (2 * share * rate_error) ** 2 + ((change - share**2) * unsure) ** 2
        parts = (share, change, share_error, np.sqrt(bend_error**2 + own) / np.abs(value))
    return _beside(run, tuple(part[:, None] for part in parts), run.independent[[place]])


def _beside(run: SmoothedRun, parts: Sequence[Floats], independent: Floats) -> SmoothedRun:
    """A smoothed run with further states: their values, rates, and the errors of these."""
    given = (run.states, run.rates, run.state_errors, run.rate_errors)
    states, rates, state_errors, rate_errors = (np.concatenate(pair, axis=1) for pair in zip(given, parts, strict=True))
    return SmoothedRun(
        times=run.times,
        states=states,
        rates=rates,
        bends=np.zeros_like(states),
        state_errors=state_errors,
        rate_errors=rate_errors,
        bend_errors=np.full_like(states, np.inf),
        controls=run.controls,
        independent=np.concatenate([run.independent, independent]),
        noise=np.concatenate([run.noise, np.zeros_like(parts[0])], axis=1),
    )


def _with_unread(trajectories: Trajectories, names: tuple[str, ...]) -> Trajectories:
    """Trajectories with further states, which nobody read."""
    runs = []
    for run in trajectories.runs:
        nothing = np.full((len(run.times), len(names)), np.nan)
        runs.append(replace(run, states=np.concatenate([run.states, nothing], axis=1)))
    # No reading has the errors of these.
    sigma = None if trajectories.sigma is None else np.concatenate([trajectories.sigma, np.ones(len(names))])
    states = _distinct(trajectories, (trajectories.states, names))
    return replace(trajectories, runs=tuple(runs), states=states, sigma=sigma)


def _same(state: str, other: str, features: Sequence[str]) -> Part:
    """The equation of a state whose rate, or next value, is another one."""
    return Part((state,), None, (Equation(Model(parse(other, features), 0.0, 1.0)),))


def _distinct(given: Trajectories, parts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The names of all states; a `DataError` if a further one is taken."""
    names = tuple(name for part in parts for name in part)
    for name in names[len(given.states) :]:
        if name in (*given.states, *given.controls, given.time):
            raise DataError(f"{name} is a further state here; rename the column of this name")
    return names


def _unread_from(run: Trajectory, column: int) -> Trajectory:
    """A run without readings of the states from a column on."""
    states = run.states.copy()
    states[:, column:] = np.nan
    return replace(run, states=states)


def _repeated(sigma: Floats | None, lags: int) -> Floats | None:
    return None if sigma is None else np.tile(sigma, lags + 1)


def _stepped(run: Trajectory, step: float, lags: int) -> Trajectory:
    """A run by numbers of steps, with lagged states beside; steps without a reading are empty."""
    whole = whole_steps(run.times, step)
    count = int(whole[-1]) + 1
    if count < lags + 3:
        raise DataError(f"a run has {count} steps; with lags={lags}, at least {lags + 3} are needed")
    states = np.full((count, run.states.shape[1]), np.nan)
    controls = np.zeros((count, run.controls.shape[1]))
    at = whole.astype(np.int64)
    states[at] = run.states
    # Between known times a control keeps its last value.
    controls[:] = run.controls[np.searchsorted(at, np.arange(count), side="right") - 1]
    lagged = [states[lags - lag : count - lag] for lag in range(lags + 1)]
    times = np.arange(float(count - lags))
    return Trajectory(times, np.concatenate(lagged, axis=1), controls[lags:], run.name)


def _as_steps(run: Trajectory) -> SmoothedRun:
    """The readings of each step, and those of the next one as rates; errors are infinite where one is missing."""
    read = ~np.isnan(run.states)
    column = np.arange(run.states.shape[1])
    # The last reading before, or the first one, stands in where a rollout has to start.
    last = np.maximum.accumulate(np.where(read, np.arange(len(read))[:, None], -1), axis=0)
    filled = run.states[np.where(last < 0, read.argmax(axis=0), last), column]
    filled = np.where(np.isnan(filled), 0.0, filled)
    following = np.concatenate([run.states[1:], np.full((1, len(column)), np.nan)])
    none = np.zeros(run.states.shape)
    return SmoothedRun(
        times=run.times,
        states=filled,
        rates=np.where(np.isnan(following), 0.0, following),
        bends=none,
        state_errors=np.where(read, 0.0, np.inf),
        rate_errors=np.where(np.isnan(following), np.inf, 0.0),
        bend_errors=none,
        controls=run.controls,
        independent=np.full(len(column), float(len(read))),
        noise=none,
    )


def conserving(text: str, trajectories: Trajectories, smooth: Smoothed, features: Sequence[str]) -> dict[str, str]:
    """Right sides of all states, as a template, that keep a quantity.

    Of two states, x' = g*dH/dy and y' = -g*dH/dx with one unknown function g of all of them keep H(x, y), and each
    motion that keeps it has this form. Of more, one rate follows from the others, which are free: that of a state by
    which the derivative of H has one sign in all readings.

    Parameters
    ----------
    text : str
        The quantity, a formula of states.
    trajectories : Trajectories
    smooth : Smoothed
    features : sequence of str
        What rates may depend on.

    Raises
    ------
    UnsupportedSyntaxError
        If the text is no such formula.
    DataError
        If there is one state, the readings do not keep the quantity, or each derivative of the quantity changes its
        sign, with more than two states.
    """
    names = trajectories.states
    told = lambda error: f"{error}; it is a formula of {listed(names)}"  # noqa: E731
    with placed("conserve", UnsupportedSyntaxError, ValueError, told=told):
        tree = parse(text, names)
        slopes = [simplify(derivative(tree, name)) for name in names]
        # The unknown functions have what numbers all derivatives share: x for 2*x.
        numbers = {abs(number) for slope in slopes for number in with_named_constants(slope)[1].tolist() if number}
        shares = ([simplify(parse(f"({slope})/{number!r}", names)) for slope in slopes] for number in sorted(numbers))
        slopes = min([slopes, *shares], key=lambda each: sum(slope.size for slope in each))
    if len(names) == 1:
        raise DataError(f"conserve: {names[0]} is the only state, and would stand still")
    states, speeds = (np.concatenate([getattr(run, kind) for run in smooth.runs]) for kind in ("states", "rates"))
    values = [np.broadcast_to(Kernel(slope)(*states.T), len(states)) for slope in slopes]
    changes = np.array(values).T * speeds
    change, most = (
        float(np.sqrt(np.add.reduce(np.add.reduce(each, axis=1) ** 2))) for each in (changes, np.abs(changes))
    )
    # Rate of a quantity, as a share of the sizes of its terms' rates, from which the readings do not keep it; where
    # noise hides all, this is 0.7.
    if not change < 0.8 * most:
        raise DataError(f"conserve: the readings do not keep {text}: nothing in it makes up for what changes")
    arguments = ", ".join(features)
    function = unused_name("f", features)
    if len(names) == 2:
        call = f"{function}({arguments})"
        return {names[0]: f"{call}*({slopes[1]})", names[1]: f"-{call}*({slopes[0]})"}
    last = _dependent(slopes, values)
    if last is None:
        raise DataError(f"conserve: each derivative of {text} is 0 somewhere in the readings; no rate follows from it")
    rates = {name: f"{unused_name(f'f{number}', features)}({arguments})" for number, name in enumerate(names)}
    del rates[names[last]]
    factors = {
        name: "" if str(slope) in ("1", "1.0") else f"({slope})*" for name, slope in zip(names, slopes, strict=True)
    }
    sums = " + ".join(f"{factors[name]}{rate}" for name, rate in rates.items())
    return {**rates, names[last]: f"-({sums})" + (f"/({slopes[last]})" if factors[names[last]] else "")}


def _dependent(slopes: Sequence[Tree], values: Sequence[Floats]) -> int | None:
    """The state whose rate follows from the others: the last one with a derivative of one sign, a constant first."""
    usable = [place for place, own in enumerate(values) if (own > 0).all() or (own < 0).all()]
    return max(usable, key=lambda place: (not slopes[place].used_parameters, place), default=None)
