"""The readings as systems are fitted to them and judged by them: values, expected errors, and nats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Mask
from shine.data.datasets.dataset import stable_mean, stable_sum
from shine.data.trajectories import Trajectories, Trajectory
from shine.search.description import DescriptionLength
from shine.search.dynamics.smoothing.smoothing import Smoothed, SmoothedRun

SQUARED = 0.5
"""Factor of the logarithm of the mean squared error in the negative log-likelihood of a reading."""


@dataclass(frozen=True, eq=False)
class Readings:
    """Readings of all runs with what is known of their errors."""

    trajectories: Trajectories
    smooth: Smoothed

    @cached_property
    def starts(self) -> Floats:
        """Smoothed initial states, shape (n_runs, n_states)."""
        return np.stack([run.states[0] for run in self.smooth.runs])

    @cached_property
    def deviations(self) -> list[Floats]:
        """Expected error of each reading in each run, shape (n_times, n_states)."""
        # Error of clean readings, as a share of a state's spread: it balances the states.
        least = 1e-6 * np.sqrt(np.where(np.isfinite(self.variances), self.variances, 1.0))
        return [np.where(run.noise > 0, run.noise, least) for run in self.smooth.runs]

    @cached_property
    def sizes(self) -> list[Floats]:
        """Relative expected errors of the readings in each run: their mean square over all readings of a state is 1."""
        squares = [
            stable_sum(np.where(known, own**2, 0.0).T) for own, known in zip(self.deviations, self._known, strict=True)
        ]
        scale = np.sqrt(np.add.reduce(squares) / self.counts)
        return [own / np.where(scale > 0, scale, own[0]) for own in self.deviations]

    @cached_property
    def variances(self) -> Floats:
        """Variance of the readings of each state; inf for a state that is never read."""
        return np.array([stable_mean((own - stable_mean(own)) ** 2) if len(own) else math.inf for own in self._values])

    @cached_property
    def lengths(self) -> tuple[DescriptionLength, ...]:
        """Description lengths of each state's readings, by their mean squared error in units of the expected one."""
        found = []
        for column, values in enumerate(self._values):
            if not len(values):
                found.append(DescriptionLength.with_unknown_noise(1.0, SQUARED, 1.0))
                continue
            parts = [own[known[:, column], column] for own, known in zip(self.deviations, self._known, strict=True)]
            weights = 1 / np.concatenate(parts) ** 2
            mean = stable_mean(values, weights)
            spread = float(stable_sum(weights * (values - mean) ** 2)) / len(values)
            found.append(DescriptionLength.with_unknown_noise(float(len(values)), SQUARED, spread))
        return tuple(found)

    @cached_property
    def counts(self) -> Floats:
        """Number of readings of each state; 1 for a state that is never read."""
        return np.array([max(float(len(values)), 1.0) for values in self._values])

    def nats(self, losses: Floats, sizes: Sequence[int], constants: Sequence[int]) -> float:
        """Length of the description of all readings by equations of some sizes and numbers of constants, given the mean
        squared errors of their rollouts in units of the expected ones.

        Rates of a second order and lagged states are never read: their equations describe the readings of their states.
        """
        read = sum(bool(len(own)) for own in self._values)
        total = 0.0
        for at, (length, loss) in enumerate(zip(self.lengths[:read], losses.tolist(), strict=False)):
            counts = (np.array([sum(each[at::read])]) for each in (sizes, constants))
            # Least mean squared error, in units of the expected one: what rounding leaves of clean readings.
            total += float(length.final(np.array([max(loss, 1e-20)]), *counts)[0])
        return total

    def losses(self, rollouts: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Mean squared errors of rollouts for each state: plain, and in units of the expected errors."""
        plain, relative = [], []
        for rolled, run, deviations, known in zip(
            rollouts, self.trajectories.runs, self.deviations, self._known, strict=True
        ):
            errors = np.where(known, rolled - np.where(known, run.states, 0.0), 0.0).T
            plain.append(stable_sum(errors**2))
            relative.append(stable_sum((errors / deviations.T) ** 2))
        return np.add.reduce(plain) / self.counts, np.add.reduce(relative) / self.counts

    @property
    def integrals(self) -> list[tuple[int, int]]:
        """Pairs of states of which the first follows the integral of the second within the errors of its readings.

        Noise hides the shape of a rate that is derived from readings; it averages out in an integral.
        """
        found = []
        areas = [_areas(run) for run in self.smooth.runs]
        for at, rate in permutations([at for at, own in enumerate(self._values) if len(own)], 2):
            rollouts = []
            for area, own, deviations, (given, known) in zip(
                areas, self.smooth.runs, self.deviations, self._pairs, strict=True
            ):
                rest = np.where(known[:, at], given.states[:, at], own.states[:, at]) - area[:, rate]
                rollouts.append(own.states.copy())
                rollouts[-1][:, at] = area[:, rate] + stable_mean(rest, known[:, at] / deviations[:, at] ** 2)
            # Mean squared error of an integral, in units of the readings' expected one, that may be noise.
            if self.losses(rollouts)[1][at] <= 1.5:
                found.append((at, rate))
        return found

    @cached_property
    def _known(self) -> list[Mask]:
        return [~np.isnan(run.states) for run in self.trajectories.runs]

    @cached_property
    def _values(self) -> list[Floats]:
        return [
            np.concatenate([run.states[known[:, column], column] for run, known in self._pairs])
            for column in range(len(self.trajectories.states))
        ]

    @property
    def _pairs(self) -> list[tuple[Trajectory, Mask]]:
        return list(zip(self.trajectories.runs, self._known, strict=True))


def _areas(run: SmoothedRun) -> Floats:
    """Integral of each state up to each time, by cubics with the states' values and rates."""
    steps = np.diff(run.times)[:, None]
    parts = steps / 2 * (run.states[1:] + run.states[:-1]) - steps**2 / 12 * np.diff(run.rates, axis=0)
    found: Floats = np.concatenate([np.zeros((1, run.states.shape[1])), np.add.accumulate(parts)])
    return found
