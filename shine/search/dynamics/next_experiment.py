"""The next experiment: the initial state from which systems of equal evidence part most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.compiler.arrays import exp
from shine.lang.forms.names import listed, shown, value_text
from shine.search.dynamics.system import Controls, SystemModel

STARTS = 128
"""Initial states that are tried first, beside the corners of the box."""

MOST_CORNERS = 32

REACHES, NEAR_ONE = (0.1, 0.03, 0.01), 24
"""Steps of the refinement, as shares of the box, and the states tried around the best one in each."""

LEAST_NOISE = 1e-3
"""Least error of a new reading, as a share of a state's spread: clean data promise no cleaner experiment."""

Box = Mapping[str, float | tuple[float, float]]


@dataclass(frozen=True, eq=False, repr=False)
class NextExperiment:
    """An initial state, and how far apart the systems move from it.

    Parameters
    ----------
    start : dict of str to float
        The initial value of each state.
    times : ndarray of shape (n_times,)
    rivals : tuple of SystemModel
        The systems that are told apart, the most probable first.
    weights : ndarray of shape (n_rivals,)
        Their probabilities by the trajectories so far.
    trajectories : ndarray of shape (n_rivals, n_times, n_states)
        Their rollouts; NaN from the time on at which one explodes.
    distance : float
        Root mean square distance of two rollouts in units of the noise, mean over the pairs by their probabilities.
    before : float
        The same from the initial states of the data: what these can tell.
    """

    start: dict[str, float]
    times: Floats
    rivals: tuple[SystemModel, ...]
    weights: Floats
    trajectories: Floats
    distance: float
    before: float

    @property
    def sentence(self) -> str:
        """An experiment, and what it tells."""
        where = ", ".join(f"{name} = {value_text(float(f'{value:.3g}'))}" for name, value in self.start.items())
        count = len(self.rivals)
        return (
            f"start at {where}: from there {count} systems part by {self.distance:.2g} times the noise; "
            f"from the initial states so far by {self.before:.2g}"
        )

    def __repr__(self) -> str:
        pairs = zip(self.weights.tolist(), self.rivals, strict=True)
        systems = (f"{weight:.1%} " + "; ".join(rival.lines()) for weight, rival in pairs)
        return "\n".join([self.sentence, *systems])


def next_experiment(
    rivals: Sequence[SystemModel], box: Box, times: Floats, spread: Floats, u: Controls = None, seed: int = 0
) -> NextExperiment:
    """Find the initial state from which rollouts part most.

    Parameters
    ----------
    rivals : sequence of SystemModel
        At least two, the most probable first.
    box : mapping of str to float or (float, float)
        Value or limits of each state; a state that is not named starts as in the data.
    times : ndarray of shape (n_times,)
        At which the new experiment is read.
    spread : ndarray of shape (n_states,)
        Standard deviation of the readings so far.
    u : array of shape (n_times, n_controls) or function of the time, optional
        Controls of the new experiment.
    seed : int

    Raises
    ------
    DataError
        If the box names something else than states, or limits are not finite or in the wrong order, or there is one
        system only.
    """
    if len(rivals) < 2:
        raise DataError("the data leave one system; there is no other to tell it from")
    best = rivals[0]
    low, high = _limits(best, box)
    lengths = np.array([rival.nats for rival in rivals])
    weights = exp(np.where(np.isfinite(lengths), lengths[0] - lengths, -50.0))
    weights = weights / np.add.reduce(weights)
    scale = np.maximum(best.noise, LEAST_NOISE * spread)
    rng = np.random.default_rng(seed)

    def distances(starts: Floats) -> Floats:
        return _distances(rolled_from(starts), weights, spread, scale)

    def rolled_from(starts: Floats) -> Floats:
        return np.stack([rival.simulate(starts, times, u) for rival in rivals])

    corners = np.array(np.meshgrid(*([0.0, 1.0] for _ in best.states))).reshape(len(best.states), -1).T[:MOST_CORNERS]
    shares = np.concatenate([corners, rng.random((STARTS, len(best.states)))])
    found = distances(low + shares * (high - low))
    top, furthest = shares[found.argmax()], float(found.max())
    for reach in REACHES:
        around = np.clip(top + reach * rng.standard_normal((NEAR_ONE, len(top))), 0.0, 1.0)
        found = distances(low + around * (high - low))
        if found.max() > furthest:
            top, furthest = around[found.argmax()], float(found.max())
    start = low + top * (high - low)
    before = float(distances(best.starts).max())
    named = dict(zip(best.states, start.tolist(), strict=True))
    return NextExperiment(named, times, tuple(rivals), weights, rolled_from(start[None])[:, 0], furthest, before)


def _limits(system: SystemModel, box: Box) -> tuple[Floats, Floats]:
    """Lowest and highest initial value of each state."""
    strangers = [name for name in box if name not in system.states]
    if strangers:
        raise DataError(f"the box names {shown(strangers[0])}; the states are {listed(system.states)}")
    low, high = system.starts.min(axis=0), system.starts.max(axis=0)
    for column, name in enumerate(system.states):
        if name in box:
            ends = np.array(box[name], np.float64).reshape(-1)
            if len(ends) not in (1, 2) or not np.isfinite(ends).all() or ends[0] > ends[-1]:
                raise DataError(f"the box has {box[name]!r} for {shown(name)}; give a value, or (lowest, highest)")
            low[column], high[column] = ends[0], ends[-1]
    return low, high


def _distances(rolled: Floats, weights: Floats, spread: Floats, scale: Floats) -> Floats:
    """Mean distance of rollouts, shape (n_rivals, n_starts, n_times, n_states), from each start."""
    total, share = np.zeros(rolled.shape[1]), 0.0
    for first in range(len(rolled)):
        for second in range(first):
            apart = rolled[first] - rolled[second]
            ended = np.isnan(rolled[first]) != np.isnan(rolled[second])
            # A system that explodes is as far away as the readings are wide; two of them tell nothing.
            apart = np.where(ended, spread, np.where(np.isnan(apart), 0.0, apart))
            squares = np.minimum((apart / scale) ** 2, (10 * spread / scale) ** 2)
            weight = float(weights[first] * weights[second])
            total += weight * np.sqrt(np.add.reduce(np.add.reduce(squares, axis=-1), axis=-1) / squares[0].size)
            share += weight
    return total / share if share > 0 else total
