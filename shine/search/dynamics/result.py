"""The result of a search for equations of motion: a front of systems, and the equations found for each state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from shine.search.dynamics.system import SystemModel
from shine.search.models.figures import loss_text
from shine.search.models.front import STOPS, Front


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
    """

    front: SystemFront
    equations: tuple[Front, ...]
    seconds: float
    seed: int
    stopped_by: str
    systems: int

    @property
    def chosen(self) -> SystemModel:
        """The recommended system."""
        return self.front.best

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
