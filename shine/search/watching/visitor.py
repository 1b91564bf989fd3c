"""What a search and somebody who watches it know of each other.

The search tells where it is: a `Place`. The visitor is asked after each generation: it may let formulas join, hold the
search up, and end it. A visitor who does nothing changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from shine.data.datasets.dataset import Dataset
from shine.formats.page.subject import ModelLike
from shine.lang.population import Population

if TYPE_CHECKING:
    from shine.evaluate.fitness.scores import Scores
    from shine.search.evolution.evolution import Progress
    from shine.search.evolution.run_state import State


@dataclass(frozen=True)
class Shown:
    """A front in the units of the given data.

    Parameters
    ----------
    models : sequence of ModelLike
        Rising complexity, falling loss.
    best_index : int
        Position of the formula that the search would recommend now.
    reason : str
        Why.
    """

    models: Sequence[ModelLike]
    best_index: int = 0
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Place:
    """A search as a visitor sees it. The functions may be called from other threads than the search's.

    Parameters
    ----------
    dataset : Dataset
        The given rows.
    read : callable
        Text of a formula -> an individual; raises what a wrong guess raises (`ShineError`, `TypeError`, `ValueError`).
    shown : callable
        Individuals and their scores -> their formulas.
    loss : callable
        A loss of an individual -> the loss in the units of the given data.
    enough : float
        Loss of individuals at which the front ends.
    example : str
        What one can put in, in a few words.
    hint : str
        How a formula is written, in words.
    seed : int
        Seed of the search.
    fits : bool
        Whether values of formulas are predictions of the target, so that they can be compared.
    """

    dataset: Dataset
    read: Callable[[str], Population]
    shown: Callable[[Population, Scores], Shown]
    loss: Callable[[float], float]
    enough: float
    example: str
    hint: str
    seed: int
    fits: bool = True


class Visitor(Protocol):
    """Somebody who watches one search."""

    def clock(self) -> float:
        """Seconds, without those in which the search was held up; those of `time.monotonic` until then."""
        ...

    def enter(self, place: Place) -> None:
        """The search is about to evolve its first population."""
        ...

    def arrivals(self) -> Population | None:
        """Individuals that join the search now."""
        ...

    def saw(self, state: State) -> None:
        """A generation has ended, and those who arrived have joined."""
        ...

    def pauses(self) -> bool:
        """Wait as long as the search is to pause; return whether it is to end."""
        ...

    def joined(self) -> tuple[str, ...]:
        """The formulas that have joined since this was asked last, as they were written."""
        ...


Report = Callable[["Progress"], object]
Save = Callable[["State"], None]
Arrivals = Callable[[], "Population | None"]


def _nobody() -> None:
    return None


def watched(visitor: Visitor | None, report: Report | None, save: Save | None) -> tuple[Report, Save, Arrivals]:
    """The arguments `report`, `save` and `arrivals` of `shine.search.evolution.evolution.evolve` for a visited search.

    Parameters
    ----------
    visitor : Visitor, optional
    report, save : callable, optional
        Those of the search's user. They are called before the visitor, who may hold the search up.
    """

    def reported(progress: Progress) -> bool:
        enough = report is not None and report(progress) is True
        # Both are asked: a search that ends anyway still pauses, so that one can look at it.
        return (visitor is not None and visitor.pauses()) or enough

    def saved(state: State) -> None:
        if save is not None:
            save(state)
        if visitor is not None:
            visitor.saw(state)

    return reported, saved, _nobody if visitor is None else visitor.arrivals
