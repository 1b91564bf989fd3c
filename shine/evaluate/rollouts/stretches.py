"""Readings of trajectories in stretches that are rolled out apart, and the normal equations of a fit to them.

Each stretch has a start of its own, which is fitted; constants are common to all. So long or chaotic runs can be fitted
in short stretches first (multiple shooting), and the equations have the form of an arrow: a block for the constants, a
small one for each start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats, Mask
from shine.compiler.arrays import dot, solved
from shine.compiler.threads import Workers
from shine.evaluate.rollouts.controls import Controls
from shine.evaluate.rollouts.native import equations_size
from shine.evaluate.rollouts.system import CompiledSystem, Word, item_table, places, run_items
from shine.evaluate.rollouts.unknowns import Unknowns
from shine.evaluate.rollouts.work import ITEM

_RIDGE = 1e-12
"""Least damping: unknowns that depend on each other share a step."""


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
    sizes : ndarray of shape (n_times, n_states), or float
        Relative sizes of the readings' errors: residuals are divided by them.
    """

    run: int
    times: Floats
    readings: Floats
    controls: Controls | None
    own: int
    sizes: Floats | float = 1.0


@dataclass(frozen=True, eq=False)
class Equations:
    """Residuals of a fit at some constants and starts, and its normal equations.

    Parameters
    ----------
    loss : float
        Weighted sum of squared residuals; inf if a rollout ends early.
    sums : ndarray of shape (n_states,)
        Sums of the squared residuals of each state, in units of the sizes of the errors and without weights, each
        reading once.
    common : ndarray of shape (n_unknowns, n_unknowns)
    mixed : ndarray of shape (n_stretches, n_unknowns, n_states)
    own : ndarray of shape (n_stretches, n_states, n_states)
        Blocks of the matrix.
    slope : ndarray of shape (n_unknowns,)
    slopes : ndarray of shape (n_stretches, n_states)
        Negative gradient, by unknown constants and starts.
    states : list of ndarray of shape (n_times, n_states)
        The rollouts.
    stiff : bool
        Whether one of them took implicit steps.
    """

    loss: float
    sums: Floats
    common: Floats
    mixed: Floats
    own: Floats
    slope: Floats
    slopes: Floats
    states: list[Floats]
    stiff: bool

    def without(self, held: Mask) -> Equations:
        """The equations of a step that leaves some unknowns where they are."""
        common, mixed = np.where(held[:, None] | held, 0.0, self.common), np.where(held[:, None], 0.0, self.mixed)
        return replace(self, common=common, mixed=mixed, slope=np.where(held, 0.0, self.slope))


class Shooting:
    """Rollouts of some stretches for any constants and starts, in one native call.

    Parameters
    ----------
    system : CompiledSystem
    stretches : sequence of Stretch
    scales : ndarray of shape (n_states,)
        Typical sizes of the states.
    fitted : Unknowns
    tolerance : float
    workers : Workers
    """

    def __init__(
        self,
        system: CompiledSystem,
        stretches: Sequence[Stretch],
        scales: Floats,
        fitted: Unknowns,
        tolerance: float,
        workers: Workers,
    ) -> None:
        self.system, self.stretches, self.fitted = system, tuple(stretches), fitted
        self._workers, self._scales, self.tolerance = workers, np.ascontiguousarray(scales), np.array([tolerance])
        states = len(scales)
        self._unknowns = len(system.constants) + states
        counts = np.array([len(stretch.times) for stretch in stretches])
        firsts = np.concatenate([[0], np.cumsum(counts)])
        self._bounds = firsts[1:-1]
        self._times = np.concatenate([stretch.times for stretch in stretches])
        self._readings = np.ascontiguousarray(np.concatenate([stretch.readings for stretch in stretches]), np.float64)
        ones = np.ones_like(self._readings)
        self._sharpness = ones / np.concatenate(
            [np.broadcast_to(stretch.sizes, stretch.readings.shape) for stretch in stretches]
        )
        self._states = np.empty_like(self._readings)
        self._slopes = np.empty((len(self._times), states * self._unknowns))
        self._progress = np.zeros((len(stretches), 4), np.int64)
        self._found = np.zeros((len(stretches), equations_size(self._unknowns, states)))
        begins = firsts[:-1]
        kinds = [system.words_of_items(stretch.controls) for stretch in stretches]
        # Most steps of a stretch, and further ones for each of its times: a system that needs more does not describe
        # the readings, and must not hold up a search
        words: dict[str, Word] = {
            "times": places(self._times)[begins],
            "count": counts,
            "scales": self._scales.ctypes.data,
            "states_out": places(self._states)[begins],
            "slopes_out": places(self._slopes)[begins],
            "progress": places(self._progress),
            "tolerance": self.tolerance.ctypes.data,
            "most_steps": 2000 + 100 * counts,
            "readings": places(self._readings)[begins],
            "sharpness": places(self._sharpness)[begins],
            "own": np.array([stretch.own for stretch in stretches]),
            "equations": places(self._found),
        }
        steered = {name: np.array([each[name] for each in kinds]) for name in kinds[0]}
        self._items = item_table(len(stretches), system.words[True], {**words, **steered})

    def tighten(self, tolerance: float) -> None:
        """Change the tolerance of the rollouts."""
        self.tolerance[0] = tolerance

    def equations(self, constants: Floats, starts: Floats, weights: Floats) -> Equations:
        """Normal equations at some constants and starts.

        Parameters
        ----------
        constants : ndarray of shape (n_constants,)
        starts : ndarray of shape (n_stretches, n_states)
        weights : ndarray of shape (n_states,)
            Of the squared residuals.
        """
        given = [np.ascontiguousarray(array, np.float64) for array in (constants, starts, weights)]
        addresses = given[0].ctypes.data, places(given[1]), given[2].ctypes.data
        for name, value in zip(("given", "start", "weights"), addresses, strict=True):
            self._items[:, ITEM.index(name)] = value
        self._states.fill(np.nan)
        run_items(self._items, self.system.memory, self._workers)
        states, unknowns, fixed = len(weights), self._unknowns, len(constants)
        matrix = self._found[:, : unknowns * unknowns].reshape(-1, unknowns, unknowns)
        slope, own, every = np.split(self._found[:, unknowns * unknowns :], [unknowns, unknowns + states], axis=1)
        loss = float(np.add.reduce(np.add.reduce(every, axis=0) * weights))
        reached = not self._progress[:, 1].any() and np.isfinite(loss)
        added = self.fitted.added
        return Equations(
            loss if reached else np.inf,
            np.add.reduce(own, axis=0),
            added(added(np.add.reduce(matrix[:, :fixed, :fixed], axis=0), 0), 1),
            added(matrix[:, :fixed, fixed:], 1),
            matrix[:, fixed:, fixed:].copy(),
            added(np.add.reduce(slope[:, :fixed], axis=0), 0),
            slope[:, fixed:].copy(),
            np.split(self._states.copy(), self._bounds),
            bool(self._progress[:, 3].any()),
        )


def step_of(equations: Equations, damping: float) -> tuple[Floats, Floats]:
    """The damped step of constants and starts (Marquardt 1963), by eliminating the starts."""
    scale, scales = _unit(_diagonal(equations.common)), _unit(_diagonal(equations.own))
    common, mixed, own = _scaled(equations, scale, scales)
    slope, slopes = equations.slope / scale, equations.slopes / scales
    # An unknown without influence has a row of ones and does not move.
    parts = solved(own, np.concatenate([mixed, slopes[:, None]], axis=1), damping + _RIDGE)
    reduced = common - _products(parts[:, :-1], mixed)
    right = slope - np.add.reduce(dot(mixed, parts[:, -1:]), axis=0)
    step = solved(reduced, right[None], damping + _RIDGE)[0]
    own_steps = parts[:, -1] - np.add.reduce(parts[:, :-1] * step[:, None], axis=1)
    return step / scale, own_steps / scales


def covariance_of(equations: Equations) -> Floats:
    """Covariance of the constants, shape (n_constants, n_constants), if weights are one over the variances.

    An undetermined constant has an infinite variance.
    """
    scale, scales = _unit(_diagonal(equations.common)), _unit(_diagonal(equations.own))
    common, mixed, own = _scaled(equations, scale, scales)
    count = len(scale)
    reduced = common - _products(solved(own, mixed, _RIDGE), mixed)
    known = (_diagonal(reduced) > 1e-12) & (_diagonal(equations.common) > 0)
    both = known[:, None] & known
    inverse = solved(np.where(both, reduced, np.eye(count)), np.eye(count), 0.0)
    inverse = np.where(both, inverse, np.where(np.eye(count, dtype=bool), np.inf, 0.0))
    return inverse / scale[:, None] / scale


def _products(parts: Floats, mixed: Floats) -> Floats:
    """Inner products of the constants' rows, added up over the stretches."""
    total: Floats = np.add.reduce(dot(parts[:, :, None], mixed[:, None]), axis=0)
    return total


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
