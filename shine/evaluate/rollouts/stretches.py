"""Readings of trajectories in stretches that are rolled out apart, and the normal equations of a fit to them.

Each stretch has a start of its own, which is fitted; constants are common to all. So long or chaotic runs can be fitted
in short stretches first (multiple shooting), and the equations have the form of an arrow: a block for the constants, a
small one for each start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Mask
from shine.compiler.arrays.functions import inner, solved
from shine.compiler.threads import ONE_THREAD, Workers
from shine.evaluate.rollouts.controls import Controls
from shine.evaluate.rollouts.system import CompiledSystem, Request, roll


@dataclass(frozen=True, eq=False)
class Stretch:
    """Readings that are rolled out from one start.

    Parameters
    ----------
    run : int
        Number of its run.
    times : ndarray of shape (n_times,)
    readings : ndarray of shape (n_times, n_states)
        NaN where a state was not read.
    controls : Controls or None
    own : int
        Number of times before the first one of the next stretch, which is the last one here too.
    """

    run: int
    times: Floats
    readings: Floats
    controls: Controls | None
    own: int


@dataclass(frozen=True, eq=False)
class Equations:
    """Residuals of a fit at some constants and starts, and its normal equations.

    Parameters
    ----------
    loss : float
        Weighted sum of squared residuals; inf if a rollout ends early.
    sums : ndarray of shape (n_states,)
        Sums of the squared residuals of each state, without weights, each reading once.
    common : ndarray of shape (n_constants, n_constants)
    mixed : ndarray of shape (n_stretches, n_constants, n_states)
    own : ndarray of shape (n_stretches, n_states, n_states)
        Blocks of the matrix.
    slope : ndarray of shape (n_constants,)
    slopes : ndarray of shape (n_stretches, n_states)
        Negative gradient, by constants and starts.
    states : list of ndarray of shape (n_times, n_states)
        The rollouts.
    """

    loss: float
    sums: Floats
    common: Floats
    mixed: Floats
    own: Floats
    slope: Floats
    slopes: Floats
    states: list[Floats]


@dataclass(frozen=True, eq=False)
class Shooting:
    """Rollouts of some stretches for any constants and starts.

    Parameters
    ----------
    system : CompiledSystem
    stretches : sequence of Stretch
    scales : ndarray of shape (n_states,)
        Typical sizes of the states.
    free : ndarray of shape (n_constants,), bool
        Constants that are fitted.
    tolerance : float
    workers : Workers
    """

    system: CompiledSystem
    stretches: Sequence[Stretch]
    scales: Floats
    free: Mask
    tolerance: float
    workers: Workers = ONE_THREAD

    def equations(self, constants: Floats, starts: Floats, weights: Floats) -> Equations:
        """Normal equations at some constants and starts.

        Parameters
        ----------
        constants : ndarray of shape (n_constants,)
        starts : ndarray of shape (n_stretches, n_states)
        weights : ndarray of shape (n_states,)
            Of the squared residuals.
        """
        requests = [
            Request(self.system, start[None], constants[None], stretch.times, self.scales, stretch.controls)
            for start, stretch in zip(starts, self.stretches, strict=True)
        ]
        rolled = roll(requests, sensitivities=True, tolerance=self.tolerance, workers=self.workers)
        count, states = int(self.free.sum()), len(weights)
        reached = all(not found.status[0] for found in rolled)
        blocks, loss, sums = np.zeros((len(requests), count + states, count + states + 1)), 0.0, np.zeros(states)
        for block, found, stretch in zip(blocks, rolled, self.stretches, strict=True):
            rest = stretch.readings - found.states[0]
            read = ~np.isnan(stretch.readings)
            rest = np.where(read, rest, 0.0)
            squares = rest * rest
            sums += np.add.reduce(squares[: stretch.own], axis=0)
            loss += float(np.add.reduce(np.add.reduce(squares, axis=0) * weights))
            if reached:
                assert found.by_constants is not None and found.by_start is not None
                slopes = np.concatenate([found.by_constants[0][..., self.free], found.by_start[0]], axis=-1)
                roots = np.where(read, np.sqrt(weights), 0.0)
                # A derivative that does not exist directs nothing.
                slopes = np.where(np.isfinite(slopes), slopes, 0.0) * roots[..., None]
                columns = slopes.reshape(-1, count + states).T
                rows = np.concatenate([columns, (rest * roots).reshape(1, -1)])
                block[:] = inner(columns, rows)
        return Equations(
            loss if reached and np.isfinite(loss) else np.inf,
            sums,
            np.add.reduce(blocks[:, :count, :count], axis=0),
            blocks[:, :count, count:-1],
            blocks[:, count:, count:-1],
            np.add.reduce(blocks[:, :count, -1], axis=0),
            blocks[:, count:, -1],
            [found.states[0] for found in rolled],
        )


def step_of(equations: Equations, damping: float) -> tuple[Floats, Floats]:
    """The damped step of constants and starts (Marquardt 1963), by eliminating the starts."""
    scale, scales = _unit(_diagonal(equations.common)), _unit(_diagonal(equations.own))
    common, mixed, own = _scaled(equations, scale, scales)
    slope, slopes = equations.slope / scale, equations.slopes / scales
    states = own.shape[-1]
    reduced, right, parts = common + damping * np.eye(len(scale)), slope, []
    for block, matrix, known in zip(mixed, own, slopes, strict=True):
        part = solved(matrix + 1e-12 * np.eye(states), np.concatenate([block, known[None]]), damping)
        parts.append(part)
        reduced = reduced - inner(part[:-1], block)
        right = right - inner(block, part[-1:])[:, 0]
    step = solved(reduced, right[None], 1e-12)[0] if len(scale) else np.zeros(0)
    own_steps = [part[-1] - np.add.reduce(part[:-1] * step[:, None], axis=0) for part in parts]
    return step / scale, np.array(own_steps) / scales


def covariance_of(equations: Equations) -> Floats:
    """Covariance of the constants, shape (n_constants, n_constants), if weights are one over the variances.

    An undetermined constant has an infinite variance.
    """
    scale, scales = _unit(_diagonal(equations.common)), _unit(_diagonal(equations.own))
    common, mixed, own = _scaled(equations, scale, scales)
    count, states = len(scale), own.shape[-1]
    reduced = common
    for block, matrix in zip(mixed, own, strict=True):
        reduced = reduced - inner(solved(matrix + 1e-12 * np.eye(states), block, 0.0), block)
    if not count:
        return np.zeros((0, 0))
    left = _diagonal(reduced)
    known = (left > 1e-12) & (_diagonal(equations.common) > 0)
    inverse = solved(np.where(known[:, None] & known, reduced, np.eye(count)), np.eye(count), 0.0)
    inverse = np.where(known[:, None] & known, inverse, np.where(np.eye(count, dtype=bool), np.inf, 0.0))
    return inverse / scale[:, None] / scale


def _scaled(equations: Equations, scale: Floats, scales: Floats) -> tuple[Floats, Floats, Floats]:
    """The blocks of the matrix, scaled to a diagonal of ones."""
    common = np.where(np.eye(len(scale), dtype=bool), 1.0, equations.common / scale[:, None] / scale)
    own = np.where(np.eye(scales.shape[1], dtype=bool), 1.0, equations.own / scales[:, :, None] / scales[:, None, :])
    return common, equations.mixed / scale[:, None] / scales[:, None, :], own


def _diagonal(matrices: Floats) -> Floats:
    return np.diagonal(matrices, axis1=-2, axis2=-1)


def _unit(squares: Floats) -> Floats:
    """Roots of a diagonal; 1 for what has no influence."""
    return np.sqrt(np.where((squares > 0) & np.isfinite(squares), squares, 1.0))
