"""The result of a search for equations of motion: a front of systems, and the equations found for each state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.data.columns.numbers import numbers
from shine.search.dynamics.next_experiment import Box, NextExperiment, next_experiment
from shine.search.dynamics.system import Controls, SystemModel
from shine.search.models.front import Front
from shine.search.models.front_table import loss_text
from shine.search.models.result import STOPS

NEAR = 6.0
"""Nats up to which a longer description counts as a rival: odds of 400 to 1."""

MOST_RIVALS = 6


@dataclass(frozen=True, eq=False, repr=False)
class SystemFront(Sequence[SystemModel]):
    """Systems by rising complexity and falling error of their rollouts, whose new starts are paid for.

    Parameters
    ----------
    models : tuple of SystemModel
    best_index : int
        Position of the recommended system.
    reason : str
        Why it is recommended.
    others : tuple of SystemModel
        Systems beside the front that the trajectories hardly tell from the recommended one.
    ranges : tuple of two ndarray of shape (n_states,), optional
        Lowest and highest value of each state in the data.
    duration : float
        Of the longest run.
    """

    models: tuple[SystemModel, ...]
    best_index: int
    reason: str = ""
    others: tuple[SystemModel, ...] = ()
    ranges: tuple[Floats, Floats] | None = None
    duration: float = 0.0

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

    @property
    def rivals(self) -> tuple[SystemModel, ...]:
        """The recommended system and those that the trajectories hardly tell from it (see `NEAR`), or else the best
        other one; the shortest description first."""
        known = (each for each in (*self.models, *self.others) if each is not self.best and math.isfinite(each.nats))
        others = sorted(known, key=lambda each: each.nats)
        near = [each for each in others if each.nats <= self.best.nats + NEAR][: MOST_RIVALS - 1]
        return (self.best, *(near or others[:1]))

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
            Controls of the new experiment. Constants by run are those of the last one.

        Raises
        ------
        DataError
            If the box is invalid, or the data leave one system only.
        """
        best = self.best
        if self.ranges is None and (box is None or times is None):
            raise DataError("this front does not know its data; give a box, and the times of the new experiment")
        if box is None:
            assert self.ranges is not None
            ends = zip(best.states, *(each.tolist() for each in self.ranges), strict=True)
            box = {name: (2 * min(low, 0.0), 2 * max(high, 0.0)) for name, low, high in ends}
        points = round(self.duration / best.step) + 1 if best.is_map else 101
        asked = np.linspace(0.0, self.duration, points) if times is None else numbers(times, "times", 1)
        width = np.abs(best.starts).max(axis=0) if self.ranges is None else self.ranges[1] - self.ranges[0]
        spread = np.where(np.isfinite(best.variances), np.sqrt(best.variances), width)
        rivals = [each.of_run(len(each.runs) - 1) for each in self.rivals]
        return next_experiment(rivals, box, asked, spread, u)

    def __repr__(self) -> str:
        anew = any(model.restarts for model in self.models)
        lines = [f"{'':3} {'':>3} {'complexity':>10}  {'error':<10}  {'starts  ' * anew}system"]
        for at, model in enumerate(self.models):
            mark = ">>>" if at == self.best_index else ""
            own = model.lines()
            starts = f"{model.restarts + len(model.starts):>6}  " if anew else ""
            lines.append(f"{mark:3} {at:>3} {model.complexity:>10}  {loss_text(model.error):<10}  {starts}{own[0]}")
            lines += [f"{'':30}  {' ' * len(starts)}{line}" for line in own[1:]]
        return "\n".join([*lines, *([f">>> {self.reason}"] if self.reason else [])])


@dataclass(frozen=True, eq=False, repr=False)
class DynamicsResult:
    """Result of a search for equations of motion.

    Parameters
    ----------
    front : SystemFront
    equations : mapping of str to Front
        The formulas found for the rate of each state, before any rollout; for those of several states, if they are
        found together.
    seconds : float
    seed : int
    stopped_by : str
        As of `shine.search.models.result.Result`.
    systems : int
        Number of systems that were fitted to the data.
    judged : str
        What was done with each.
    """

    front: SystemFront
    equations: Mapping[str, Front]
    seconds: float
    seed: int
    stopped_by: str
    systems: int
    judged: str = "integrated"

    @property
    def chosen(self) -> SystemModel:
        """The recommended system."""
        return self.front.best

    @property
    def rivals(self) -> tuple[SystemModel, ...]:
        """See `SystemFront.rivals`."""
        return self.front.rivals

    def next_experiment(self, box: Box | None = None, times: Any = None, u: Controls = None) -> NextExperiment:
        """See `SystemFront.next_experiment`."""
        return self.front.next_experiment(box, times, u)

    @property
    def ending(self) -> str:
        """Duration and end of the search, as a sentence."""
        by = STOPS.get(self.stopped_by, f"the limit of {self.stopped_by}")
        return f"{self.systems} systems {self.judged} in {self.seconds:.1f} s; stopped by {by}"

    def __repr__(self) -> str:
        return f"{self.front!r}\n{self.ending}"


def distinct(models: Iterable[SystemModel]) -> list[SystemModel]:
    """The systems by rising nats; of those that read alike, the first."""
    found: dict[tuple[str, ...], SystemModel] = {}
    for model in sorted(models, key=lambda each: each.nats):
        found.setdefault(tuple(model.lines()), model)
    return list(found.values())


def front_of(models: Iterable[SystemModel], best: SystemModel | None = None) -> SystemFront:
    """The systems that are better than all simpler ones, and the recommended one.

    Parameters
    ----------
    models : iterable of SystemModel
        At least one; the first is recommended if none follows the readings to their end.
    best : SystemModel, optional
        The recommended one; by default that with the shortest description.
    """
    known = list(models)
    shortest = min(known, key=lambda model: model.nats)
    best = shortest if best is None else best
    front: list[SystemModel] = []
    for model in sorted(known, key=lambda each: (each.complexity, each.misfit)):
        if model is best or (math.isfinite(model.misfit) and all(model.misfit < other.misfit for other in front)):
            front.append(model)
    beside = [model for model in known if model.nats <= best.nats + NEAR and model not in front]
    others = sorted(model.nats for model in known if model is not best)
    if not math.isfinite(best.nats):
        reason = "no system could be integrated along the readings; this one fits the rates best"
    elif best is not shortest:
        more = best.nats - shortest.nats
        reason = f"the least error on readings kept back; its description needs {more:.1f} nats more than the shortest"
    elif others and math.isfinite(others[0]):
        reason = f"the shortest description of the trajectories; the next needs {others[0] - best.nats:.1f} nats more"
    else:
        reason = "the only system that could be integrated along the readings"
    return SystemFront(tuple(front), front.index(best), reason, tuple(beside))
