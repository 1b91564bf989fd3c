"""The form of the equations: rates, or next states and lagged ones; and the equations that are known then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats
from shine.data.trajectories import Trajectories, Trajectory
from shine.lang.parse import parse
from shine.search.dynamics.readings import Readings
from shine.search.dynamics.rows import features_of
from shine.search.dynamics.settings import DynamicsSettings
from shine.search.dynamics.smoothing.smoothing import Smoothed, SmoothedRun, smoothed
from shine.search.dynamics.system import whole_steps
from shine.search.models.model import Model

SMOOTHING = 0.2
"""Most of the seconds that smoothing should take."""


@dataclass(frozen=True, eq=False)
class Form:
    """Trajectories of all states, with what is to be found.

    Parameters
    ----------
    trajectories : Trajectories
        Those of a map have numbers of steps as times, and lagged states as further states.
    smooth : Smoothed
        Of a map, the readings with the next ones as rates.
    known : tuple of Model or None
        The equation of each state; None if it is to be found.
    time : str, optional
        Name of the time, if formulas may use it.
    is_map : bool
    step : float
        Of the times of a map.
    """

    trajectories: Trajectories
    smooth: Smoothed
    known: tuple[Model | None, ...]
    time: str | None
    is_map: bool
    step: float = 1.0

    @cached_property
    def readings(self) -> Readings:
        """The readings that systems are fitted to."""
        return Readings(self.trajectories, self.smooth)


def form_of(trajectories: Trajectories, settings: DynamicsSettings) -> Form:
    """The form that the settings ask for.

    Raises
    ------
    DataError
        If the times of a map are not whole steps apart, or a run is too short for the lags.
    """
    time = None if settings.autonomous else trajectories.time
    if settings.kind == "ode":
        seconds = settings.search.stop.seconds
        smooth = smoothed(trajectories, None if seconds is None else SMOOTHING * seconds)
        return Form(trajectories, smooth, (None,) * len(trajectories.states), time, False)
    step = min(float(np.diff(run.times).min()) for run in trajectories.runs)
    stepped = replace(trajectories, runs=tuple(_stepped(run, step, settings.lags) for run in trajectories.runs))
    names = stepped.states
    before = [names, *(tuple(f"{name}_lag{lag}" for name in names) for lag in range(1, settings.lags + 1))]
    wider = replace(
        stepped, states=tuple(name for part in before for name in part), sigma=_repeated(stepped.sigma, settings.lags)
    )
    features = features_of(wider, settings.autonomous)
    lagged = [Model(parse(name, features), 0.0, 1.0) for part in before[:-1] for name in part]
    known = (*(None for _ in names), *lagged)
    steps = tuple(_as_steps(run) for run in wider.runs)
    # Each reading counts once: lagged states are no further ones.
    wider = replace(wider, runs=tuple(_unread_from(run, len(names)) for run in wider.runs))
    return Form(wider, Smoothed(steps, (None,) * len(wider.states)), known, time, True, step)


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
        state_errors=np.where(read, 0.0, np.inf),
        rate_errors=np.where(np.isnan(following), np.inf, 0.0),
        controls=run.controls,
        independent=np.full(len(column), float(len(read))),
        noise=none,
    )
