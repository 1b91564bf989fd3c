"""The loop of the evolution: create individuals; select, vary, score and let survive, until a limit is reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from shine.fitness.protocols import PopulationEvaluator
from shine.fitness.scores import Scores
from shine.gp.archive import Archive
from shine.gp.description import DescriptionLength
from shine.gp.generator_state import generator_state, restored_generator
from shine.gp.islands import Errors, Habitat, Island, migrated
from shine.gp.limits import at_width, formula_depths, formula_limits, formula_sizes, width_of
from shine.gp.run_state import State, check_state
from shine.gp.scoring import Fitter, OutOfTime, Scorer
from shine.gp.seeding import Guesses
from shine.gp.seeding.effort import allowed_work
from shine.gp.settings import EvolutionSettings, StopSettings
from shine.gp.stagnation import Stagnation
from shine.gp.subtrees import Parents
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.lang.tape import Tape
from shine.stages import stage

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
        Since the run began.
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
        Called with a `Progress` after each generation; the run ends if it returns True.
    state : State, optional
        The run goes on from this state as if it had never stopped. The random generator of the state replaces `rng`.
    save : callable
        Called with the `State` after each generation, before the report. Taking a state costs nothing: it shares the
        run's arrays, which never change.
    arrivals : callable
        Asked before each save for individuals from outside, such as a formula that the user wrote. They are scored,
        with fitted constants, and join the first island; the same limits hold as for `initial`.

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
    began = clock()
    nat = 0.0 if description is None else description.nat
    archive = Archive.empty(primitives, width_of(primitives, settings.max_size), settings.complexity, nat)
    known, evaluations = None, 0
    if state is not None:
        check_state(state, primitives, settings)
        archive, known, evaluations = replace(state.archive, nat=nat), state.known, state.evaluations
        rng, began = restored_generator(state.random), began - state.seconds
    deadline = float("inf") if stop.seconds is None else began + stop.seconds
    scorer = Scorer(evaluator, archive, clock, deadline, fitter, known, evaluations)
    run = _Run(Habitat(primitives, settings, scorer, errors), stop, rng, clock, began, description, arrivals)
    first = partial(run.begun, given, seeding) if state is None else partial(run.resumed, state)
    reason = run.complete(first, report, save)
    front, scores = scorer.archive.front(stop.loss)
    return Outcome(front, scores, scorer.archive, run.generation, scorer.evaluations, clock() - began, reason)


class _Run:
    """A run in progress; `generation` counts the complete generations after the first populations."""

    def __init__(
        self,
        habitat: Habitat,
        stop: StopSettings,
        rng: np.random.Generator,
        clock: Callable[[], float],
        began: float,
        description: DescriptionLength | None,
        arrivals: Callable[[], Population | None],
    ) -> None:
        self.habitat, self.stop, self.rng, self.clock, self.began = habitat, stop, rng, clock, began
        self.description, self.arrivals = description, arrivals
        self.generation = 0
        self.stagnation = Stagnation()

    def complete(
        self,
        first: Callable[[], list[Island]],
        report: Callable[[Progress], object],
        save: Callable[[State], None],
    ) -> Reason:
        """Run to the end; return what ended the run."""
        try:
            islands = first()
            habitat = self.habitat
            while True:
                islands = self._with_arrivals(islands)
                stagnant = self._stagnant()
                save(self._state(islands))
                enough = report(self._progress()) is True
                if habitat.scorer.archive.solved(self.stop.loss, self.description):
                    return "loss"
                if self.stop.generations is not None and self.generation >= self.stop.generations:
                    return "generations"
                if enough:
                    return "callback"
                if stagnant:
                    return "stagnation"
                islands = [habitat.stepped(self._fresh(island)) for island in islands]
                generation = self.generation + 1
                if len(islands) > 1 and generation % habitat.settings.migration_interval == 0:
                    islands = migrated(islands, habitat)
                self.generation = generation
        except OutOfTime:
            return "seconds"
        except KeyboardInterrupt:
            return "interrupted"

    def begun(self, given: Population, seeding: Seeding | None) -> list[Island]:
        """The first populations."""
        settings = self.habitat.settings
        if seeding is not None and settings.seeding and self.stop.generations != 0:
            given = self._with_guesses(given, seeding)
        # Guesses go to the first island only: if they lead into a local optimum, the other islands may avoid it.
        nobody = given.take(np.zeros(0, np.int64))
        randoms = self.rng.spawn(settings.islands)
        return [self.habitat.settled(given if i == 0 else nobody, rng) for i, rng in enumerate(randoms)]

    def resumed(self, state: State) -> list[Island]:
        """The populations of an earlier part of the run."""
        if len(state.parts):
            self.habitat = replace(self.habitat, parts=Parents.of(state.parts))
        self.generation, self.stagnation = state.generation, state.stagnation
        return list(state.islands)

    def _with_arrivals(self, islands: list[Island]) -> list[Island]:
        """The islands after individuals from outside have joined the first one."""
        arrived = self.arrivals()
        if arrived is None or not len(arrived):
            return islands
        settings = self.habitat.settings
        found = self.habitat.scorer.scored(_within_limits(arrived, self.habitat.primitives, settings, "arriving"))
        return [self.habitat.joined(islands[0], *found), *islands[1:]]

    def _with_guesses(self, given: Population, seeding: Seeding) -> Population:
        """The given individuals and the guesses of the seeding, whose useful parts join the habitat."""
        settings, seconds = self.habitat.settings, self.stop.seconds
        width = given.width
        deadline = float("inf") if seconds is None else self.began + settings.seeding * seconds
        work = allowed_work(self.stop.generations, settings.population * settings.islands, settings.seeding)
        with stage("looking for formulas to start from"):
            guesses = seeding(self.rng.spawn(1)[0], deadline, work)
        found = Population.concatenate([given, at_width(guesses.candidates, width)])
        if guesses.interrupted:
            # The constants of guesses are fitted; fitting them again would keep the user waiting.
            self.habitat.scorer.show(found)
            raise KeyboardInterrupt
        if len(guesses.parts):
            parts = Parents.of(at_width(guesses.parts, width))
            self.habitat = replace(self.habitat, parts=parts)
        return found

    def _stagnant(self) -> bool:
        """Whether formulas have not improved for long; notes whether they did in this generation."""
        if self.description is None:
            return False
        archive = self.habitat.scorer.archive
        lengths = archive.lengths(self.description)
        best = int(np.argmin(lengths))
        self.stagnation = self.stagnation.after(float(lengths[best]), self.generation)
        if self.stop.stagnation is None:
            return False
        frame = archive.individuals.primitives.frame
        size = int(archive.individuals.sizes[best]) - frame if np.isfinite(lengths[best]) else 0
        share = size / (archive.individuals.width - frame)
        return self.stagnation.is_over(self.generation, self.stop.stagnation, share)

    def _fresh(self, island: Island) -> Island:
        """The island, or a new one if it has stagnated."""
        if island.generation - island.improved < self.habitat.settings.patience:
            return island
        nobody = island.parents.population.take(np.zeros(0, np.int64))
        return self.habitat.settled(nobody, self.rng.spawn(1)[0], island.life + 1)

    def _state(self, islands: Sequence[Island]) -> State:
        scorer, parts = self.habitat.scorer, self.habitat.parts
        nobody = islands[0].parents.population.take(np.zeros(0, np.int64))
        return State(
            tuple(islands),
            scorer.archive,
            scorer.known,
            nobody if parts is None else parts.population,
            self.generation,
            self.stagnation,
            scorer.evaluations,
            self.clock() - self.began,
            generator_state(self.rng),
        )

    def _progress(self) -> Progress:
        archive = self.habitat.scorer.archive
        front, scores = archive.front(self.stop.loss)
        return Progress(self.generation, self.habitat.scorer.evaluations, self.clock() - self.began, front, scores)


def _within_limits(
    given: Population | None, primitives: PrimitiveSet, settings: EvolutionSettings, kind: str = "initial"
) -> Population:
    """The given individuals at the width of the run; an error if one exceeds a limit."""
    width = width_of(primitives, settings.max_size)
    if given is None or not len(given):
        return Population(np.zeros((0, width), np.int16), np.zeros((0, width)), np.zeros(0, np.int64), primitives)
    if given.primitives != primitives:
        raise ValueError(f"the {kind} individuals have another primitive set than the run; make them with its set")
    most_nodes, most_levels = formula_limits(primitives, settings.max_size, settings.max_depth)
    for unit, setting, limits, found in (
        ("nodes", "max_size", most_nodes, formula_sizes(given)),
        ("levels", "max_depth", most_levels, formula_depths(given)),
    ):
        worst, formula = divmod(int(np.argmax(found - limits)), found.shape[1])
        if found[worst, formula] > limits[formula]:
            raise ValueError(
                f"{kind} individual {worst} has {found[worst, formula]} {unit}, and {setting} is {limits[formula]}; "
                f"raise {setting} or leave the individual out"
            )
    return at_width(given, width)
