"""The lives of a search: without a limit of stagnation, it begins anew when nothing improves any more.

A life is a whole search: seeding splits the rows otherwise, random numbers are others, and nothing is known of the
lives before it: their formulas would lead to the same optimum. The front is the best of all. So lives may run at the
same time: each worker of a pool has one, beside that of this process.

In a life, the sample of the rows may be renewed, so that formulas do not fit one sample. After a fixed number of
generations, everybody is scored on the next one, with constants fitted to it: islands, and the archive, which forgets
losses that were luck. The number of a sample follows from the generation: a resumed run sees the same.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from shine.base.parallel import Shipment, Stream
from shine.search.description import Stagnation
from shine.search.evolution import evolution
from shine.search.evolution.archive import Archive
from shine.search.evolution.epochs import SECONDS_TO_RETURN
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.memory import Known
from shine.search.evolution.observers import NOBODY, Observers, Progress, is_true
from shine.search.evolution.run_state import Past, State
from shine.search.evolution.scoring import OutOfTime, Scorer, Scoring
from shine.search.evolution.settings import StopSettings
from shine.search.kinds.problem import Problem
from shine.search.seeding.effort import Deadline

LIVES = 4
"""Number of the random generators of later lives, beside that of the search (see `shine.search.kinds.formula`)."""

Key = tuple[int, ...]
"""Of the random numbers of a life."""


def evolved(problem: Problem, rng: np.random.Generator) -> Outcome:
    """The outcome of all lives; `rng` is that of the first."""
    observers, stop = problem.watched(), problem.stop
    lives = _Lives(problem, Past() if observers.state is None else observers.state.past)
    try:
        while True:
            try:
                found, is_last = _lived(problem, rng, observers, lives, stop)
            except KeyboardInterrupt:
                if lives.latest is None:
                    raise
                return lives.with_last("interrupted")
            lives.add(found)
            if is_last or lives.solved:
                return lives.with_last("loss" if lives.solved else found.stopped_by)
            if stop.generations is not None and stop.generations <= lives.past.generations:
                return lives.with_last("generations")
            rng = np.random.default_rng((problem.settings.seed, LIVES, lives.past.lives))
            observers = replace(observers, state=None)
    finally:
        lives.close()


class _Lives:
    """The lives of a search that have ended, and those that workers have.

    What a life finds follows from its key; how many end, and where the time ends the others, from the clock.

    Attributes
    ----------
    past : Past
    latest : Outcome or None
        Of the life that ended last.
    solved : bool
        Whether a life ended with a loss that is good enough.
    """

    def __init__(self, problem: Problem, past: Past) -> None:
        self.past, self.solved, self._enough = past, False, problem.stop.loss
        self.latest: Outcome | None = None
        self._others: Stream[tuple[Key, float], Outcome | None] | None = None
        self._shipment: Shipment | None = None
        pool, stop, observers = problem.observers.pool, problem.stop, problem.observers
        if pool is None or not problem.shares_lives:
            return

        def task(number: int) -> tuple[Key, float]:
            """A resumed run has lived other lives: its keys are others."""
            left = math.inf if stop.seconds is None else observers.origin + stop.seconds - observers.clock()
            return (problem.settings.seed, LIVES, past.lives, number), time.time() + left

        self._shipment = Shipment(problem.alone())
        self._others = Stream(pool, _lived_in_worker, map(task, count()), self._shipment)

    def add(self, found: Outcome) -> None:
        """Count a life that has ended, and keep what it found."""
        past, own = self.past, found.archive
        archive = own if past.archive is None else past.archive.joined(own.individuals, own.scores)
        self.past = Past(
            past.lives + 1, past.generations + found.generations + 1, past.evaluations + found.evaluations, archive
        )
        self.latest, self.solved = found, self.solved or found.stopped_by == "loss"

    def look(self) -> None:
        """Add the lives that workers have ended."""
        for found in () if self._others is None else self._others.ready():
            if found is not None:
                self.add(found)

    def with_last(self, reason: evolution.Reason) -> Outcome:
        """The outcome of all lives; those of workers end now."""
        assert self.latest is not None
        if self._others is not None and not self.solved:
            with suppress(KeyboardInterrupt):
                self._recall()
                for found in self._others.finished(SECONDS_TO_RETURN):
                    if found is not None:
                        self.add(found)
        archive, past = self.past.archive, self.past
        assert archive is not None
        front, scores = archive.front(self._enough)
        reason = "loss" if self.solved else reason
        counts = {"generations": past.generations - 1, "evaluations": past.evaluations}
        return replace(self.latest, front=front, scores=scores, archive=archive, stopped_by=reason, **counts)

    def close(self) -> None:
        """Let the workers stop."""
        if self._others is not None:
            self._others.cancel()
            self._recall()

    def _recall(self) -> None:
        if self._shipment is not None:
            self._shipment.recall()


@np.errstate(all="ignore")
def _lived_in_worker(problem: Problem, task: tuple[Key, float], stopped: Callable[[], bool]) -> Outcome | None:
    """The outcome of a life in a worker; None if it is not wanted any more."""
    key, deadline = task

    def clock() -> float:
        return math.inf if stopped() or time.time() >= deadline else time.monotonic()

    if clock() == math.inf:
        return None
    observers = replace(NOBODY, clock=clock).begun()
    return _lived(problem, np.random.default_rng(key), observers, _Lives(problem, Past()), problem.stop)[0]


def _lived(
    problem: Problem, rng: np.random.Generator, observers: Observers, lives: _Lives, stop: StopSettings
) -> tuple[Outcome, bool]:
    """The outcome of a life, and whether it is the last one."""
    start, settings, interval = problem.start, problem.evolving, problem.interval
    description = problem.description(problem.sample) if stop.stagnation is None else None
    state, told, skipped, asked, is_over = observers.state, -1, -1, False, False

    def counted(part: Any, sign: int = 1) -> Any:
        """With the generations and evaluations of the lives before, or without (-1)."""
        past = lives.past
        generation, evaluations = part.generation + sign * past.generations, part.evaluations + sign * past.evaluations
        return replace(part, generation=generation, evaluations=evaluations)

    def save(found: State) -> None:
        """Save each generation as it was on the sample that it was made on: the number of that sample follows."""
        nonlocal state, is_over
        state = found
        lives.look()
        if description is not None:
            gain, most = found.archive.gain(description), StopSettings.stagnation
            is_over = found.stagnation.is_over(found.generation, most or 0, 0.0, gain)
        if found.generation != skipped:
            observers.save(replace(counted(found), past=lives.past))

    def report(progress: Progress) -> bool:
        """Report each generation once, although a sample begins with the generation that the one before ended with."""
        nonlocal told, asked
        if progress.generation > told:
            told = progress.generation
            if lives.past.archive is not None:
                front, scores = lives.past.archive.joined(progress.front, progress.scores).front(stop.loss)
                progress = replace(progress, front=front, scores=scores, life=lives.past.lives)
            asked = is_true(observers.report(counted(progress))) or lives.solved
        return asked or is_over

    if state is not None:
        state = counted(state, -1)
        evolution.settings_of(state, start.primitives, settings)  # before anybody is scored
    last = math.inf if stop.generations is None else stop.generations - lives.past.generations
    # A state is as its last generation was made. Where a sample ends, that generation is reported on the ended sample.
    outcome: Outcome | None = None
    number = 0 if state is None or not interval else max(state.generation - 1, 0) // interval
    try:
        while True:
            scoring = problem.scoring(number)
            if state is not None and number and state.generation == number * interval:
                try:
                    state, skipped = _renewed(state, scoring, observers.clock), state.generation
                except OutOfTime:
                    # A worker is to stop. What it found on the samples so far counts.
                    if outcome is None:
                        raise
                    return replace(outcome, stopped_by="seconds"), True
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
