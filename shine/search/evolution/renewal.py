"""Evolution over samples of the rows that are renewed while it runs, so that formulas do not fit one sample.

A sample lasts for a fixed number of generations. Then everybody is scored on the next one, with constants fitted to it:
the islands, and the archive, which thereby forgets losses that were luck. What was remembered of the former sample is
forgotten. The number of a sample follows from the generation, so a resumed run sees the same ones.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shine.evaluate.fitness.protocols import PopulationEvaluator
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.subtrees import Parents
from shine.search.description.lengths import DescriptionLength
from shine.search.description.stagnation import Stagnation
from shine.search.evolution import evolution
from shine.search.evolution.archive import Archive
from shine.search.evolution.evolution import Outcome, Progress
from shine.search.evolution.islands import Errors
from shine.search.evolution.memory import Known
from shine.search.evolution.run_state import State
from shine.search.evolution.scoring import Fitter, Scorer
from shine.search.evolution.settings import EvolutionSettings, StopSettings


@dataclass(frozen=True)
class View:
    """What an evolution sees of a sample of the rows (see `shine.search.evolution.evolution.evolve` for the
    parameters)."""

    evaluator: PopulationEvaluator
    fitter: Fitter | None
    errors: Errors | None
    description: DescriptionLength


def evolve(
    views: Callable[[int], View],
    interval: int,
    primitives: PrimitiveSet,
    settings: EvolutionSettings,
    stop: StopSettings,
    rng: np.random.Generator,
    *,
    report: Callable[[Progress], object] = evolution.ignore,
    state: State | None = None,
    save: Callable[[State], None] = evolution.forget,
    clock: Callable[[], float] = time.monotonic,
    **options: Any,
) -> Outcome:
    """Evolve formulas of low loss.

    Parameters
    ----------
    views : callable
        Number of a sample, from 0 -> what the evolution sees of it.
    interval : int
        Generations that a sample lasts; 0 for ever.
    primitives, settings, stop, rng, report, state, save, clock, options
        As for `shine.search.evolution.evolution.evolve`.
    """
    last = math.inf if stop.generations is None else stop.generations
    told, asked, skipped = -1, False, -1
    latest = state

    def once(progress: Progress) -> object:
        """Report each generation once, although a sample begins with the generation that the one before ended with."""
        nonlocal told, asked
        if progress.generation <= told:
            return asked
        told = progress.generation
        asked = report(progress) is True
        return asked

    def keep(found: State) -> None:
        """Save each generation as it was on the sample that it was made on: the number of that sample follows."""
        nonlocal latest
        if found.generation != skipped:
            save(found)
        latest = found

    # A state is as its last generation was made. Where a sample ends, that generation is reported on the ended sample.
    number = 0 if state is None or not interval else max(state.generation - 1, 0) // interval
    while True:
        view = views(number)
        if latest is not None and number and latest.generation == number * interval:
            latest, skipped = renewed(latest, view, clock), latest.generation
        end = (number + 1) * interval if interval else math.inf
        outcome = evolution.evolve(
            view.evaluator,
            primitives,
            settings,
            replace(stop, generations=None if min(end, last) == math.inf else int(min(end, last))),
            rng,
            fitter=view.fitter,
            errors=view.errors,
            description=view.description,
            report=once,
            state=latest,
            save=keep,
            clock=clock,
            continued=end <= last,
            **options,
        )
        if outcome.stopped_by != "generations" or outcome.generations >= last:
            return outcome
        if asked:
            return replace(outcome, stopped_by="callback")
        number += 1


def renewed(state: State, view: View, clock: Callable[[], float] = time.monotonic) -> State:
    """The state of a run with everybody scored on another sample.

    Parameters
    ----------
    state : State
    view : View
        Of that sample.
    clock : callable
    """
    began, old = clock(), state.archive
    empty = Archive.empty(state.primitives, old.individuals.width, old.weights, view.description.nat)
    scorer = Scorer(view.evaluator, empty, clock, math.inf, view.fitter)
    scorer.scored(old.individuals.take(np.flatnonzero(np.isfinite(old.scores.losses))))
    islands = []
    for island in state.islands:
        population, losses = scorer.scored(island.parents.population)
        islands.append(replace(island, parents=Parents.of(population), losses=losses))
    length = float(scorer.archive.lengths(view.description).min())
    return replace(
        state,
        islands=tuple(islands),
        archive=scorer.archive,
        known=(Known.nobody(),) * len(islands),
        stagnation=Stagnation(length, state.stagnation.fell),
        evaluations=state.evaluations + scorer.evaluations,
        seconds=state.seconds + clock() - began,
    )
