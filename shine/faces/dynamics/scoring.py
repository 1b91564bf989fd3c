"""A user's states as systems take them, and the score of a system on trajectories: R2 of its rollouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.headings import check_heading
from shine.data.columns.numbers import numbers
from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.rollouts.controls import resolved
from shine.evaluate.rollouts.fitting import FitSettings, fit_rollouts
from shine.evaluate.rollouts.unknowns import Unknowns
from shine.lang.forms.names import listed
from shine.search.dynamics.forms import form_of_system
from shine.search.dynamics.system import SystemModel, whole_steps

MOST_TIMES, TOLD = 1000, 1e-3
"""Most times of a run to which further ones are added, and the error of controls between the readings, as a share of
their range, from which on they are."""


def start_values(model: SystemModel, states: Sequence[str], x0: Any) -> Floats:
    """All states at the first time (see `SystemModel.start_of`), from an array, a mapping, a table or a row of one."""
    headings = x0.keys() if hasattr(x0, "keys") else getattr(x0, "columns", None)
    if headings is not None:
        with_rates = model.order == 2 and set(model.states) <= set(headings)
        states = model.states if with_rates else [*states, *(() if model.hidden is None else model.states[-1:])]
        missing = [state for state in states if state not in headings]
        if missing:
            raise DataError(f"x0 has {listed(map(str, headings))}, and lacks {listed(missing)}")
        x0 = np.stack([np.asarray(x0[state], np.float64) for state in states], axis=-1)
        x0 = x0[0] if x0.ndim == 2 and len(x0) == 1 else x0
        x0 = x0.reshape(2, -1) if with_rates else x0
    given = np.atleast_1d(np.asarray(x0))
    return model.start_of(numbers(given, "x0", min(given.ndim, 2)))


def state_values(model: SystemModel, headings: Sequence[str], x: Any) -> Floats:
    """Values of the states, for `SystemModel.history`, from a table with their headings or an array."""
    if hasattr(x, "columns"):
        every = [*headings, *model.unread]
        for heading in every:
            check_heading(x, heading, "a state")
        return np.column_stack([numbers(x[heading], "x", 1) for heading in every])
    values = np.asarray(x)
    if values.ndim == 1:
        values = values.reshape((-1, 1) if len(headings) + len(model.unread) == 1 else (1, -1))
    return numbers(values, "x", 2)


def with_inputs(readings: Trajectories, u: Callable[[float], Any]) -> Trajectories:
    """Runs with further times, at which no state was read, where a function's controls change between the readings."""

    def values_at(times: Floats) -> Floats:
        return np.array([np.atleast_1d(u(time)) for time in times.tolist()], np.float64)

    runs = []
    for run in readings.runs:
        times, places = resolved(run.times, values_at, 0, MOST_TIMES, TOLD)
        states = np.full((len(times), run.states.shape[1]), np.nan)
        states[places] = run.states
        runs.append(replace(run, times=times, states=states, controls=values_at(times)))
    return replace(readings, runs=tuple(runs))


@np.errstate(all="ignore")
def rollout_score(model: SystemModel, readings: Trajectories) -> float:
    """R2 of rollouts, mean over the states that change; -inf if one explodes.

    Parameters
    ----------
    model : SystemModel
    readings : Trajectories
        Rollouts begin at the first time of each run at which all states were read, and as many times before as the
        system has lags. States that nobody reads have the start that fits the run best.

    Raises
    ------
    DataError
        If a run has no such time, or no state changes.
    """
    pairs = [
        _from_start(model.of_run(run_number(model, run.name or str(place))), run, readings)
        for place, run in enumerate(readings.runs)
    ]
    wanted, states = (np.concatenate(each) for each in zip(*pairs, strict=True))
    known = ~np.isnan(wanted)
    if not np.isfinite(states[known]).all():
        return -np.inf
    # Squares of states of any scale stay in float64's range.
    size = np.where(known, np.abs(wanted), 0.0).max(axis=0)
    wanted, states = (each / np.where(size > 0, size, 1.0) for each in (wanted, states))
    means = np.where(known, wanted, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    residuals, spread = ((np.where(known, wanted - each, 0.0) ** 2).sum(axis=0) for each in (states, means))
    shows = spread > 0
    if not shows.any():
        raise DataError("no state changes in x, so there is no score; give longer runs")
    return float(np.mean(1 - residuals[shows] / spread[shows]))


def run_number(model: SystemModel, run: object) -> int:
    """The number of a run by its name; 0 if no constant depends on the run.

    A `DataError` if the constants depend on the run, and none of that name was in the fit.
    """
    if not model.runs:
        return 0
    if str(run) not in model.runs:
        given = "" if run is None else f", not {run}"
        raise DataError(f"constants depend on the run; give run=, one of {listed(model.runs)}{given}")
    return model.runs.index(str(run))


def _from_start(model: SystemModel, run: Trajectory, readings: Trajectories) -> tuple[Floats, Floats]:
    """Readings of a run, and the rollout beside them, from the first time at which the states are known."""
    whole = np.asarray(~np.isnan(run.states).any(axis=1))
    steps = whole_steps(run.times, model.step) if model.is_map else np.arange(float(len(whole)))
    for first in range(model.lags, len(whole)):
        before = slice(first - model.lags, first + 1)
        if whole[before].all() and steps[first] - steps[before.start] == model.lags:
            break
    else:
        lags = f", after {model.lags} such steps," if model.lags else ""
        raise DataError(f"x has no time at which all states were read{lags}; a rollout begins at one")
    rest = slice(first, None)
    own = Trajectory(run.times[rest], run.states[rest], run.controls[rest], run.name)
    if model.unread:
        return own.states, _with_fitted_start(model, own, readings)
    start = model.start_of(run.states[before] if model.lags else run.states[first])
    return own.states, model.simulate(start, own.times, own.controls)[:, : model.n_read]


def _with_fitted_start(model: SystemModel, run: Trajectory, readings: Trajectories) -> Floats:
    """The rollout of a system with unread states whose start fits a run best."""
    form = form_of_system(model, replace(readings, runs=(run,), sigma=None))
    known = Unknowns.free(np.zeros(len(model.constants), np.bool_))
    fit = fit_rollouts(
        model.compiled,
        form.trajectories,
        unknowns=known,
        smooth=[form.smooth.runs[0].states],
        settings=FitSettings(joined=True),
    )
    return fit.states[0][:, : model.n_read]
