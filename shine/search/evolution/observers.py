"""Messages between a running search and its observers.

The search tells what it is (a `SearchView`) and how far it has come (a `Progress`). A visitor is asked after each
generation: it may let formulas join, hold the search up, and end it. A visitor who does nothing changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from shine.base.parallel import Pool
from shine.data.datasets.dataset import Dataset
from shine.evaluate.scores import Scores
from shine.lang.forms.tape import Tape
from shine.lang.population import Population
from shine.search.evolution.run_state import State

if TYPE_CHECKING:
    from shine.formats.page.subject import ModelLike


@dataclass(frozen=True, eq=False)
class Progress:
    """The progress of a run after a generation.

    Parameters
    ----------
    generation : int
        0 is the first population.
    evaluations : int
        Distinct individuals evaluated so far.
    seconds : float
        Since the search began, reading the data included.
    front : Population
        The best individuals so far (see `Outcome`).
    scores : Scores
        Scores of the front.
    write : callable, optional
        Writes a formula of a front for people, given its position.
    refuted : int
        Formulas so far whose loss a second computation did not confirm; they count as worthless.
    search : str
        Which search of several; empty if there is one.
    before : int
        Generations of the searches before it, their first populations included.
    life : int
        How often the search has begun anew.
    """

    generation: int
    evaluations: int
    seconds: float
    front: Population
    scores: Scores
    write: Callable[[int], str] | None = None
    refuted: int = 0
    search: str = ""
    before: int = 0
    life: int = 0

    @property
    def formula(self) -> str:
        """The best formula as people write it, with its slope and intercept, in the names and units of the data.

        It is written when it is asked for; empty while every loss is infinite.
        """
        position = len(self.front) - 1
        if position < 0:
            return ""
        return self.front.tree(position).readable if self.write is None else self.write(position)

    @property
    def best_loss(self) -> float:
        """Loss of the best individual; inf while there is none."""
        return float(self.scores.losses[-1]) if len(self.front) else float("inf")

    @property
    def best(self) -> Tape | None:
        """The best individual; None while every loss is infinite."""
        return self.front.tape(-1) if len(self.front) else None


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
class SearchView:
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
    """An observer of one search, who may put formulas into it."""

    def clock(self) -> float:
        """Seconds, without those in which the search was held up; those of `time.monotonic` until then."""

    def enter(self, view: SearchView) -> None:
        """The search is about to evolve its first population."""

    def arrivals(self) -> Population | None:
        """Individuals that join the search now."""

    def saw(self, state: State) -> None:
        """A generation has ended, and those who arrived have joined."""

    def pauses(self) -> bool:
        """Wait as long as the search is to pause; return whether it is to end."""

    def joined(self) -> tuple[str, ...]:
        """The formulas that have joined since this was asked last, as they were written."""


def ignore(told: object) -> None:
    """Report or save nothing."""


def no_arrivals() -> None:
    """No individuals come from outside."""


def is_true(answer: object) -> bool:
    """Whether a report ends the run: it answers True, also NumPy's; other answers mean nothing."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


@dataclass(frozen=True)
class Observers:
    """The observers of a run, and its links to other runs: workers, a clock, an earlier part of itself.

    Parameters
    ----------
    report : callable
        Receives a `Progress` after each epoch, which is a generation unless there are several islands; the run ends if
        it returns True.
    visitor : Visitor, optional
        Watches the run, and may put formulas into it, hold it up, and end it.
    state : State, optional
        The run goes on from this state as if it had never stopped: the same data and settings give the same front. The
        random generator of the state replaces the run's.
    save : callable
        Receives the `State` after each whole epoch, before the report. An epoch of several islands that the limit of
        generations or of the loss cuts short is passed again by a run that goes on: cut in two, it might end
        otherwise. Taking a state costs nothing: it shares the run's arrays, which never change.
    arrivals : callable
        Asked before each save for individuals from outside, such as a formula that the user wrote. They are scored,
        with fitted constants, and join the first island; the same limits hold as for guesses.
    pool : Pool, optional
        Workers that share the islands and the seeding (see `shine.base.parallel.opened`). They change no bit of the
        front. All that the run uses must then be picklable.
    clock : callable
        Seconds from any origin.
    began : float, optional
        When the run began, on that clock: reading the data is part of the user's seconds. By default now, or as long
        ago as the state says.
    """

    report: Callable[[Progress], object] = ignore
    visitor: Visitor | None = None
    state: State | None = None
    save: Callable[[State], None] = ignore
    arrivals: Callable[[], Population | None] = no_arrivals
    pool: Pool | None = None
    clock: Callable[[], float] = time.monotonic
    began: float | None = None

    @property
    def origin(self) -> float:
        """Begin of the run, on the clock."""
        if self.began is not None:
            return self.began
        return self.clock() - (0.0 if self.state is None else self.state.seconds)

    def begun(self) -> Observers:
        """The observers of a run that begins or goes on: on the visitor's clock, since its first part began."""
        clock = self.clock if self.visitor is None else self.visitor.clock
        now = clock() if self.began is None else self.began
        return replace(self, clock=clock, began=now - (0.0 if self.state is None else self.state.seconds))

    def with_visitor(self) -> Observers:
        """The observers with the visitor's part in reports, saves and arrivals."""
        visitor = self.visitor
        if visitor is None:
            return self

        def reported(progress: Progress) -> bool:
            enough = is_true(self.report(progress))
            # Both are asked: a search that ends anyway still pauses, so that one can look at it.
            return visitor.pauses() or enough

        def saved(state: State) -> None:
            # The visitor comes last, because it may hold the search up.
            self.save(state)
            visitor.saw(state)

        return replace(self, report=reported, save=saved, arrivals=visitor.arrivals)


NOBODY = Observers()
"""Nobody follows the run, and it shares nothing."""
