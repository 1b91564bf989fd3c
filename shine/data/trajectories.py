"""Trajectories: states read at increasing times, of one run or several, and what their values must be."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from shine.base.errors import DataError, SamplingWarning
from shine.base.typing import Floats
from shine.data.datasets.doubts import doubts_about
from shine.lang.forms.names import listed, shown

LEAST_READINGS = 5
"""Fewest readings a period that show the form of an oscillation."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One run.

    Parameters
    ----------
    times : ndarray of shape (n_times,), float64
        Increasing.
    states : ndarray of shape (n_times, n_states), float64
        NaN where a state was not read.
    controls : ndarray of shape (n_times, n_controls), float64
        Finite; `n_controls` may be 0.
    name : str
        Its label, for messages and displays.
    """

    times: Floats
    states: Floats
    controls: Floats
    name: str = ""


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Runs of one system (`shine.data.trajectory_tables.trajectories` makes them of a user's tables).

    Parameters
    ----------
    runs : tuple of Trajectory
        At least one.
    states, controls : tuple of str
        Names of the columns of each run, identifiers.
    time : str
        Name of the time in formulas.
    sigma : ndarray of shape (n_states,), float64, optional
        Known standard deviation of the readings' noise, in the units of the states.
    headings : tuple of str
        Headings of the states in the user's table; empty if names are the headings.
    """

    runs: tuple[Trajectory, ...]
    states: tuple[str, ...]
    controls: tuple[str, ...] = ()
    time: str = "t"
    sigma: Floats | None = None
    headings: tuple[str, ...] = ()

    @property
    def size(self) -> str:
        """Names and numbers of what was read, for people."""
        times, runs = sum(len(run.times) for run in self.runs), len(self.runs)
        return f"{listed(self.states)} at {times} times" + (f" of {runs} runs" if runs > 1 else "")

    def check(self, continuous: bool = True) -> None:
        """Check what each state shows.

        Parameters
        ----------
        continuous : bool
            Whether the motion goes on between the times.

        Raises
        ------
        DataError
            If a state is read less than three times or never changes, or a gap is longer than its period.

        Warns
        -----
        SamplingWarning
            If a state swings too fast for the times of its readings, or values of it look like missing ones.
        """
        for column, name in enumerate(self.states):
            values = np.concatenate([run.states[:, column] for run in self.runs])
            read = values[~np.isnan(values)]
            if len(read) < 3:
                raise DataError(f"state {shown(name)} has {len(read)} readings; at least 3 are needed, better 20")
            # Share of a state's largest value by which rounding alone may change it.
            if not read.max() - read.min() > 1e-14 * np.abs(read).max():
                raise DataError(
                    f"state {shown(name)} is {read[0]:.6g} at all times; leave it out, or give it as a control"
                )
            for doubt in doubts_about([(f"state {shown(name)}", read)]):
                warnings.warn(doubt, SamplingWarning, stacklevel=5)  # where fit was called
            for run in self.runs if continuous else ():
                _check_sampling(run, column, name)


def _check_sampling(run: Trajectory, column: int, name: str) -> None:
    """Raise a `DataError` for a gap longer than a period; warn if readings are too few a period."""
    read = ~np.isnan(run.states[:, column])
    times, values = run.times[read], run.states[read, column]
    if len(times) < 8:
        return
    steps = times[1:] - times[:-1]
    step = float(np.sort(steps)[len(steps) // 2])
    long = steps > 10 * step  # times the median step from which a stretch without readings is a gap
    # A gap adds to the time, but its swings are not seen.
    period = _period(float(np.where(long, step, steps).sum()), values)
    of_run = f" of run {run.name}" if run.name else ""
    if long.any() and steps.max() > period:
        row = int(np.argmax(steps))
        raise DataError(
            f"state {shown(name)}{of_run} was not read from {times[row]:.6g} to {times[row + 1]:.6g}, longer than its "
            f"period of about {period:.3g}; split the run there, as a list or with run="
        )
    pulse = min(_readings_a_pulse(values), _readings_a_pulse(-values))
    if period < LEAST_READINGS * step:
        what = f"swings with a period of about {period:.3g}, which has {period / step:.2g} readings; {LEAST_READINGS}"
    elif pulse < LEAST_READINGS / 2:
        what = f"has pulses, each with {pulse:.2g} readings beyond half its height; {LEAST_READINGS / 2:.2g}"
    else:
        return
    message = f"state {shown(name)}{of_run} {what} or more show its form: read it more often"
    warnings.warn(message, SamplingWarning, stacklevel=6)  # where fit was called


def _readings_a_pulse(values: Floats) -> float:
    """Readings above half the height of a pulse, mean of all; infinite if there are less than two pulses.

    A pulse goes from the lowest quarter of the range to the highest and back.
    """
    low_end, high_end = float(values.min()), float(values.max())
    if not 0 < high_end - low_end < np.inf:
        return np.inf
    height = (values - low_end) / (high_end - low_end)
    ends = np.flatnonzero((height < 0.25) | (height > 0.75))
    low = height[ends] < 0.25
    # Readings in the lowest quarter with one in the highest between them and the next such reading.
    bottoms = ends[low]
    tops = np.add.reduceat(~low, np.flatnonzero(low))[:-1]
    above = np.add.reduceat(height > 0.5, bottoms)[:-1]
    pulses = above[tops > 0]
    return float(pulses.mean()) if len(pulses) > 1 else np.inf


def _period(duration: float, values: Floats) -> float:
    """The period of a state's swings; infinite if it swings less than twice.

    A swing goes from the lowest third of its range to the highest and back, so that little noise does not count.
    """
    order = np.sort(values)
    low, high = order[len(order) // 10], order[-1 - len(order) // 10]
    lower, upper = low + (high - low) / 3, high - (high - low) / 3
    sides = (values > upper).astype(np.int64) - (values < lower)
    sides = sides[sides != 0]
    turns = int((sides[1:] != sides[:-1]).sum())
    return 2 * duration / turns if turns >= 4 and high > low else np.inf
