"""Evolution over samples of the rows that are renewed while it runs, so that formulas do not fit one sample.

A sample lasts for a fixed number of generations. Then everybody is scored on the next one, with constants fitted to it:
the islands, and the archive, which thereby forgets losses that were luck. What was remembered of the former sample is
forgotten. The number of a sample follows from the generation, so a resumed run sees the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shine.search.description import Stagnation
from shine.search.evolution import evolution
from shine.search.evolution.archive import Archive
from shine.search.evolution.evolution import Outcome, Start
from shine.search.evolution.memory import Known
from shine.search.evolution.observers import Observers, Progress, is_true
from shine.search.evolution.run_state import State
from shine.search.evolution.scoring import Scorer, Scoring
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.seeding.effort import Deadline


def evolve(
    scoring_on: Callable[[int], Scoring],
    interval: int,
    start: Start,
    settings: EvolutionSettings,
    stop: StopSettings,
    rng: np.random.Generator,
    observers: Observers,
) -> Outcome:
    """Evolve formulas of low loss.

    Parameters
    ----------
    scoring_on : callable
        Number of a sample, from 0 -> how individuals are scored on it, with a description length.
    interval : int
        Generations that a sample lasts; 0 for ever.
    start, settings, stop, rng, observers
        As for `shine.search.evolution.evolution.evolve`.
    """
    last = math.inf if stop.generations is None else stop.generations
    told, asked, skipped = -1, False, -1
    latest = observers.state
    if latest is not None:
        evolution.settings_of(latest, start.primitives, settings)  # before anybody is scored

    def once(progress: Progress) -> object:
        """Report each generation once, although a sample begins with the generation that the one before ended with."""
        nonlocal told, asked
        if progress.generation <= told:
            return asked
        told = progress.generation
        asked = is_true(observers.report(progress))
        return asked

    def keep(found: State) -> None:
        """Save each generation as it was on the sample that it was made on: the number of that sample follows."""
        nonlocal latest
        if found.generation != skipped:
            observers.save(found)
        latest = found

    # A state is as its last generation was made. Where a sample ends, that generation is reported on the ended sample.
    number = 0 if latest is None or not interval else max(latest.generation - 1, 0) // interval
    while True:
        scoring = scoring_on(number)
        if latest is not None and number and latest.generation == number * interval:
            latest, skipped = renewed(latest, scoring, observers.clock), latest.generation
        end = (number + 1) * interval if interval else math.inf
        limit = replace(stop, generations=None if min(end, last) == math.inf else int(min(end, last)))
        seen = replace(observers, state=latest, report=once, save=keep)
        outcome = evolution.evolve(scoring, start, settings, limit, rng, seen, continued=end <= last)
        if outcome.stopped_by != "generations" or outcome.generations >= last:
            return outcome
        if asked:
            return replace(outcome, stopped_by="callback")
        number += 1


def renewed(state: State, scoring: Scoring, clock: Callable[[], float]) -> State:
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
