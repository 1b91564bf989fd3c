"""Smoothed runs: clean states are interpolated, noisy ones smoothed; the readings say which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats
from shine.data.trajectories import Trajectories, Trajectory
from shine.search.dynamics.smoothing.curve import Curve
from shine.search.dynamics.smoothing.interpolation import interpolated, left_out_errors
from shine.search.dynamics.smoothing.process import MOST_LEARNED, PART_SECONDS, Process, process_of

FEW = 6
"""Readings of a state in a run below which no noise can be told."""


@dataclass(frozen=True, eq=False)
class SmoothedRun:
    """A run with all states at all its times, and their rates.

    Parameters
    ----------
    times : ndarray of shape (n_times,)
    states, rates, bends : ndarray of shape (n_times, n_states)
        States, their rates, and the rates of these.
    state_errors, rate_errors, bend_errors : ndarray of shape (n_times, n_states)
        Standard errors.
    controls : ndarray of shape (n_times, n_controls)
    independent : ndarray of shape (n_states,)
        Number of independent rates of each state.
    noise : ndarray of shape (n_times, n_states)
        Standard deviation of each reading's noise; 0 where states are interpolated.
    """

    times: Floats
    states: Floats
    rates: Floats
    bends: Floats
    state_errors: Floats
    rate_errors: Floats
    bend_errors: Floats
    controls: Floats
    independent: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class Smoothed:
    """All runs, smoothed.

    Parameters
    ----------
    runs : tuple of SmoothedRun
    processes : tuple of Process or None
        What smoothed each state; None if it was interpolated.
    """

    runs: tuple[SmoothedRun, ...]
    processes: tuple[Process | None, ...]


def smoothed(trajectories: Trajectories, seconds: float | None = None) -> Smoothed:
    """Smooth each state of all runs, in about the given seconds: with few, parts of the readings tell the scales."""
    sigma, count = trajectories.sigma, len(trajectories.states)
    parts = MOST_LEARNED if seconds is None else max(1, min(MOST_LEARNED, int(seconds / (PART_SECONDS * count))))
    states = [
        _state(trajectories.runs, column, None if sigma is None else float(sigma[column]), parts)
        for column in range(len(trajectories.states))
    ]
    processes = tuple(process for _, process in states)
    runs = tuple(
        _run(run, [curves[number] for curves, _ in states], processes) for number, run in enumerate(trajectories.runs)
    )
    return Smoothed(runs, processes)


def _run(run: Trajectory, curves: Sequence[Curve], processes: Sequence[Process | None]) -> SmoothedRun:
    parts = ("values", "rates", "bends", "value_errors", "rate_errors", "bend_errors")
    found = [np.stack([getattr(curve, part) for curve in curves], axis=1) for part in parts]
    independent = np.array([curve.independent for curve in curves])
    noise = [
        np.zeros(len(run.times)) if process is None else process.noise_at(values)
        for process, values in zip(processes, found[0].T, strict=True)
    ]
    own = {"controls": run.controls, "independent": independent, "noise": np.stack(noise, axis=1)}
    return SmoothedRun(run.times, *found, **own)


def _state(
    runs: Sequence[Trajectory], column: int, sigma: float | None, parts: int
) -> tuple[list[Curve], Process | None]:
    """The curves of a state in all runs, and the process that smoothed it; None if it was interpolated."""
    # Powers of two: no digit is lost, and squares stay in float64's range.
    read = [np.flatnonzero(~np.isnan(run.states[:, column])) for run in runs]
    readings = [run.states[own, column] for run, own in zip(runs, read, strict=True)]
    known = np.concatenate(readings)
    size = float(np.ldexp(1.0, int(np.frexp(np.abs(known).max(initial=0.0) or 1.0)[1])))
    steps = np.concatenate([np.diff(run.times[own]) for run, own in zip(runs, read, strict=True)])
    step = float(np.ldexp(1.0, int(np.frexp(np.sort(steps)[len(steps) // 2] if len(steps) else 1.0)[1])))
    origins = [float(run.times[0]) for run in runs]
    plain = [
        ((run.times[own] - origin) / step, values / size)
        for run, own, values, origin in zip(runs, read, readings, origins, strict=True)
    ]
    ats = [(run.times - origin) / step for run, origin in zip(runs, origins, strict=True)]
    process = _process(plain, None if sigma is None else sigma / size, parts)
    curves = []
    for (times, values), at in zip(plain, ats, strict=True):
        if not len(times):
            nothing, unknown = np.zeros(len(at)), np.full(len(at), np.inf)
            curve = Curve(nothing, nothing, nothing, unknown, unknown, unknown, 0.0)
        elif len(times) == 1:
            flat, nothing, unknown = np.full(len(at), values[0]), np.zeros(len(at)), np.full(len(at), np.inf)
            curve = Curve(flat, nothing, nothing, np.where(at == times[0], 0.0, np.inf), unknown, unknown, 0.0)
        elif process is None:
            curve = interpolated(times, values, at)
        else:
            curve = process.curve(times, values, at)
        rate, bend = size / step, size / step / step
        curves.append(
            Curve(
                curve.values * size,
                curve.rates * rate,
                curve.bends * bend,
                curve.value_errors * size,
                curve.rate_errors * rate,
                curve.bend_errors * bend,
                curve.independent,
            )
        )
    if process is None:
        return curves, None
    own = Process(
        process.mean * size,
        process.scale * step,
        process.motion * size,
        process.noise * size,
        process.grows,
        process.size * size,
        process.beginning * step,
    )
    return curves, own


def _process(runs: Sequence[tuple[Floats, Floats]], sigma: float | None, parts: int) -> Process | None:
    """The process that smooths a state; None if interpolation foretells left-out readings better."""
    usable = [(times, values) for times, values in runs if len(times) >= FEW]
    if not usable:
        return None
    process = process_of(usable, sigma, parts)
    clean = [left_out_errors(times, values) for times, values in usable]
    orders = min(map(len, clean))
    if not orders:
        return process
    noisy = np.concatenate([process.left_out_errors(times, values) for times, values in usable])
    foretold = _median(np.concatenate([errors[:orders] for errors in clean], axis=1))
    return None if foretold.min() < float(_median(noisy)) else process


def _median(values: Floats) -> Floats:
    """The middle one along the last axis; of an even number, the upper one."""
    return np.sort(values, axis=-1)[..., values.shape[-1] // 2]
