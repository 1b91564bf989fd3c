"""The loop of the evolution: create individuals; select, vary, score and let survive, until a limit is reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from shine.base.stages import stage
from shine.evaluate.scores import Scores
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.growth import mixed, random_key
from shine.lang.population import Population
from shine.search.description import FEWEST, Stagnation
from shine.search.evolution.archive import Archive
from shine.search.evolution.epochs import Epoch, EpochResult, Founding, LocalEpochs, WorkerEpochs, World
from shine.search.evolution.islands import Island, migrated
from shine.search.evolution.memory import Known
from shine.search.evolution.observers import NOBODY, Observers, Progress, is_true
from shine.search.evolution.operators.slots import at_width, excess, width_of
from shine.search.evolution.run_state import State, check_state
from shine.search.evolution.scoring import OutOfTime, Scorer, Scoring
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.seeding import Guesses, Slices
from shine.search.seeding.effort import Deadline
from shine.search.seeding.slices import due_slices

Reason = Literal["loss", "generations", "seconds", "stagnation", "interrupted", "callback"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a run.

    Parameters
    ----------
    front : Population
        Individuals with a lower loss than every simpler one, in ascending complexity; empty if no individual has a
        finite loss. The last one is the best. The front ends with the first that reaches the loss to stop at.
    scores : Scores
        Scores of the front; the losses strictly decrease.
    archive : Archive
        The best individual of every complexity, including individuals that a simpler one beats.
    generations : int
        Complete generations after the first population.
    evaluations : int
        Distinct individuals evaluated.
    seconds : float
    stopped_by : {"loss", "generations", "seconds", "stagnation", "interrupted", "callback"}
    """

    front: Population
    scores: Scores
    archive: Archive
    generations: int
    evaluations: int
    seconds: float
    stopped_by: Reason


@dataclass(frozen=True, eq=False)
class Start:
    """Start of a run: primitives, guesses, seeding.

    Parameters
    ----------
    primitives : PrimitiveSet
    guesses : Population, optional
        Individuals of the first population of the first island, which has fewer random ones.
    seeding : Slices, optional
        Looks for more guesses before the evolution, and in turn with it.
    """

    primitives: PrimitiveSet
    guesses: Population | None = None
    seeding: Slices | None = None


def evolve(
    scoring: Scoring,
    start: Start,
    settings: EvolutionSettings,
    stop: StopSettings,
    rng: np.random.Generator,
    observers: Observers = NOBODY,
    continued: bool = False,
) -> Outcome:
    """Evolve formulas of low loss.

    Parameters
    ----------
    scoring : Scoring
        Without a description length, stagnation does not end the run.
    start : Start
    settings : EvolutionSettings
    stop : StopSettings
        The loss is checked after each generation, the clock also within one.
    rng : numpy.random.Generator
        Determines the outcome, unless the time or an interrupt ends the run.
    observers : Observers
        Individuals that arrive are scored, with fitted constants, and join the first island; the same limits hold as
        for guesses.
    continued : bool
        Whether epochs end at the limit of generations in longer runs too, because another sample of the rows follows.

    Returns
    -------
    Outcome
        A KeyboardInterrupt ends the run like a limit of time: the outcome holds the results so far.

    Raises
    ------
    ValueError
        If a guess or an arrival exceeds a limit or has another primitive set, or the state belongs to another run.
    """
    run = _Run(World(start.primitives, settings, scoring, stop.loss), stop, rng, observers, continued)
    first = partial(run.begun, start) if observers.state is None else partial(run.resumed, start, observers.state)
    _within_limits(start.guesses, start.primitives, settings)
    try:
        reason = run.complete(first)
    finally:
        run.epochs.close()
    front, scores = run.archive.front(stop.loss)
    return Outcome(front, scores, run.archive, run.generation, run.evaluations, run.seconds, reason)


class _Run:
    """A run in progress; `generation` counts the complete generations after the first populations."""

    def __init__(
        self, world: World, stop: StopSettings, rng: np.random.Generator, observers: Observers, continued: bool
    ) -> None:
        state = observers.state
        if state is not None:
            world = replace(world, settings=settings_of(state, world.primitives, world.settings))
        settings = world.settings
        self.world, self.stop, self.observers, self.continued = world, stop, observers, continued
        self.began = observers.origin
        limit = float("inf") if stop.seconds is None else self.began + stop.seconds
        self.deadline = Deadline(observers.clock, limit)
        if state is None:
            width = width_of(world.primitives, settings.max_size)
            self.key, self.archive = random_key(rng), Archive.empty(world.primitives, width, settings.complexity)
        else:
            self.key, self.archive = state.key, state.archive
        pool = observers.pool
        self.epochs = LocalEpochs(self.deadline) if pool is None or settings.islands == 1 else WorkerEpochs(pool)
        self.full_epoch = True
        self.known: list[Known] = [Known.nobody()] * world.settings.islands
        self.generation = self.evaluations = self.refuted = 0
        self.stagnation = Stagnation()
        self.seeding: Slices | None = None
        # Epochs end when islands migrate, or when one of them may begin anew.
        several = settings.islands > 1
        self.interval = settings.migration_interval if several else 1
        self.length = min(self.interval, *(settings.of_island(number).patience for number in range(settings.islands)))
        # Checks that all islands can live.
        self.habitats = [world.habitat(number, self._scorer()) for number in range(settings.islands)]

    @property
    def seconds(self) -> float:
        """Seconds of the run so far."""
        return self.observers.clock() - self.began

    def complete(self, first: Callable[[], list[Island]]) -> Reason:
        """Run to the end; return what ended the run."""
        try:
            islands = first()
            while True:
                islands = self._with_slice(self._with_arrivals(islands))
                stagnant = self._stagnant()
                if self.full_epoch:
                    self.observers.save(self._state(islands))
                enough = is_true(self.observers.report(self._progress()))
                if self.archive.solved(self.stop.loss, self.world.scoring.description):
                    return "loss"
                if self.stop.generations is not None and self.generation >= self.stop.generations:
                    return "generations"
                if enough:
                    return "callback"
                if stagnant:
                    return "stagnation"
                generations = self._to_next_epoch()
                islands = self._after_epoch([self._fresh(*each) for each in enumerate(islands)], islands, generations)
                if len(islands) > 1 and self.generation % self.world.settings.migration_interval == 0:
                    islands = migrated(islands, self.habitats)
        except OutOfTime:
            return "seconds"
        except KeyboardInterrupt:
            return "interrupted"

    def begun(self, start: Start) -> list[Island]:
        """The first populations."""
        settings = self.world.settings
        guesses = _within_limits(start.guesses, start.primitives, settings)
        if start.seeding is not None and settings.seeding and self.stop.generations != 0:
            self._begin_seeding(start.seeding)
            guesses = self._with_guesses(guesses)
        # Guesses go to the first island only: if they lead into a local optimum, the other islands may avoid it.
        nobody = guesses.take(np.zeros(0, np.int64))
        foundings = [
            Founding(nobody if number else guesses, self._key(number, 0), 0) for number in range(settings.islands)
        ]
        return self._after_epoch(foundings, [], 0)

    def _begin_seeding(self, seeding: Slices, known: int = -1) -> None:
        seeding.start(np.random.default_rng(self.key), known)
        self.seeding = seeding

    @property
    def _due_slices(self) -> int:
        settings = self.world.settings
        return due_slices(self.generation * settings.population * settings.islands, settings.seeding)

    def resumed(self, start: Start, state: State) -> list[Island]:
        """The populations of an earlier part of the run."""
        if len(state.parts):
            self.world = replace(self.world, parts=state.parts)
        self.generation, self.stagnation = state.generation, state.stagnation
        self.known, self.evaluations = list(state.known), state.evaluations
        if start.seeding is not None and self.world.settings.seeding:
            self._begin_seeding(start.seeding, self._due_slices)
        return list(state.islands)

    @property
    def _in_epoch(self) -> int:
        """Generations since the last epoch; not 0 only if a limit ended a former part of the run within one."""
        return self.generation % self.interval % self.length

    def _to_next_epoch(self) -> int:
        """Generations that the islands pass apart."""
        generations = min(self.length - self._in_epoch, self.interval - self.generation % self.interval)
        left = generations if self.stop.generations is None else self.stop.generations - self.generation
        self.full_epoch = generations <= left or self.continued
        return min(generations, left)

    def _after_epoch(
        self, starts: Sequence[Island | Founding], before: Sequence[Island], generations: int
    ) -> list[Island]:
        """The islands after an epoch.

        If an island finds what ends the run, those after it stay as they were, however far they have come elsewhere.
        """
        deadline = time.time() + self.deadline.left
        epochs = [
            Epoch(number, start, self.known[number], self.archive, generations, deadline)
            for number, start in enumerate(starts)
        ]
        after: list[Island] = []
        ended, latest = "", 0
        for number, result in enumerate(self.epochs(self.world, epochs)):
            self._take(number, result)
            self.full_epoch &= result.generations == generations
            ended, latest = result.ended or ended, max(latest, result.generations)
            if result.island is not None:
                after.append(result.island)
            if ended in ("solved", "interrupted"):
                break
        if ended == "interrupted":
            raise KeyboardInterrupt
        if ended == "seconds":
            raise OutOfTime
        self.generation += latest
        self.full_epoch &= len(after) == len(epochs)
        return [*after, *before[len(after) :]]

    def _take(self, number: int, result: EpochResult) -> None:
        """Keep what an island has found in an epoch."""
        several = self.world.settings.islands > 1
        self.archive = (
            self.archive.joined(result.archive.individuals, result.archive.scores) if several else result.archive
        )
        self.known[number] = result.known
        self.evaluations += result.evaluations
        self.refuted += result.refuted

    def _scorer(self, known: Known | None = None) -> Scorer:
        """A scorer in this process."""
        return self.world.scorer(self.deadline, self.archive, known)

    def _with_arrivals(self, islands: list[Island]) -> list[Island]:
        """The islands after individuals from outside have joined the first one."""
        arrived, world = self.observers.arrivals(), self.world
        if arrived is None:
            return islands
        return self._joined(islands, _within_limits(arrived, world.primitives, world.settings, "arriving"))

    def _with_slice(self, islands: list[Island]) -> list[Island]:
        """The islands after the guesses of the slices of the seeding that are due have joined the first one."""
        found = None if self.seeding is None else self.seeding.until(self._due_slices, self.deadline)
        if found is None:
            return islands
        guesses = self._taken_in(found)
        islands = [replace(each, parents=at_width(each.parents, guesses.width)) for each in islands]
        islands = self._joined(islands, guesses)
        if found.interrupted:
            raise KeyboardInterrupt
        return islands

    def _joined(self, islands: list[Island], arrived: Population) -> list[Island]:
        if not len(arrived):
            return islands
        scorer = self._scorer(self.known[0])
        found = scorer.scored(arrived)
        self.archive, self.evaluations = scorer.archive, self.evaluations + scorer.evaluations
        self.known[0] = scorer.known
        return [self.habitats[0].joined(islands[0], *found), *islands[1:]]

    def _with_guesses(self, guesses: Population) -> Population:
        """The given individuals and those of the first slice of the seeding."""
        now = self.observers.clock()
        pause = Deadline(self.observers.clock, now + self.world.settings.seeding * (self.deadline.at - now))
        assert self.seeding is not None
        with stage("looking for formulas to start from"):
            found = self.seeding.until(0, self.deadline, pause)
        if found is None:
            return guesses
        everyone = self._taken_in(found)
        everyone = Population.concatenate([at_width(guesses, everyone.width), everyone])
        if found.interrupted or self.deadline.is_over:
            # The constants of guesses are fitted; fitting them again would keep the user waiting.
            scorer = self._scorer()
            scorer.show(everyone)
            self.archive, self.evaluations = scorer.archive, scorer.evaluations
            if found.interrupted:
                raise KeyboardInterrupt
            # Without any formula, the first population is scored until there is one.
            if np.isfinite(self.archive.scores.losses).any():
                raise OutOfTime
        return everyone

    def _taken_in(self, found: Guesses) -> Population:
        """The guesses at the width of the run. Their useful parts join the world, which makes room for an exact one."""
        width, longest = self.archive.individuals.width, found.candidates.width
        if longest > width:
            # An exact formula is longer than others may be.
            width = longest
            self.world = replace(self.world, settings=_wider(self.world.settings, width))
            self.archive = self.archive.joined(at_width(self.archive.individuals, width), self.archive.scores)
            self.known = [Known.nobody()] * len(self.habitats)
            self.habitats = [self.world.habitat(number, self._scorer()) for number in range(len(self.habitats))]
        if len(found.parts):
            self.world = replace(self.world, parts=at_width(found.parts, width))
        return at_width(found.candidates, width)

    def _stagnant(self) -> bool:
        """Whether formulas have not improved for long; notes whether they did in this epoch."""
        description, archive = self.world.scoring.description, self.archive
        # A run that goes on beyond its limit looks at its islands when a longer run would have.
        if description is None or self._in_epoch:
            return False
        lengths = archive.lengths(description)
        best = int(np.argmin(lengths))
        self.stagnation = self.stagnation.after(float(lengths[best]), self.generation)
        if self.stop.stagnation is None or self.generation - self.stagnation.fell < min(self.stop.stagnation, FEWEST):
            return False
        frame = archive.individuals.primitives.frame
        size = int(archive.individuals.sizes[best]) - frame if np.isfinite(lengths[best]) else 0
        share = size / (archive.individuals.width - frame)
        return self.stagnation.is_over(self.generation, self.stop.stagnation, share, archive.gain(description))

    def _fresh(self, number: int, island: Island) -> Island | Founding:
        """The island, or a new one if it has stagnated."""
        patience = self.world.settings.of_island(number).patience
        if self._in_epoch or island.generation - island.improved < patience:
            return island
        nobody = island.parents.take(np.zeros(0, np.int64))
        return Founding(nobody, self._key(number, island.life + 1), island.life + 1)

    def _key(self, number: int, life: int) -> int:
        """The key of the random numbers of an island in one of its lives."""
        return mixed(mixed(self.key + number) + life)

    def _state(self, islands: Sequence[Island]) -> State:
        parts = self.world.parts
        return State(
            tuple(islands),
            self.archive,
            tuple(self.known),
            islands[0].parents.take(np.zeros(0, np.int64)) if parts is None else parts,
            self.generation,
            self.stagnation,
            self.evaluations,
            self.seconds,
            self.key,
        )

    def _progress(self) -> Progress:
        front, scores = self.archive.front(self.stop.loss)
        return Progress(self.generation, self.evaluations, self.seconds, front, scores, refuted=self.refuted)


def settings_of(state: State, primitives: PrimitiveSet, settings: EvolutionSettings) -> EvolutionSettings:
    """The settings of a run that goes on from a state; a `StrangeStateError` if it belongs to another run."""
    width = state.archive.individuals.width
    settings = _wider(settings, width) if settings.max_size < width <= settings.longest else settings
    check_state(state, primitives, settings)
    return settings


def _wider(settings: EvolutionSettings, width: int) -> EvolutionSettings:
    """The settings for formulas of so many nodes."""
    return replace(settings, max_size=width, max_exact_size=settings.longest)


def _within_limits(
    guesses: Population | None, primitives: PrimitiveSet, settings: EvolutionSettings, kind: str = "initial"
) -> Population:
    """The given individuals at the width of the run; an error if one exceeds a limit."""
    width = width_of(primitives, settings.max_size)
    if guesses is None or not len(guesses):
        return Population(np.zeros((0, width), np.int16), np.zeros((0, width)), np.zeros(0, np.int64), primitives)
    if guesses.primitives != primitives:
        raise ValueError(f"the {kind} individuals have another primitive set than the run; make them with its set")
    exceeding = excess(guesses, settings.max_size, settings.max_depth)
    if exceeding is not None:
        worst, problem = exceeding
        named = f"guesses: {kind}" if kind == "initial" else kind
        raise ValueError(f"{named} individual {worst} {problem} or leave the individual out")
    return at_width(guesses, width)
