"""A whole search: data in, the Pareto front of models out; its lives; and the callbacks that follow it.

Without a limit of stagnation, a search begins anew when nothing improves any more. A life is a whole search: seeding
splits the rows otherwise, random numbers are others, and nothing is known of the lives before it: their formulas would
lead to the same optimum. The front is the best of all.

In a life, the sample of the rows may be renewed, so that formulas do not fit one sample. After a fixed number of
generations, everybody is scored on the next one, with constants fitted to it: islands, and the archive, which forgets
losses that were luck. The number of a sample follows from the generation: a resumed run sees the same.

A callback is a function of the `Progress`. If it also has a method ``begin(settings)`` or ``end(result)``, these are
called before the first generation and after the formula has been chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shine.base.stages import stage
from shine.data.datasets.dataset import Dataset
from shine.search.description import Stagnation
from shine.search.evolution import evolution
from shine.search.evolution.archive import Archive
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.memory import Known
from shine.search.evolution.observers import NOBODY, Observers, Progress, ignore, is_true
from shine.search.evolution.run_state import Past, State
from shine.search.evolution.scoring import Scorer, Scoring
from shine.search.evolution.settings import StopSettings
from shine.search.kinds.formula import FormulaProblem
from shine.search.kinds.problem import Problem
from shine.search.models.model import Model
from shine.search.models.result import Result
from shine.search.problem.names import TranslatedSettings, translated
from shine.search.problem.settings import SearchSettings
from shine.search.seeding.effort import Deadline

LIVES = 4
"""Number of the random generators of later lives, beside that of the search (see `shine.search.kinds.formula`)."""


Kind = Callable[[Dataset, TranslatedSettings, Observers, np.random.Generator], Problem]
"""Makes a problem of data and settings."""


def search(
    dataset: Dataset,
    settings: SearchSettings,
    observers: Observers = NOBODY,
    earlier: Sequence[Model] = (),
    kind: Kind | None = None,
) -> Result:
    """Find formulas that explain a data set.

    Parameters
    ----------
    dataset : Dataset
    settings : SearchSettings
    observers : Observers
        If their report has methods ``begin(settings)`` and ``end(result)``, they are called; after an error, the result
        is None.
    earlier : sequence of Model
        The front of an earlier part of the run: it competes with what the search finds.
    kind : callable, optional
        The kind of problem. By default a template if the settings have one, and otherwise a formula.

    Returns
    -------
    Result
        Ctrl-C ends the run early. It then returns what was found so far and skips the slow final fit of all constants.

    Raises
    ------
    DataError, UnsupportedSyntaxError, GraphImportError, ValueError
        If the data, a formula, a graph or a setting is invalid.
    """
    result, report = None, observers.report
    _tell(report, "begin", settings)
    try:
        with np.errstate(all="ignore"):
            observers, rng = observers.begun(), np.random.default_rng(settings.seed)
            if settings.fitness.evidence is not None:
                dataset = replace(dataset, worth=settings.fitness.evidence)
            if kind is None:
                kind, dataset = FormulaProblem, dataset if settings.fitness.validation else dataset.merged()
                if settings.template is not None:
                    from shine.search.kinds.template.problem import TemplateProblem as kind  # slow to import
            problem = kind(dataset, translated(settings, dataset), observers, rng)
            if observers.visitor is not None:
                observers.visitor.enter(problem.view())
            outcome = _evolved(problem, rng)
            with stage("refining the best formulas"):
                result = problem.finished(outcome, earlier)
    finally:
        _tell(report, "end", result)
    return result


def _evolved(problem: Problem, rng: np.random.Generator) -> Outcome:
    """The outcome of all lives; `rng` is that of the first."""
    observers, stop, outcome = problem.watched(), problem.stop, None
    past = Past() if observers.state is None else observers.state.past
    while True:
        try:
            found, is_last = _lived(problem, rng, observers, past)
        except KeyboardInterrupt:
            if outcome is None:
                raise
            return replace(outcome, stopped_by="interrupted")
        passed, evaluated = past.generations + found.generations, past.evaluations + found.evaluations
        own = found.archive
        archive = own if past.archive is None else past.archive.joined(own.individuals, own.scores)
        front, scores = archive.front(stop.loss)
        outcome = replace(found, front=front, scores=scores, archive=archive, generations=passed, evaluations=evaluated)
        if is_last:
            return outcome
        past = Past(past.lives + 1, passed + 1, evaluated, archive)
        if stop.generations is not None and stop.generations <= past.generations:
            return replace(outcome, stopped_by="generations")
        rng = np.random.default_rng((problem.settings.seed, LIVES, past.lives))
        observers = replace(observers, state=None)


def _lived(problem: Problem, rng: np.random.Generator, observers: Observers, past: Past) -> tuple[Outcome, bool]:
    """The outcome of a life, and whether it is the last one."""
    stop, start, settings, interval = problem.stop, problem.start, problem.evolving, problem.interval
    description = problem.description(problem.sample) if stop.stagnation is None else None
    state, told, skipped, asked, is_over = observers.state, -1, -1, False, False

    def counted(part: Any, sign: int = 1) -> Any:
        """With the generations and evaluations of the lives before, or without (-1)."""
        generation, evaluations = part.generation + sign * past.generations, part.evaluations + sign * past.evaluations
        return replace(part, generation=generation, evaluations=evaluations)

    def save(found: State) -> None:
        """Save each generation as it was on the sample that it was made on: the number of that sample follows."""
        nonlocal state, is_over
        state = found
        if description is not None:
            gain, most = found.archive.gain(description), StopSettings.stagnation
            is_over = found.stagnation.is_over(found.generation, most or 0, 0.0, gain)
        if found.generation != skipped:
            observers.save(replace(counted(found), past=past))

    def report(progress: Progress) -> bool:
        """Report each generation once, although a sample begins with the generation that the one before ended with."""
        nonlocal told, asked
        if progress.generation > told:
            told = progress.generation
            if past.archive is not None:
                front, scores = past.archive.joined(progress.front, progress.scores).front(stop.loss)
                progress = replace(progress, front=front, scores=scores, life=past.lives)
            asked = is_true(observers.report(counted(progress)))
        return asked or is_over

    if state is not None:
        state = counted(state, -1)
        evolution.settings_of(state, start.primitives, settings)  # before anybody is scored
    last = math.inf if stop.generations is None else stop.generations - past.generations
    # A state is as its last generation was made. Where a sample ends, that generation is reported on the ended sample.
    number = 0 if state is None or not interval else max(state.generation - 1, 0) // interval
    try:
        while True:
            scoring = problem.scoring(number)
            if state is not None and number and state.generation == number * interval:
                state, skipped = _renewed(state, scoring, observers.clock), state.generation
            end = (number + 1) * interval or math.inf
            limit = replace(stop, generations=None if min(end, last) == math.inf else int(min(end, last)))
            seen = replace(observers, state=state, save=save, report=report)
            outcome = evolution.evolve(scoring, start, settings, limit, rng, seen, continued=end <= last)
            if outcome.stopped_by == "generations" and outcome.generations < last and (asked or is_over):
                outcome = replace(outcome, stopped_by="callback")
            if outcome.stopped_by != "generations" or outcome.generations >= last:
                return outcome, asked or outcome.stopped_by != "callback"
            number += 1
    finally:
        if start.seeding is not None:
            start.seeding.close()


def _renewed(state: State, scoring: Scoring, clock: Callable[[], float]) -> State:
    """The state of a run with everybody scored on another sample, which has a description length."""
    assert scoring.description is not None
    old, description = state.archive, scoring.description
    empty = Archive.empty(state.primitives, old.individuals.width, old.weights)
    scorer = Scorer(scoring, empty, Deadline(clock))
    scorer.scored(old.individuals.take(np.flatnonzero(np.isfinite(old.scores.losses))))
    islands = []
    for island in state.islands:
        population, losses = scorer.scored(island.parents)
        islands.append(replace(island, parents=population, losses=losses))
    length = float(scorer.archive.lengths(description).min())
    return replace(
        state,
        islands=tuple(islands),
        archive=scorer.archive,
        known=(Known.nobody(),) * len(islands),
        stagnation=Stagnation(length, state.stagnation.fell),
        evaluations=state.evaluations + scorer.evaluations,
    )


Callback = Callable[[Progress], object]
"""Receives the progress of each generation, and ends the search by returning True."""


@dataclass(frozen=True)
class Several:
    """Several callbacks as one: all are called, also those after one that ends the search."""

    callbacks: tuple[Callback, ...]
    told: Callable[[Progress], Progress] | None = None
    """What they get in place of the progress."""

    def __call__(self, progress: Progress) -> bool:
        """Pass on the progress; True if any callback wants the search to end."""
        progress = progress if self.told is None else self.told(progress)
        return True in [is_true(callback(progress)) for callback in self.callbacks]

    def begin(self, settings: SearchSettings) -> None:
        """Pass on the settings of a search that begins."""
        for callback in self.callbacks:
            _tell(callback, "begin", settings)

    def end(self, result: Result | None) -> None:
        """Pass on the result of a search that has ended."""
        for callback in self.callbacks:
            _tell(callback, "end", result)


def _tell(callback: Callback, method: str, value: object) -> None:
    (getattr(callback, method, None) or ignore)(value)
