"""The fit of constants and initial states to trajectories, by rollouts.

Levenberg and Marquardt's method with exact sensitivities. A run whose rollout from the guess leaves its readings is cut
into stretches that start anew (multiple shooting; Bock 1983), which are joined again as the constants become better. If
joining costs more than the freedom of the starts explains, as in long chaotic runs, they stay apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from shine.base.typing import Floats
from shine.compiler.threads import ONE_THREAD, Workers
from shine.data.trajectories import Trajectories, Trajectory
from shine.evaluate.rollouts.controls import Controls
from shine.evaluate.rollouts.stretches import Equations, Shooting, Stretch, covariance_of, step_of
from shine.evaluate.rollouts.system import LEAST_TOLERANCE, CompiledSystem
from shine.evaluate.rollouts.unknowns import Unknowns

NEAR = 0.1
"""Misfit of rollouts, in units of the spread of the readings, from which a fit of whole runs may begin."""

SHORTEST = 4
"""Fewest times of a stretch."""

EXACT = 1e-10
"""Misfit in units of the spread of the readings below which nothing can be gained."""

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-12, 1e8


@dataclass(frozen=True, eq=False)
class FitSettings:
    """Settings of a fit.

    Parameters
    ----------
    tolerance : float
        Of the rollouts at the end.
    most_steps : int
        Steps of a fit with fixed weights and stretches.
    enough : float
        A fit ends when a step removes less than this share of the loss.
    joined : bool
        Whether to fit whole runs only, never stretches.
    stop : callable
        ``stop()`` is asked before each step; true ends the fit with what it has.
    sizes : sequence of ndarray of shape (n_times, n_states), optional
        Relative sizes of the readings' errors in each run; all readings of a state are alike by default.
    workers : Workers
    """

    tolerance: float = 1e-8
    most_steps: int = 40
    enough: float = 1e-4
    joined: bool = False
    stop: Callable[[], bool] = lambda: False
    sizes: Sequence[Floats] | None = None
    workers: Workers = ONE_THREAD


@dataclass(frozen=True, eq=False)
class RolloutFit:
    """Constants and initial states that rollouts fit best.

    Parameters
    ----------
    constants : ndarray of shape (n_constants,)
    starts : ndarray of shape (n_stretches, n_states)
        States at the first time of each stretch; of each run, if `joined`.
    sums : ndarray of shape (n_states,)
        Sums of squared residuals, in squared units of the states; inf if no rollout reaches the last time. Residuals
        are divided by the sizes of the errors, if these are known.
    counts : ndarray of shape (n_states,), int
        Readings of each state.
    noise : ndarray of shape (n_states,)
        Standard deviation of the residuals, for as many unknowns as there are.
    covariance : ndarray of shape (n_constants, n_constants)
        Of the constants; 0 for those that are not fitted, infinite variances for those that do not matter.
    states : tuple of ndarray of shape (n_times, n_states)
        The rollouts, a run each.
    joined : bool
        Whether each run is one rollout.
    stiff : bool
        Whether a rollout took implicit steps.
    """

    constants: Floats
    starts: Floats
    sums: Floats
    counts: Floats
    noise: Floats
    covariance: Floats
    states: tuple[Floats, ...]
    joined: bool
    stiff: bool

    @property
    def succeeded(self) -> bool:
        """Whether the rollouts reach the last times."""
        return bool(np.isfinite(self.sums).all())


def fit_rollouts(
    system: CompiledSystem,
    trajectories: Trajectories,
    guess: Floats | None = None,
    *,
    unknowns: Unknowns | None = None,
    smooth: Sequence[Floats] | None = None,
    settings: FitSettings | None = None,
) -> RolloutFit:
    """Fit the constants of a system, and the initial state of each run.

    Parameters
    ----------
    system : CompiledSystem
    trajectories : Trajectories
        With known `sigma` the residuals are weighted by it, else by the noise of each state that the fit leaves.
    guess : ndarray of shape (n_constants,), optional
        Constants to begin with; those of the trees by default.
    unknowns : Unknowns, optional
        By default each constant is one.
    smooth : sequence of ndarray of shape (n_times, n_states), optional
        Estimates of the states of each run, from which stretches start; by default the readings, joined by straight
        lines.
    settings : FitSettings, optional

    Returns
    -------
    RolloutFit
        A fit never fails with an error; `RolloutFit.succeeded` says whether its rollouts reach the end.
    """
    # Sizes near the ends of the range of doubles overflow where they are squared; the loss is then infinite.
    with np.errstate(all="ignore"):
        return _Fit(system, trajectories, guess, unknowns, smooth, settings or FitSettings()).run()


@dataclass
class _Point:
    """Unknowns with their equations."""

    constants: Floats
    starts: Floats
    equations: Equations


class _Fit:
    """A fit in progress."""

    def __init__(
        self,
        system: CompiledSystem,
        trajectories: Trajectories,
        guess: Floats | None,
        unknowns: Unknowns | None,
        smooth: Sequence[Floats] | None,
        settings: FitSettings,
    ) -> None:
        self.system, self.settings, self.sigma = system, settings, trajectories.sigma
        self.runs = trajectories.runs
        first = np.array(system.constants if guess is None else guess, np.float64)
        self.fitted = Unknowns.free(np.ones(len(first), np.bool_)) if unknowns is None else unknowns
        self.guess = self.fitted.moved(first)
        self.smooth = [filled(run.times, run.states) for run in self.runs] if smooth is None else list(smooth)
        self.controls = [system.steered(run.times, run.controls) if len(system.controls) else None for run in self.runs]
        readings = np.concatenate([run.states for run in self.runs])
        self.counts = (~np.isnan(readings)).sum(axis=0)
        self.spread = _spread(readings)
        # A state that nobody read has the size of its estimates.
        sizes = np.where(self.spread > 0, self.spread, _spread(np.concatenate(self.smooth)))
        self.scales = np.where(sizes > 0, sizes, 1.0)

    def run(self) -> RolloutFit:
        """Fit in stretches as short as they must be, join them, and renew the weights."""
        weights = 1 / self.scales**2 if self.sigma is None else 1 / self.sigma**2
        tight = max(self.settings.tolerance, LEAST_TOLERANCE)
        loose = max(tight, 1e-6)
        parts, shooting, point = self._first(weights, loose)
        if parts > 1:
            # Unstable motion blows up errors of the integrator, which the constants would then make up for.
            loose = tight
            parts, shooting, point = self._first(weights, loose)
        point = self._descend(shooting, point, weights)
        while parts > 1:
            parts = (parts + 1) // 2
            wider = self._shooting(parts, loose)
            merged = self._merged(shooting, point, wider, weights)
            merged = self._descend(wider, merged, weights)
            if not self._explains(merged, point):
                break
            shooting, point = wider, merged
        point = self._tightened(shooting, point, weights, tight)
        # Tolerance of rollouts that readings follow to within so many times the usual one: that limits the constants
        limited = self._noise(point) <= 100.0 * tight * self.scales
        if limited.all():
            finer = self._tightened(shooting, point, weights, 1e-12)
            if (self._noise(finer) <= self._noise(point)).all():
                return self._result(shooting, finer)
            shooting.tighten(tight)
        return self._result(shooting, point)

    def _tightened(self, shooting: Shooting, point: _Point, weights: Floats, tolerance: float) -> _Point:
        """The fit by rollouts of a tolerance, with weights renewed from the residuals."""
        shooting.tighten(tolerance)
        point = self._at(shooting, point.constants, point.starts, weights)
        for _ in range(4 if self.sigma is None else 1):  # most fits with weights renewed from the residuals
            point = self._descend(shooting, point, weights)
            if self.sigma is not None:
                break
            renewed = self._weights(point, shooting)
            change = np.abs(renewed / weights - 1).max()
            weights = renewed
            point = self._at(shooting, point.constants, point.starts, weights)
            if change < 0.1 or not np.isfinite(point.equations.loss):
                break
        return point

    def _first(self, weights: Floats, tolerance: float) -> tuple[int, Shooting, _Point]:
        """The fewest stretches a run whose rollouts from the guess stay near the readings; else the shortest."""
        parts = 1
        longest = max(len(run.times) for run in self.runs)
        limit = NEAR**2 * float(np.add.reduce(weights * self.spread**2 * self.counts))
        while True:
            shooting = self._shooting(parts, tolerance)
            starts = np.array([self._smooth_at(stretch) for stretch in shooting.stretches])
            point = self._at(shooting, self.guess, starts, weights)
            if self.settings.joined or point.equations.loss <= limit or longest // (2 * parts) < SHORTEST:
                return parts, shooting, point
            parts *= 2

    def _shooting(self, parts: int, tolerance: float) -> Shooting:
        """The runs in stretches, at most `parts` of each."""
        sizes = self.settings.sizes
        stretches = [
            each if sizes is None else replace(each, sizes=sizes[number][run.times.searchsorted(each.times)])
            for number, (run, controls) in enumerate(zip(self.runs, self.controls, strict=True))
            for each in cut(number, run, controls, parts)
        ]
        return Shooting(self.system, stretches, self.scales, self.fitted, tolerance, self.settings.workers)

    def _smooth_at(self, stretch: Stretch) -> Floats:
        """The estimate of the states at the start of a stretch."""
        place = int(np.searchsorted(self.runs[stretch.run].times, stretch.times[0]))
        return np.asarray(self.smooth[stretch.run][place], np.float64)

    def _merged(self, before: Shooting, point: _Point, after: Shooting, weights: Floats) -> _Point:
        """The unknowns of fewer stretches: their starts are those that were fitted there, or estimates."""
        known = {
            (stretch.run, float(stretch.times[0])): start
            for stretch, start in zip(before.stretches, point.starts, strict=True)
        }
        starts = [
            known.get((stretch.run, float(stretch.times[0])), self._smooth_at(stretch)) for stretch in after.stretches
        ]
        return self._at(after, point.constants, np.array(starts), weights)

    def _at(self, shooting: Shooting, constants: Floats, starts: Floats, weights: Floats) -> _Point:
        return _Point(constants, starts, shooting.equations(constants, starts, weights))

    def _descend(self, shooting: Shooting, point: _Point, weights: Floats) -> _Point:
        """Steps until they gain little."""
        damping, floor = FIRST_DAMPING, EXACT**2 * float(np.add.reduce(weights * self.spread**2 * self.counts))
        for _ in range(self.settings.most_steps):
            loss = point.equations.loss
            if self.settings.stop() or not loss > floor or not np.isfinite(loss):
                break
            held = self.fitted.held(point.constants, point.equations.slope)
            step, starts = step_of(point.equations.without(held) if held.any() else point.equations, damping)
            constants = self.fitted.moved(point.constants, step)
            trial = self._at(shooting, constants, point.starts + starts, weights)
            if trial.equations.loss < loss:
                gained = loss - trial.equations.loss
                point, damping = trial, max(damping / 10, LEAST_DAMPING)
                if gained < self.settings.enough * loss:
                    break
            else:
                damping *= 10
                if damping > MOST_DAMPING:
                    break
        return point

    def _explains(self, merged: _Point, point: _Point) -> bool:
        """Whether fewer stretches fit nearly as well as more."""
        readings, unknowns = int(self.counts.sum()), self.fitted.count
        left = [max(readings - unknowns - each.starts.size, 1) for each in (merged, point)]
        misfits = [each.equations.loss / freedom for each, freedom in zip((merged, point), left, strict=True)]
        floor = EXACT * float(np.add.reduce(self.counts))
        # Factor by which joining stretches may raise the misfit beyond what fewer starts explain.
        return bool(misfits[0] <= 2.0 * misfits[1] + floor or misfits[0] <= 1e-6)

    def _weights(self, point: _Point, shooting: Shooting) -> Floats:
        """One over the variance of the residuals of each state; rollouts are no more exact than their tolerance."""
        least = (10 * shooting.tolerance * self.scales) ** 2
        return 1 / np.maximum(self._noise(point) ** 2, least)

    def _noise(self, point: _Point) -> Floats:
        readings, unknowns = int(self.counts.sum()), self.fitted.count + point.starts.size
        share = max(1 - unknowns / max(readings, 1), 1 / max(readings, 1))
        noise: Floats = np.sqrt(point.equations.sums / (np.maximum(self.counts, 1) * share))
        return noise

    def _result(self, shooting: Shooting, point: _Point) -> RolloutFit:
        equations, runs = point.equations, len(self.runs)
        reached = np.isfinite(equations.loss)
        covariance = covariance_of(equations) if reached else np.zeros((self.fitted.count, self.fitted.count))
        states = [
            np.concatenate(
                [
                    found[: stretch.own]
                    for found, stretch in zip(equations.states, shooting.stretches, strict=True)
                    if stretch.run == run
                ]
            )
            for run in range(runs)
        ]
        sums = equations.sums if reached else np.full(len(self.scales), np.inf)
        noise = self._noise(point) if reached else sums
        joined = len(shooting.stretches) == runs
        every = self.fitted.of_constants(covariance)
        ends = tuple(states), joined, equations.stiff
        return RolloutFit(point.constants, point.starts, sums, self.counts, noise, every, *ends)


def cut(number: int, run: Trajectory, controls: Controls | None, parts: int) -> list[Stretch]:
    """A run in stretches of about the same number of times, at most `parts` and each at least `SHORTEST` long.

    The first time of each stretch is the last one of the stretch before, too.
    """
    times = len(run.times)
    count = max(min(parts, times // SHORTEST), 1)
    bounds = [times * place // count for place in range(count)] + [times]
    return [
        Stretch(
            number,
            run.times[low : min(high + 1, times)],
            run.states[low : min(high + 1, times)],
            controls,
            high - low,
        )
        for low, high in pairwise(bounds)
    ]


def filled(times: Floats, readings: Floats) -> Floats:
    """Readings with straight lines where a state was not read; 0 for a state that never was."""
    result = np.zeros_like(readings)
    for column in range(readings.shape[1]):
        read = ~np.isnan(readings[:, column])
        if read.any():
            result[:, column] = np.interp(times, times[read], readings[read, column])
    return result


def _spread(readings: Floats) -> Floats:
    """Standard deviation of the readings of each state."""
    read = ~np.isnan(readings)
    counts = np.maximum(read.sum(axis=0), 1)
    means = np.add.reduce(np.where(read, readings, 0.0), axis=0) / counts
    off = np.where(read, readings - means, 0.0)
    spread: Floats = np.sqrt(np.add.reduce(off * off, axis=0) / counts)
    return spread
