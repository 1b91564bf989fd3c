"""The interface of the kinds of problems to the search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np

from shine.compiler.threads import processors
from shine.data.datasets.dataset import Dataset
from shine.evaluate.confirmation import Confirmation
from shine.evaluate.domain.levels import Levels
from shine.evaluate.losses.form import Loss
from shine.evaluate.protocols import ConstantFitter, PopulationEvaluator
from shine.search.description import DescriptionLength
from shine.search.evolution.evolution import Outcome, Start
from shine.search.evolution.observers import NOBODY, Observers, Progress, SearchView
from shine.search.evolution.run_state import State
from shine.search.evolution.scoring import TOLERANCE, Scoring, fitter
from shine.search.evolution.settings import StopSettings
from shine.search.models.certainty import Choice
from shine.search.models.front import Front
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.problem.budget import TimeBudget
from shine.search.problem.names import TranslatedSettings
from shine.search.problem.noise import NoiseEstimate


class Problem(ABC):
    """Data and settings of a search, ready for the evolution; its outcome becomes the result.

    Parameters
    ----------
    dataset : Dataset
        The given rows.
    settings : TranslatedSettings
    observers : Observers
        Of a run that has begun.
    rng : numpy.random.Generator
        Draws the samples of the rows.

    Attributes
    ----------
    budget : TimeBudget
    rows : Dataset
        All rows that the search learns from.
    sample, fitting : Dataset
        Rows that individuals are scored on first, and those that their constants are fitted to.
    loss : Loss
    enough : float
        Loss of individuals that ends the search.
    interval : int
        Generations after which the evolution sees another sample; 0 for never.
    tolerance : float
        See `shine.search.evolution.scoring.fitter`.
    shares_lives : bool
        Whether workers have lives of the search: not where generations count, since these depend on the lives before.
    """

    budget: TimeBudget
    rows: Dataset
    sample: Dataset
    fitting: Dataset
    loss: Loss
    enough: float
    interval: int = 0
    tolerance: float = TOLERANCE

    def __init__(
        self, dataset: Dataset, settings: TranslatedSettings, observers: Observers, rng: np.random.Generator
    ) -> None:
        self.user_rows, self.settings, self.observers, self.rng = dataset, settings, observers, rng
        self.evolving, self.fitness = settings.evolution, settings.fitness
        self.threads = settings.fitness.threads or processors()
        stop, several = settings.stop, settings.evolution.islands > 1
        endless = stop.stagnation is None and stop.generations is None
        self.shares_lives = observers.pool is not None and not several and endless
        # Where workers evolve, each has one thread, unless the user says otherwise.
        threads = 1 if self.shares_lives or (several and observers.pool is not None) else self.threads
        self.on_islands = replace(settings.fitness, threads=settings.fitness.threads or threads)
        self.island_threads = self.on_islands.threads or 1
        self.budget = TimeBudget(settings.stop.seconds, clock=observers.clock, began=observers.began)

    def alone(self) -> Self:
        """The problem for a life in a worker, which nobody follows, and whose clock alone ends it; with few rows."""
        own = copy(self)
        own.observers, own.threads, own.budget = NOBODY, self.island_threads, TimeBudget(None)
        own.rows = own.user_rows = self.sample
        if self.interval:
            own.rows = replace(self.rows, all_rows=None, known_ranges=self.rows.ranges)
        return own

    @property
    @abstractmethod
    def start(self) -> Start:
        """The primitive set, the user's guesses, and what looks for more."""

    @property
    def stop(self) -> StopSettings:
        """The limits of the evolution."""
        return replace(self.settings.stop, loss=self.enough, seconds=self.budget.for_evolution())

    def scoring(self, number: int) -> Scoring:
        """Scores of individuals on a sample of the rows, by its number; the first is `sample`."""
        rows, fitting = (self.sample, self.fitting) if number == 0 else self.samples(number)
        steps = self.evolving.constant_steps
        fit = fitter(self.linearizer(fitting), steps, scaled=self.scaled, tolerance=self.tolerance) if steps else None
        own = self.evaluator(rows), fit, self.description(rows), self.confirmation(rows)
        return Scoring(*own, self.first(rows, fitting))

    def first(self, rows: Dataset, fitting: Dataset) -> PopulationEvaluator | None:
        """Scores on the rows that constants are fitted to, if that comes before scores (see `Scoring`)."""
        return None

    def samples(self, number: int) -> tuple[Dataset, Dataset]:
        """Another sample, and its rows that constants are fitted to."""
        raise NotImplementedError("the sample of this problem is never renewed")

    @property
    @abstractmethod
    def scaled(self) -> bool:
        """Whether individuals are judged with their best slope and intercept."""

    @abstractmethod
    def evaluator(self, rows: Dataset) -> PopulationEvaluator:
        """Scores individuals on a sample; it charges for broken constraints."""

    @abstractmethod
    def linearizer(self, rows: Dataset) -> ConstantFitter:
        """Fits constants to some rows."""

    def confirmation(self, rows: Dataset) -> Confirmation | None:
        """Confirms the losses of formulas that are kept, and looks between the values of columns that have few."""
        return Confirmation(rows, self.loss, Levels.of(rows), enough=self.enough)

    @abstractmethod
    def description(self, rows: Dataset) -> DescriptionLength:
        """Length of the description of a sample by formulas of given losses."""

    @abstractmethod
    def view(self) -> SearchView:
        """The search as somebody who watches it sees it."""

    def watched(self) -> Observers:
        """The observers, who get formulas in the names and units of the data."""
        report, save = self.report_for_users(self.observers.report), self.observers.save
        told = replace(self.observers, report=report, save=lambda state: save(self.kept(state)))
        return told.with_visitor()

    @abstractmethod
    def report_for_users(self, report: Callable[[Progress], object]) -> Callable[[Progress], object]:
        """A report that gets formulas in the names and units of the data."""

    def kept(self, state: State) -> State:
        """A state with what the evolution does not know of the search."""
        return state

    @abstractmethod
    def finished(self, outcome: Outcome, earlier: Sequence[Model]) -> Result:
        """The result: the evolution's formulas, complete, polished, and short, and the one to recommend.

        Parameters
        ----------
        outcome : Outcome
        earlier : sequence of Model
            The front of an earlier part of the run, which competes with these formulas.

        Raises
        ------
        DataError
            If no formula has a finite loss.
        """

    def result(
        self, outcome: Outcome, models: tuple[Model, ...], choice: Choice, noise: NoiseEstimate | None = None
    ) -> Result:
        """The result with a front and the choice from it."""
        front = Front(models, choice.index, choice.reason)
        return Result.of(outcome, front, self.budget.spent(), self.settings.seed, noise)
