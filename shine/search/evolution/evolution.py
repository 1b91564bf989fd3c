"""The loop of the evolution: create individuals; select, vary, score and let survive, until a limit is reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from shine.base.parallel import Pool
from shine.base.stages import stage
from shine.evaluate.fitness.protocols import PopulationEvaluator
from shine.evaluate.fitness.scores import Scores
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tape import Tape
from shine.lang.population import Population
from shine.lang.subtrees import Parents
from shine.search.description.lengths import DescriptionLength
from shine.search.description.stagnation import Stagnation
from shine.search.evolution.archive import Archive
from shine.search.evolution.epochs import Elsewhere, Epoch, Founding, Here, Passed, Passing, World
from shine.search.evolution.generator_state import generator_state, restored_generator
from shine.search.evolution.islands import Errors, Island, migrated
from shine.search.evolution.memory import Known
from shine.search.evolution.operators.limits import at_width, excess, width_of
from shine.search.evolution.run_state import State, check_state
from shine.search.evolution.scoring import Fitter, OutOfTime, Scorer
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.seeding import Guesses
from shine.search.seeding.effort import allowed_work

Seeding = Callable[[np.random.Generator, float, float], Guesses]
"""Random generator, deadline on the clock, most work -> guesses."""

Reason = Literal["loss", "generations", "seconds", "stagnation", "interrupted", "callback"]


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
    """

    generation: int
    evaluations: int
    seconds: float
    front: Population
    scores: Scores
    write: Callable[[int], str] | None = None

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


def ignore(progress: Progress) -> None:
    """Report nothing."""


def forget(state: State) -> None:
    """Save nothing."""


def nobody() -> None:
    """Let no individual join."""


def evolve(
    evaluator: PopulationEvaluator,
    primitives: PrimitiveSet,
    settings: EvolutionSettings,
    stop: StopSettings,
    rng: np.random.Generator,
    *,
    fitter: Fitter | None = None,
    errors: Errors | None = None,
    initial: Population | None = None,
    seeding: Seeding | None = None,
    description: DescriptionLength | None = None,
    clock: Callable[[], float] = time.monotonic,
    report: Callable[[Progress], object] = ignore,
    state: State | None = None,
    save: Callable[[State], None] = forget,
    arrivals: Callable[[], Population | None] = nobody,
    pool: Pool | None = None,
    continued: bool = False,
    spent: float = 0.0,
) -> Outcome:
    """Evolve formulas of low loss.

    Parameters
    ----------
    evaluator : PopulationEvaluator
    primitives : PrimitiveSet
    settings : EvolutionSettings
    stop : StopSettings
        The loss is checked after each generation, the clock also within one.
    rng : numpy.random.Generator
        Determines the outcome, unless the time or an interrupt ends the run.
    fitter : callable, optional
        Fits the constants of new individuals.
    errors : callable, optional
        Absolute errors on a few rows, for lexicase selection.
    initial : Population, optional
        Guesses: individuals of the first population of the first island, which has fewer random ones.
    seeding : callable, optional
        Looks for more guesses before the evolution.
    description : DescriptionLength, optional
        Shows whether formulas still improve; without it, stagnation does not end the run.
    clock : callable
        Seconds from any origin.
    report : callable
        Called with a `Progress` after each epoch, which is a generation unless there are several islands; the run ends
        if it returns True.
    state : State, optional
        The run goes on from this state as if it had never stopped. The random generator of the state replaces `rng`.
    save : callable
        Called with the `State` after each whole epoch, before the report. An epoch of several islands that the limit of
        generations or of the loss cuts short is passed again by a run that goes on: cut in two, it might end
        otherwise. Taking a state costs nothing: it shares the run's arrays, which never change.
    arrivals : callable
        Asked before each save for individuals from outside, such as a formula that the user wrote. They are scored,
        with fitted constants, and join the first island; the same limits hold as for `initial`.
    pool : Pool, optional
        Where several islands pass their epochs, and what the seeding looks for; without it, in this process. It changes
        no bit of the outcome. All that the search uses must then be picklable.
    continued : bool
        Whether epochs end at the limit of generations in longer runs too, because another sample of the rows follows.
    spent : float
        Seconds of the search so far, part of its limit; a state has its own.

    Returns
    -------
    Outcome
        A KeyboardInterrupt ends the run like a limit of time: the outcome holds the results so far.

    Raises
    ------
    ValueError
        If an initial individual or an arrival exceeds a limit or has another primitive set, or the state belongs to
        another run.
    """
    given = _within_limits(initial, primitives, settings)
    began = clock() - (spent if state is None else state.seconds)
    nat = 0.0 if description is None else description.nat
    archive = Archive.empty(primitives, width_of(primitives, settings.max_size), settings.complexity, nat)
    if state is not None:
        check_state(state, primitives, settings)
        archive = replace(state.archive, nat=nat)
        rng = restored_generator(state.random)
    deadline = float("inf") if stop.seconds is None else began + stop.seconds
    world = World(primitives, settings, evaluator, fitter, errors, description, stop.loss)
    elsewhere = None if pool is None or settings.islands == 1 else Elsewhere(pool)
    run = _Run(
        world, stop, rng, clock, began, deadline, archive, elsewhere or Here(clock, deadline), arrivals, continued
    )
    first = partial(run.begun, given, seeding) if state is None else partial(run.resumed, state)
    try:
        reason = run.complete(first, report, save)
    finally:
        if elsewhere is not None:
            elsewhere.close()
    front, scores = run.archive.front(stop.loss)
    return Outcome(front, scores, run.archive, run.generation, run.evaluations, clock() - began, reason)


class _Run:
    """A run in progress; `generation` counts the complete generations after the first populations."""

    def __init__(
        self,
        world: World,
        stop: StopSettings,
        rng: np.random.Generator,
        clock: Callable[[], float],
        began: float,
        deadline: float,
        archive: Archive,
        passing: Passing,
        arrivals: Callable[[], Population | None],
        continued: bool,
    ) -> None:
        self.world, self.stop, self.rng, self.archive = world, stop, rng, archive
        self.clock, self.began, self.deadline = clock, began, deadline
        self.passing, self.arrivals, self.continued = passing, arrivals, continued
        self.whole = True
        self.known: list[Known] = [Known.nobody()] * world.settings.islands
        self.generation = self.evaluations = 0
        self.stagnation = Stagnation()
        # Epochs end when islands migrate, or when one of them may begin anew.
        settings = world.settings
        several = settings.islands > 1
        self.interval = settings.migration_interval if several else 1
        self.length = min(self.interval, *(settings.of_island(number).patience for number in range(settings.islands)))
        # Checks that all islands can live.
        self.habitats = [world.habitat(number, self._scorer()) for number in range(world.settings.islands)]

    def complete(
        self,
        first: Callable[[], list[Island]],
        report: Callable[[Progress], object],
        save: Callable[[State], None],
    ) -> Reason:
        """Run to the end; return what ended the run."""
        try:
            islands = first()
            while True:
                islands = self._with_arrivals(islands)
                stagnant = self._stagnant()
                if self.whole:
                    save(self._state(islands))
                enough = report(self._progress()) is True
                if self.archive.solved(self.stop.loss, self.world.description):
                    return "loss"
                if self.stop.generations is not None and self.generation >= self.stop.generations:
                    return "generations"
                if enough:
                    return "callback"
                if stagnant:
                    return "stagnation"
                generations = self._to_next_epoch()
                islands = self._passed([self._fresh(*each) for each in enumerate(islands)], islands, generations)
                if len(islands) > 1 and self.generation % self.world.settings.migration_interval == 0:
                    islands = migrated(islands, self.habitats)
        except OutOfTime:
            return "seconds"
        except KeyboardInterrupt:
            return "interrupted"

    def begun(self, given: Population, seeding: Seeding | None) -> list[Island]:
        """The first populations."""
        settings = self.world.settings
        if seeding is not None and settings.seeding and self.stop.generations != 0:
            given = self._with_guesses(given, seeding)
        # Guesses go to the first island only: if they lead into a local optimum, the other islands may avoid it.
        nobody = given.take(np.zeros(0, np.int64))
        randoms = [rng.bit_generator.state for rng in self.rng.spawn(settings.islands)]
        foundings = [Founding(given if i == 0 else nobody, random, 0) for i, random in enumerate(randoms)]
        return self._passed(foundings, [], 0)

    def resumed(self, state: State) -> list[Island]:
        """The populations of an earlier part of the run."""
        if len(state.parts):
            self.world = replace(self.world, parts=Parents.of(state.parts))
        self.generation, self.stagnation = state.generation, state.stagnation
        self.known, self.evaluations = list(state.known), state.evaluations
        return list(state.islands)

    @property
    def _in_epoch(self) -> int:
        """Generations since the last epoch; not 0 only if a limit ended a former part of the run within one."""
        return self.generation % self.interval % self.length

    def _to_next_epoch(self) -> int:
        """Generations that the islands pass apart."""
        generations = min(self.length - self._in_epoch, self.interval - self.generation % self.interval)
        left = generations if self.stop.generations is None else self.stop.generations - self.generation
        self.whole = generations <= left or self.continued
        return min(generations, left)

    def _passed(self, starts: Sequence[Island | Founding], before: Sequence[Island], generations: int) -> list[Island]:
        """The islands after an epoch.

        If an island finds what ends the run, those after it stay as they were, however far they have come elsewhere.
        """
        deadline = time.time() + self.deadline - self.clock()
        epochs = [
            Epoch(number, start, self.known[number], self.archive, generations, deadline)
            for number, start in enumerate(starts)
        ]
        after: list[Island] = []
        ended, latest = "", 0
        for number, passed in enumerate(self.passing(self.world, epochs)):
            self._take(number, passed)
            self.whole &= passed.generations == generations
            ended, latest = passed.ended or ended, max(latest, passed.generations)
            if passed.island is not None:
                after.append(passed.island)
            if ended in ("solved", "interrupted"):
                break
        if ended == "interrupted":
            raise KeyboardInterrupt
        if ended == "seconds":
            raise OutOfTime
        self.generation += latest
        self.whole &= len(after) == len(epochs)
        return [*after, *before[len(after) :]]

    def _take(self, number: int, passed: Passed) -> None:
        """Keep what an island has found in an epoch."""
        several = self.world.settings.islands > 1
        self.archive = self.archive.merged(passed.archive) if several else passed.archive
        self.known[number] = passed.known
        self.evaluations += passed.evaluations

    def _scorer(self, known: Known | None = None) -> Scorer:
        """A scorer in this process."""
        return self.world.scorer(self.clock, self.deadline, self.archive, known)

    def _with_arrivals(self, islands: list[Island]) -> list[Island]:
        """The islands after individuals from outside have joined the first one."""
        arrived = self.arrivals()
        if arrived is None or not len(arrived):
            return islands
        scorer, world = self._scorer(self.known[0]), self.world
        found = scorer.scored(_within_limits(arrived, world.primitives, world.settings, "arriving"))
        self.archive, self.evaluations = scorer.archive, self.evaluations + scorer.evaluations
        self.known[0] = scorer.known
        return [self.habitats[0].joined(islands[0], *found), *islands[1:]]

    def _with_guesses(self, given: Population, seeding: Seeding) -> Population:
        """The given individuals and the guesses of the seeding, whose useful parts join the world."""
        settings, width, now = self.world.settings, given.width, self.clock()
        deadline = now + settings.seeding * (self.deadline - now)
        work = allowed_work(self.stop.generations, settings.population * settings.islands, settings.seeding)
        with stage("looking for formulas to start from"):
            guesses = seeding(self.rng.spawn(1)[0], deadline, work)
        found = Population.concatenate([given, at_width(guesses.candidates, width)])
        if guesses.interrupted or self.clock() >= self.deadline:
            # The constants of guesses are fitted; fitting them again would keep the user waiting.
            scorer = self._scorer()
            scorer.show(found)
            self.archive, self.evaluations = scorer.archive, scorer.evaluations
            raise KeyboardInterrupt if guesses.interrupted else OutOfTime
        if len(guesses.parts):
            self.world = replace(self.world, parts=Parents.of(at_width(guesses.parts, width)))
        return found

    def _stagnant(self) -> bool:
        """Whether formulas have not improved for long; notes whether they did in this epoch."""
        description, archive = self.world.description, self.archive
        # A run that goes on beyond its limit looks at its islands when a longer run would have.
        if description is None or self._in_epoch:
            return False
        lengths = archive.lengths(description)
        best = int(np.argmin(lengths))
        self.stagnation = self.stagnation.after(float(lengths[best]), self.generation)
        if self.stop.stagnation is None:
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
        nobody = island.parents.population.take(np.zeros(0, np.int64))
        return Founding(nobody, self.rng.spawn(1)[0].bit_generator.state, island.life + 1)

    def _state(self, islands: Sequence[Island]) -> State:
        parts = self.world.parts
        nobody = islands[0].parents.population.take(np.zeros(0, np.int64))
        return State(
            tuple(islands),
            self.archive,
            tuple(self.known),
            nobody if parts is None else parts.population,
            self.generation,
            self.stagnation,
            self.evaluations,
            self.clock() - self.began,
            generator_state(self.rng),
        )

    def _progress(self) -> Progress:
        front, scores = self.archive.front(self.stop.loss)
        return Progress(self.generation, self.evaluations, self.clock() - self.began, front, scores)


def _within_limits(
    given: Population | None, primitives: PrimitiveSet, settings: EvolutionSettings, kind: str = "initial"
) -> Population:
    """The given individuals at the width of the run; an error if one exceeds a limit."""
    width = width_of(primitives, settings.max_size)
    if given is None or not len(given):
        return Population(np.zeros((0, width), np.int16), np.zeros((0, width)), np.zeros(0, np.int64), primitives)
    if given.primitives != primitives:
        raise ValueError(f"the {kind} individuals have another primitive set than the run; make them with its set")
    exceeding = excess(given, settings.max_size, settings.max_depth)
    if exceeding is not None:
        worst, problem = exceeding
        raise ValueError(f"{kind} individual {worst} {problem} or leave the individual out")
    return at_width(given, width)
