"""The choice among near systems, checked on runs or stretches kept back from a fit.

Of the systems whose description is at most `NEAR` nats longer than the shortest one, the candidates, each is fitted
once more without a part of the readings and rolled out to them: one run of at least `MOST_RUNS_CUT` + 1 in turn, or the
last quarter of each run. A candidate replaces the shortest description if its squared error there is less than
`CLEARLY` of that of the shortest, and of those the one with the least error does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import exp, log
from shine.data.trajectories import Trajectory
from shine.evaluate.rollouts.fitting import FitSettings, fit_rollouts
from shine.evaluate.rollouts.unknowns import Unknowns
from shine.search.dynamics.forms import Form
from shine.search.dynamics.result import NEAR
from shine.search.dynamics.system import SystemModel

CLEARLY = 0.5
"""Share of the shortest description's error on what was kept back below which another system replaces it."""

MOST_RUNS_CUT = 2
"""Most runs of which each loses its last quarter; of more, whole runs are kept back in turn."""

FOLDS, MOST_CANDIDATES = 4, 8
"""Most runs that are kept back in turn, and most systems that are compared."""

LEAST_KEPT, LEAST_SHARE = 5, 3
"""Fewest times kept back of a run, and fewest readings for each constant that is fitted to the rest."""

EXACT = 1e-12
"""Squared error, as a share of the variance, that rounding and the integration leave."""


def confirmed(systems: Iterable[SystemModel], form: Form, stop: Callable[[], bool]) -> SystemModel:
    """The system to recommend (see this module).

    Parameters
    ----------
    systems : iterable of SystemModel
        At least one.
    form : Form
        With the readings that they were fitted to.
    stop : callable
        Says whether the time is over; the shortest description is taken then.
    """
    ordered = sorted(systems, key=lambda each: each.nats)
    best = ordered[0]
    near = [each for each in ordered if each.nats <= best.nats + NEAR][:MOST_CANDIDATES]
    if len(near) < 2 or not math.isfinite(best.nats) or best.error < EXACT or stop():
        return best
    errors: list[float] = []
    for system in near:
        errors.append(kept_back_error(system, form, stop))
        if stop() or not math.isfinite(errors[0]):
            return best
    least = int(np.argmin(errors))
    return near[least] if errors[least] < CLEARLY * errors[0] else best


def kept_back_error(system: SystemModel, form: Form, stop: Callable[[], bool] = lambda: False) -> float:
    """Squared error of rollouts on the readings kept back, as a share of the variance, geometric mean over the states.

    It is infinite if a rollout explodes, or nothing can be kept back.
    """
    runs = form.trajectories.runs
    if len(runs) > MOST_RUNS_CUT and not form.runs:
        numbers = np.unique(np.linspace(0, len(runs) - 1, FOLDS).astype(int)).tolist()
        parts = [_of_a_run(system, form, number, stop) for number in numbers]
    else:
        parts = [_of_ends(system, form, stop)]
    sums, counts = (np.add.reduce(each) for each in zip(*parts, strict=True))
    read = counts > 0
    if not read.any() or not np.isfinite(sums[read]).all():
        return math.inf
    shares = sums[read] / counts[read] / system.variances[read] + EXACT
    return float(exp(np.add.reduce(log(shares)) / len(shares)))


def _of_a_run(system: SystemModel, form: Form, number: int, stop: Callable[[], bool]) -> tuple[Floats, Floats]:
    """Sums of squared errors of each state in a run, whose start alone is fitted to it, and the counts."""
    others = [place for place in range(len(form.trajectories.runs)) if place != number]
    fit = _fit(system, form, others, form.trajectories.runs, FitSettings(stop=stop, sizes=None))
    if fit is None:
        return _nothing(system)
    own = form.trajectories.runs[number]
    alone = fit_rollouts(
        system.compiled,
        replace(form.trajectories, runs=(own,)),
        fit[0],
        unknowns=Unknowns.free(np.zeros(len(fit[0]), np.bool_)),
        smooth=[form.smooth.runs[number].states],
        settings=FitSettings(joined=True, stop=stop),
    )
    return _errors(own.states, alone.states[0])


def _of_ends(system: SystemModel, form: Form, stop: Callable[[], bool]) -> tuple[Floats, Floats]:
    """The same in the last quarters of all runs."""
    runs = form.trajectories.runs
    cuts = [len(run.times) - len(run.times) // 4 for run in runs]
    if any(len(run.times) - cut < LEAST_KEPT for run, cut in zip(runs, cuts, strict=True)):
        return _nothing(system)
    first = [
        Trajectory(run.times[:cut], run.states[:cut], run.controls[:cut], run.name)
        for run, cut in zip(runs, cuts, strict=True)
    ]
    fit = _fit(system, form, range(len(runs)), first, FitSettings(joined=True, stop=stop))
    if fit is None:
        return _nothing(system)
    constants, starts = fit
    parts = []
    for run, cut, start in zip(runs, cuts, starts, strict=True):
        controls = run.controls if len(system.controls) else None
        found = system.compiled.rollout(start, run.times, constants, controls).states
        parts.append(_errors(run.states[cut:], found[cut:]))
    sums, counts = (np.add.reduce(each) for each in zip(*parts, strict=True))
    return sums, counts


def _fit(
    system: SystemModel, form: Form, numbers: Iterable[int], runs: Sequence[Trajectory], settings: FitSettings
) -> tuple[Floats, Floats] | None:
    """Constants and starts by some of the runs; None if these are too few or the fit fails."""
    chosen = list(numbers)
    own = [runs[number] for number in chosen]
    readings = sum(int((~np.isnan(run.states)).sum()) for run in own)
    if readings < LEAST_SHARE * len(system.constants):
        return None
    smooth = [form.smooth.runs[number].states[: len(run.times)] for number, run in zip(chosen, own, strict=True)]
    sizes = [form.readings.sizes[number][: len(run.times)] for number, run in zip(chosen, own, strict=True)]
    trajectories = replace(form.trajectories, runs=tuple(own))
    own_settings = replace(settings, sizes=sizes)
    fit = fit_rollouts(system.compiled, trajectories, unknowns=system.unknowns, smooth=smooth, settings=own_settings)
    return (fit.constants, fit.starts) if fit.succeeded else None


def _errors(readings: Floats, found: Floats) -> tuple[Floats, Floats]:
    known = ~np.isnan(readings)
    wrong = np.where(known, np.where(known, readings, 0.0) - found, 0.0)
    # A rollout that ended has no error that is a number.
    return np.add.reduce(np.where(np.isnan(wrong), np.inf, wrong * wrong)), np.add.reduce(known.astype(float))


def _nothing(system: SystemModel) -> tuple[Floats, Floats]:
    count = len(system.states)
    return np.full(count, np.inf), np.ones(count)
