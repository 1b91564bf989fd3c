"""The result of a search for equations of motion: a front of systems, and the equations found for each state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Floats
from shine.compiler.arrays import exp
from shine.data.columns.numbers import numbers
from shine.lang.forms.names import listed, shown, value_text
from shine.lang.forms.rounding import Precision
from shine.search.dynamics.joining import values_of
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
        Why it is recommended, or why nothing was found.
    others : tuple of SystemModel
        Systems beside the front that the trajectories hardly tell from the recommended one, or else the next shortest.
    ranges : tuple of two ndarray of shape (n_states,), optional
        Lowest and highest value of each state in the data.
    duration : float
        Of the longest run.
    found : bool
        Whether the recommended system explains the readings (see `shine.search.dynamics.doubt`): if not, it is the best
        one to look at.
    """

    models: tuple[SystemModel, ...]
    best_index: int
    reason: str = ""
    others: tuple[SystemModel, ...] = ()
    ranges: tuple[Floats, Floats] | None = None
    duration: float = 0.0
    found: bool = True

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

    def taken(self, index: int | None) -> SystemModel:
        """A system to use, by default the recommended one; a `DataError` if nothing was found, and it has no index."""
        if index is None and not self.found:
            raise DataError(f"{self.reason}. To use a system of the front anyway, give its index")
        return self.models[self.best_index if index is None else index]

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
        return self.table()

    def table(self, precision: Precision = None) -> str:
        """The systems by complexity, with constants of so many digits (see `Model.formula`)."""
        anew = any(model.restarts for model in self.models)
        lines = [f"{'':3} {'':>3} {'complexity':>10}  {'error':<10}  {'starts  ' * anew}system"]
        for at, model in enumerate(self.models):
            mark = (">>>" if self.found else "?") if at == self.best_index else ""
            own = model.lines(precision)
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
    def ending(self) -> str:
        """Duration and end of the search, as a sentence."""
        by = STOPS.get(self.stopped_by, f"the limit of {self.stopped_by}")
        return f"{self.systems} systems {self.judged} in {self.seconds:.1f} s; stopped by {by}"

    def rows(self) -> Iterator[dict[str, Any]]:
        """The front as plain values: complexity, loss, r2, expression, best."""
        for model in self.front:
            told = {"complexity": model.complexity, "loss": model.error, "r2": model.r2}
            yield {**told, "expression": model.expression, "best": model is self.chosen and self.front.found}

    def __repr__(self) -> str:
        return f"{self.front!r}\n{self.ending}"


def distinct(models: Iterable[SystemModel], columns: Mapping[str, Floats] | None = None) -> list[SystemModel]:
    """The systems by rising nats; of those that read alike, or are near the best one and have equal values in some
    columns of states, controls and times, the first."""
    found: dict[tuple[str, ...], SystemModel] = {}
    for model in sorted(models, key=lambda each: each.nats):
        found.setdefault(tuple(model.lines()), model)
    kept: list[SystemModel] = []
    for model in found.values():
        near = kept if kept and columns and model.nats <= kept[0].nats + NEAR else []
        if not any(_equal(each, model, columns or {}) for each in near):
            kept.append(model)
    return kept


def _equal(one: SystemModel, other: SystemModel, columns: Mapping[str, Floats]) -> bool:
    """Whether two systems are one written in two ways: the values of their equations agree."""
    for trees in zip(one.trees, other.trees, strict=True):
        first, second = (values_of(tree, np.array([columns[name] for name in tree.parameters])) for tree in trees)
        known = np.isfinite(first) & np.isfinite(second)
        if not (known.any() and np.allclose(first[known], second[known], 1e-4, 1e-4 * np.abs(first[known]).max())):
            return False
    return True


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
    best = best or min(known, key=lambda model: model.nats)
    front: list[SystemModel] = []
    for model in sorted(known, key=lambda each: (each.complexity, each.misfit)):
        if model is best or (math.isfinite(model.misfit) and all(model.misfit < other.misfit for other in front)):
            front.append(model)
    others = sorted((model for model in known if model is not best), key=lambda model: model.nats)
    rivals = [model for model in others if model.nats <= best.nats + NEAR] or others[:1]
    beside = [model for model in rivals if model not in front]
    reason = "the only system that could be integrated along the readings"
    if others and math.isfinite(others[0].nats):
        more = others[0].nats - best.nats
        reason = f"the shortest description of the trajectories; the next needs {more:.1f} nats more"
        reason += f": {'; '.join(beside[0].lines())}" if others[0] in beside and more <= NEAR else ""
    return SystemFront(tuple(front), front.index(best), reason, tuple(beside))


STARTS = 128
"""Initial states that are tried first, beside the corners of the box."""

REACHES, NEAR_ONE = (0.1, 0.03, 0.01), 24
"""Steps of the refinement, as shares of the box, and the states tried around the best one in each."""

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


@np.errstate(all="ignore")  # rollouts may diverge
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
    # Least error of a new reading, as a share of a state's spread: clean data promise no cleaner experiment.
    scale = np.maximum(best.noise, 1e-3 * spread)
    rng = np.random.default_rng(seed)

    def distances(starts: Floats) -> Floats:
        return _distances(rolled_from(starts), weights, spread, scale)

    def rolled_from(starts: Floats) -> Floats:
        return np.stack([rival.simulate(starts, times, u) for rival in rivals])

    corners = np.array(np.meshgrid(*([0.0, 1.0] for _ in best.states))).reshape(len(best.states), -1).T[:32]
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
