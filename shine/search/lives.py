"""The lives of a search without a limit of stagnation: when nothing improves any more, it begins anew.

A life is a whole search. Its seeding splits the rows in another way, its populations have other random numbers, and it
knows nothing of the lives before it: their formulas would lead it to the same optimum. The best of all is handed over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from shine.search.evolution import renewal
from shine.search.evolution.evolution import Outcome
from shine.search.evolution.observers import Observers, Progress, is_true
from shine.search.evolution.run_state import Past, State
from shine.search.kinds.problem import Problem

LIVES = 4
"""Number of the random generators of later lives, beside that of the search (see `shine.search.kinds.formula`)."""

Part = TypeVar("Part", State, Progress)

PATIENCE = 300
"""Generations without a shorter description that end a life, if they are also as many as passed until the last one."""


def evolved(problem: Problem, rng: np.random.Generator) -> Outcome:
    """The outcome of the evolution, in all lives; `rng` is that of the first one."""
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
        archive = found.archive
        if past.archive is not None:
            archive = past.archive.joined(archive.individuals, archive.scores)
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
    stop, start = problem.stop, problem.start
    description = problem.description(problem.sample) if stop.stagnation is None else None
    is_over = asked = False

    def counted(part: Part, sign: int = 1) -> Part:
        """With the generations and evaluations of the lives before, or without (-1)."""
        generation, evaluations = part.generation + sign * past.generations, part.evaluations + sign * past.evaluations
        return replace(part, generation=generation, evaluations=evaluations)

    def save(found: State) -> None:
        nonlocal is_over
        if description is not None:
            is_over = found.stagnation.is_over(found.generation, PATIENCE, 0.0, found.archive.gain(description))
        observers.save(replace(counted(found), past=past))

    def report(progress: Progress) -> bool:
        nonlocal asked
        if past.archive is not None:
            front, scores = past.archive.joined(progress.front, progress.scores).front(stop.loss)
            progress = replace(progress, front=front, scores=scores, life=past.lives)
        asked = is_true(observers.report(counted(progress)))
        return asked or is_over

    generations = None if stop.generations is None else stop.generations - past.generations
    state = None if observers.state is None else counted(observers.state, -1)
    seen, limits = replace(observers, state=state, save=save, report=report), replace(stop, generations=generations)
    try:
        outcome = renewal.evolve(problem.scoring, problem.interval, start, problem.evolving, limits, rng, seen)
    finally:
        if start.seeding is not None:
            start.seeding.close()
    return outcome, asked or outcome.stopped_by != "callback"
