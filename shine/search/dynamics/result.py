"""The result of a search for equations of motion: a front of systems, and the equations found for each state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from shine.base.typing import Floats
from shine.search.dynamics.next_experiment import Box, NextExperiment, next_experiment
from shine.search.dynamics.system import Controls, SystemModel
from shine.search.models.figures import loss_text
from shine.search.models.front import STOPS, Front

NEAR = 6.0
"""Nats up to which a longer description counts as a rival: odds of 400 to 1."""

MOST_RIVALS = 6


@dataclass(frozen=True, eq=False, repr=False)
class SystemFront(Sequence[SystemModel]):
    """Systems by rising complexity and falling error of their rollouts.

    Parameters
    ----------
    models : tuple of SystemModel
    best_index : int
        Position of the recommended system.
    reason : str
        Why it is recommended.
    """

    models: tuple[SystemModel, ...]
    best_index: int
    reason: str = ""

    @overload
    def __getitem__(self, index: int) -> SystemModel: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[SystemModel, ...]: ...
    def __getitem__(self, index: int | slice) -> SystemModel | tuple[SystemModel, ...]:
        return self.models[index]

    def __len__(self) -> int:
        return len(self.models)

    @property
    def best(self) -> SystemModel:
        """The recommended system."""
        return self.models[self.best_index]

    def __repr__(self) -> str:
        lines = [f"{'':3} {'':>3} {'complexity':>10}  {'error':<10}  system"]
        for at, model in enumerate(self.models):
            mark = ">>>" if at == self.best_index else ""
            own = model.lines()
            lines.append(f"{mark:3} {at:>3} {model.complexity:>10}  {loss_text(model.error):<10}  {own[0]}")
            lines += [f"{'':30}  {line}" for line in own[1:]]
        return "\n".join([*lines, *([f">>> {self.reason}"] if self.reason else [])])


@dataclass(frozen=True, eq=False, repr=False)
class DynamicsResult:
    """What a search for equations of motion found.

    Parameters
    ----------
    front : SystemFront
    equations : tuple of Front
        The formulas found for the rate of each state, before any rollout.
    seconds : float
    seed : int
    stopped_by : str
        As of `shine.search.models.front.Result`.
    systems : int
        Number of systems that were fitted to the trajectories.
    rivals : tuple of SystemModel
        The recommended system and those that the trajectories hardly tell from it (see `NEAR`), or else the best
        other one; the shortest description first.
    ranges : tuple of two ndarray of shape (n_states,)
        Lowest and highest reading of each state.
    duration : float
        Of the longest run.
    """

    front: SystemFront
    equations: tuple[Front, ...]
    seconds: float
    seed: int
    stopped_by: str
    systems: int
    rivals: tuple[SystemModel, ...]
    ranges: tuple[Floats, Floats]
    duration: float

    @property
    def chosen(self) -> SystemModel:
        """The recommended system."""
        return self.front.best

    def next_experiment(self, box: Box | None = None, times: Any = None, u: Controls = None) -> NextExperiment:
        """The initial state, of a box, from which the rivals part most, by simulation.

        Parameters
        ----------
        box : mapping of str to float or (float, float), optional
            Value or limits of the initial value of each state. By default, from twice the lowest reading, or 0 if
            that is positive, to twice the highest, or 0 if that is negative.
        times : array-like of shape (n_times,), optional
            At which the new experiment is read; by default 101 times as long as the longest run, or its
            steps.
        u : array-like of shape (n_times, n_controls) or function of the time, optional
            Controls of the new experiment.

        Raises
        ------
        DataError
            If the box is invalid, or the data leave one system only.
        """
        wide = {
            name: (2 * min(float(low), 0.0), 2 * max(float(high), 0.0))
            for name, low, high in zip(self.chosen.states, *self.ranges, strict=True)
        }
        points = int(self.duration) + 1 if self.chosen.is_map else 101
        asked = np.linspace(0.0, self.duration, points) if times is None else np.asarray(times, np.float64)
        read = np.isfinite(self.chosen.variances)
        spread = np.where(read, np.sqrt(self.chosen.variances), self.ranges[1] - self.ranges[0])
        return next_experiment(self.rivals, wide if box is None else box, asked, spread, u, self.seed)

    @property
    def ending(self) -> str:
        """How long the search took, and what ended it, as a sentence."""
        by = STOPS.get(self.stopped_by, f"the limit of {self.stopped_by}")
        return f"{self.systems} systems integrated in {self.seconds:.1f} s; stopped by {by}"

    def __repr__(self) -> str:
        return f"{self.front!r}\n{self.ending}"


def front_of(models: Iterable[SystemModel]) -> SystemFront:
    """The systems that are better than all simpler ones, and the one with the shortest description.

    Parameters
    ----------
    models : iterable of SystemModel
        At least one; the first is recommended if none follows the readings to their end.
    """
    known = list(models)
    best = min(known, key=lambda model: model.nats)
    front: list[SystemModel] = []
    for model in sorted(known, key=lambda each: (each.complexity, each.error)):
        if model is best or (math.isfinite(model.error) and all(model.error < other.error for other in front)):
            front.append(model)
    # Simpler systems that are no worse than the recommended one were judged longer: none stands behind it.
    others = sorted(model.nats for model in known if model is not best)
    if not math.isfinite(best.nats):
        reason = "no system could be integrated along the readings; this one fits the rates best"
    elif others and math.isfinite(others[0]):
        reason = f"the shortest description of the trajectories; the next needs {others[0] - best.nats:.1f} nats more"
    else:
        reason = "the only system that could be integrated along the readings"
    return SystemFront(tuple(front), front.index(best), reason)


def rivals_of(models: Iterable[SystemModel], chosen: SystemModel) -> tuple[SystemModel, ...]:
    """The chosen system, and others with nearly as short descriptions, or else the best other one."""
    others = sorted(
        (each for each in models if each is not chosen and math.isfinite(each.nats)), key=lambda each: each.nats
    )
    near = [each for each in others if each.nats <= chosen.nats + NEAR][: MOST_RIVALS - 1]
    return (chosen, *(near or others[:1]))
