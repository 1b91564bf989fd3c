"""Smoothed runs: clean states are interpolated, noisy ones smoothed; the readings say which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import dot
from shine.data.trajectories import Trajectories, Trajectory
from shine.search.dynamics.smoothing.process import MOST_LEARNED, PART_SECONDS, Curve, Process, process_of

FEW = 6
"""Readings of a state in a run below which no noise can be told."""

PARTS = "values", "rates", "bends", "value_errors", "rate_errors", "bend_errors"
"""Of a curve."""


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
    parts = MOST_LEARNED if seconds is None else max(1, int(min(MOST_LEARNED, seconds / (PART_SECONDS * count))))
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
    found = [np.stack([getattr(curve, part) for curve in curves], axis=1) for part in PARTS]
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
        sizes = (size, size / step, size / step / step) * 2
        scaled = {part: getattr(curve, part) * own for part, own in zip(PARTS, sizes, strict=True)}
        curves.append(replace(curve, **scaled))
    if process is None:
        return curves, None
    own = {name: getattr(process, name) * size for name in ("mean", "motion", "noise", "size")}
    return curves, replace(process, **own, scale=process.scale * step, beginning=process.beginning * step)


def _process(runs: Sequence[tuple[Floats, Floats]], sigma: float | None, parts: int) -> Process | None:
    """The process that smooths a state; None if interpolation foretells left-out readings better."""
    # Readings of a state in a run below which no noise can be told.
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


ORDERS = (4, 6, 8, 10, 12, 14)
"""Degrees of the polynomials. A higher one gains where the motion is smooth, and loses at the ends."""

NEIGHBOURS = 2
"""Points on either side that an error is the largest of: two orders may agree at a point by chance."""


def interpolated(times: Floats, readings: Floats, at: Floats) -> Curve:
    """A state and its rate by polynomials through readings.

    At each point, the order is taken whose rate differs least from those of the orders next to it. The error is the
    larger difference, or what a reading nearby differs from the polynomial through its neighbours, over a step.

    Parameters
    ----------
    times, readings : ndarray of shape (n_readings,)
        At least two; increasing times.
    at : ndarray of shape (n_times,)
        Increasing.
    """
    orders = [order for order in (1, 2, *ORDERS) if order < len(times)]
    if len(orders) > 3:
        orders = orders[2:]
    found = [through_nearest(times, readings, at, order) for order in orders]
    parts = [np.stack([each[part] for each in found]) for part in range(3)]
    if len(orders) == 1:
        unknown = np.abs(parts[1][0])
        long = at[-1] - at[0]
        values, rates, bends = (each[0] for each in parts)
        return Curve(values, rates, bends, unknown * long, unknown, np.full(len(at), np.inf), len(times))
    steps = [np.abs(each[1:] - each[:-1]) for each in parts]
    if len(orders) > 2:
        # Where no order is high enough, two may agree by chance, but hardly three.
        steps = [np.maximum(each[1:], each[:-1]) for each in steps]
        parts = [each[:-1] for each in parts]
    errors = [_spread(each) for each in steps]
    best = [errors[part].argmin(axis=0)[None] for part in (1, 1, 2)]
    curves = [np.take_along_axis(each[1:], own, 0)[0] for each, own in zip(parts, best, strict=True)]
    wrong = [np.take_along_axis(each, own, 0)[0] for each, own in zip(errors, best, strict=True)]
    left_out = left_out_errors(times, readings)
    if len(left_out):
        near = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
        missed = _spread(left_out.min(axis=0)[None])[0]
        missed, step = np.maximum(missed[near - 1], missed[near]), times[near] - times[near - 1]
        wrong = [wrong[0], np.maximum(wrong[1], missed / step), np.maximum(wrong[2], missed / step**2)]
    return Curve(curves[0], curves[1], curves[2], wrong[0], wrong[1], wrong[2], len(times))


def left_out_errors(times: Floats, readings: Floats) -> Floats:
    """Errors of the readings as polynomials through their neighbours foretell them, shape (n_orders, n_readings).

    There is none if the readings are too few.
    """
    found = []
    for order in ORDERS:
        if order + 2 > len(times):
            break
        places = _nearest(times, times, order + 2)
        places = places[times[places] != times[:, None]].reshape(len(times), order + 1)
        values = dot(_weights(times, times[places])[0], readings[places])
        found.append(np.abs(values - readings))
    return np.array(found)


def through_nearest(times: Floats, readings: Floats, at: Floats, order: int) -> list[Floats]:
    """Values, slopes and second derivatives of polynomials through the nearest `order` + 1 readings, (n_times,)."""
    places = _nearest(times, at, order + 1)
    return [dot(weights, readings[places]) for weights in _weights(at, times[places])]


def _nearest(times: Floats, at: Floats, count: int) -> Indices:
    """Positions of `count` neighbouring readings around each point, shape (n_times, count)."""
    middle = np.searchsorted(times, at)
    # Of the stretches around a point, the one whose farther end is nearer.
    starts = np.clip(middle[:, None] - count + np.arange(count + 1), 0, len(times) - count)
    reach = np.maximum(at[:, None] - times[starts], times[starts + count - 1] - at[:, None])
    start = np.take_along_axis(starts, reach.argmin(axis=1)[:, None], 1)
    return np.asarray(start + np.arange(count))


def _weights(at: Floats, nodes: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights of the values at nodes, shape (n_times, n_nodes), in the interpolated value and its first two derivatives
    (Fornberg 1988)."""
    count = nodes.shape[1]
    values, slopes, bends = (np.zeros_like(nodes) for _ in range(3))
    values[:, 0] = 1.0
    product, offset = np.ones(len(nodes)), nodes[:, 0] - at
    for i in range(1, count):
        earlier, product_before, product = offset, product, np.ones(len(nodes))
        offset = nodes[:, i] - at
        for j in range(i):
            distance = nodes[:, i] - nodes[:, j]
            product = product * distance
            if j == i - 1:
                ratio = product_before / product
                bends[:, i] = ratio * (2 * slopes[:, i - 1] - earlier * bends[:, i - 1])
                slopes[:, i] = ratio * (values[:, i - 1] - earlier * slopes[:, i - 1])
                values[:, i] = -ratio * earlier * values[:, i - 1]
            bends[:, j] = (offset * bends[:, j] - 2 * slopes[:, j]) / distance
            slopes[:, j] = (offset * slopes[:, j] - values[:, j]) / distance
            values[:, j] = offset * values[:, j] / distance
    return values, slopes, bends


def _spread(errors: Floats) -> Floats:
    """Each error as the largest within `NEIGHBOURS` points, shape (n_orders, n_times)."""
    parts: Sequence[Floats] = [
        errors[:, np.clip(np.arange(errors.shape[1]) + shift, 0, errors.shape[1] - 1)]
        for shift in range(-NEIGHBOURS, NEIGHBOURS + 1)
    ]
    return np.maximum.reduce(parts)
