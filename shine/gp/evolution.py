"""The run: create, then select, vary, score and survive, until something says stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shine.fitness import PopulationEvaluator, Scores
from shine.gp.archive import Archive
from shine.gp.creation import Terminals, ptc2, ramped_half_and_half
from shine.gp.offspring import breed
from shine.gp.scoring import OutOfTime, Scorer
from shine.gp.selection import ranking, survivors
from shine.gp.settings import EvolutionSettings, StopSettings
from shine.gp.structure import Parents, depths
from shine.lang.population import Population
from shine.lang.primitives import PrimitiveSet
from shine.lang.tape import Tape

Reason = Literal["loss", "generations", "seconds", "interrupted"]


@dataclass(frozen=True, eq=False)
class Progress:
    """How far a run has come, after each generation.

    Parameters
    ----------
    generation : int
        0 is the first population.
    evaluations : int
        Distinct individuals evaluated so far.
    seconds : float
        Since the run began.
    front : Population
        Best individuals so far, as in `Outcome`.
    scores : Scores
        Of the front.
    """

    generation: int
    evaluations: int
    seconds: float
    front: Population
    scores: Scores

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
    """What a run found.

    Parameters
    ----------
    front : Population
        The individuals that no smaller one equals or betters, in ascending size; empty when no individual had a
        finite loss. The last one is the best; none follows the first that reaches the loss to stop at.
    scores : Scores
        Of the front; strictly decreasing losses.
    generations : int
        Complete generations after the first population.
    evaluations : int
        Distinct individuals evaluated.
    seconds : float
    stopped_by : {"loss", "generations", "seconds", "interrupted"}
    """

    front: Population
    scores: Scores
    generations: int
    evaluations: int
    seconds: float
    stopped_by: Reason


def ignore(progress: Progress) -> None:
    """Report to nobody."""


def evolve(
    evaluator: PopulationEvaluator,
    primitives: PrimitiveSet,
    settings: EvolutionSettings,
    stop: StopSettings,
    rng: np.random.Generator,
    *,
    initial: Population | None = None,
    clock: Callable[[], float] = time.monotonic,
    report: Callable[[Progress], None] = ignore,
) -> Outcome:
    """Evolve formulas of low loss.

    Parameters
    ----------
    evaluator : PopulationEvaluator
    primitives : PrimitiveSet
    settings : EvolutionSettings
    stop : StopSettings
        The loss is looked at after each generation, the clock also within one.
    rng : numpy.random.Generator
        Decides the outcome entirely, unless time or an interrupt ends the run.
    initial : Population, optional
        Individuals that join the first population, in place of as many random ones.
    clock : callable
        Seconds from any origin.
    report : callable
        Called with a `Progress` after each generation.

    Returns
    -------
    Outcome
        A KeyboardInterrupt ends the run like a limit of time does: what was found so far is returned.

    Raises
    ------
    ValueError
        If an initial individual exceeds a limit or is of another primitive set.
    """
    given = _within_limits(initial, primitives, settings)
    run = _Run(evaluator, primitives, settings, stop, rng, clock)
    reason = run.complete(given, report)
    front, scores = run.scorer.archive.front(stop.loss)
    return Outcome(front, scores, run.generation, run.scorer.evaluations, clock() - run.began, reason)


class _Run:
    """The state of a run; `generation` counts the complete ones after the first population."""

    def __init__(
        self,
        evaluator: PopulationEvaluator,
        primitives: PrimitiveSet,
        settings: EvolutionSettings,
        stop: StopSettings,
        rng: np.random.Generator,
        clock: Callable[[], float],
    ) -> None:
        self.began = clock()
        deadline = float("inf") if stop.seconds is None else self.began + stop.seconds
        self.scorer = Scorer(evaluator, Archive.empty(primitives, settings.max_size), clock, deadline)
        self.primitives, self.settings, self.stop, self.rng, self.clock = primitives, settings, stop, rng, clock
        self.terminals = Terminals(settings.constants, settings.constant_share)
        self.generation = 0

    def complete(self, given: Population, report: Callable[[Progress], None]) -> Reason:
        """Run to the end, and say what ended it."""
        try:
            population = Population.concatenate([given, self._first(self.settings.population - len(given))])
            losses = self.scorer.losses(population)
            parents = Parents.of(population)
            while True:
                report(self._progress())
                if self.scorer.archive.best_loss <= self.stop.loss:
                    return "loss"
                if self.generation >= self.stop.generations:
                    return "generations"
                parents, losses = self._next(parents, losses)
                self.generation += 1
        except OutOfTime:
            return "seconds"
        except KeyboardInterrupt:
            return "interrupted"

    def _first(self, n: int) -> Population:
        n, settings = max(n, 0), self.settings
        width, max_depth = settings.max_size, settings.max_depth
        if settings.creation == "ramped":
            return ramped_half_and_half(n, self.primitives, width, max_depth, self.terminals, self.rng)
        return ptc2(n, self.primitives, width, max_depth, self.terminals, self.rng, settings.initial_size)

    def _next(self, parents: Parents, losses: NDArray[np.float64]) -> tuple[Parents, NDArray[np.float64]]:
        settings = self.settings
        sizes = parents.population.sizes
        offspring = breed(parents, ranking(losses, sizes, settings.parsimony), settings, self.terminals, self.rng)
        all_losses = np.concatenate([losses, self.scorer.losses(offspring)])
        all_sizes = np.concatenate([sizes, offspring.sizes])
        kept = np.sort(survivors(all_losses, all_sizes, settings.population))
        # Most survivors are parents, whose structure is known.
        old, new = kept[kept < len(parents)], kept[kept >= len(parents)] - len(parents)
        return Parents.concatenate([parents.take(old), Parents.of(offspring.take(new))]), all_losses[kept]

    def _progress(self) -> Progress:
        front, scores = self.scorer.archive.front(self.stop.loss)
        return Progress(self.generation, self.scorer.evaluations, self.clock() - self.began, front, scores)


def _within_limits(initial: Population | None, primitives: PrimitiveSet, settings: EvolutionSettings) -> Population:
    """The initial individuals at the width of the run."""
    width = settings.max_size
    if initial is None or not len(initial):
        return Population(np.zeros((0, width), np.int16), np.zeros((0, width)), np.zeros(0, np.int64), primitives)
    if initial.primitives != primitives:
        raise ValueError("the initial individuals are of another primitive set than the run")
    for what, limit, found in (
        ("nodes", settings.max_size, initial.sizes),
        ("levels", settings.max_depth, depths(initial)),
    ):
        worst = int(np.argmax(found))
        if found[worst] > limit:
            setting = "max_size" if what == "nodes" else "max_depth"
            raise ValueError(
                f"initial individual {worst} has {found[worst]} {what}, and {setting} is {limit}; "
                f"raise {setting} or leave the individual out"
            )
    codes, values = np.zeros((len(initial), width), np.int16), np.zeros((len(initial), width))
    shared = min(width, initial.width)
    codes[:, :shared], values[:, :shared] = initial.codes[:, :shared], initial.values[:, :shared]
    return Population(codes, values, initial.sizes, primitives)
