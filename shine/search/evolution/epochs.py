"""Epochs: what islands do between two migrations, each by itself, in this process or in others.

An epoch is a pure function of what all islands share (`World`) and of the island as it begins (`Epoch`). So it may be
done anywhere, and again if a worker dies: the results have the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shine.base.parallel import Pool, Round, Shipment
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.population import Population
from shine.search.evolution.archive import Archive
from shine.search.evolution.islands import Habitat, Island
from shine.search.evolution.memory import CAPACITY, Known
from shine.search.evolution.scoring import OutOfTime, Scorer, Scoring
from shine.search.evolution.settings import EvolutionSettings
from shine.search.seeding.effort import Deadline

CAPACITY_OF_SEVERAL = 1 << 14
"""Latest individuals that the memory of each of several islands always recalls: it travels with the island."""

SECONDS_TO_RETURN = 3.0
"""Time after the deadline, or after an interrupt, in which workers may return what they have found."""

Ended = Literal["", "solved", "seconds", "interrupted"]


@dataclass(frozen=True, eq=False)
class World:
    """Data shared by all islands: it travels to each worker once.

    Parameters
    ----------
    primitives : PrimitiveSet
    settings : EvolutionSettings
    scoring : Scoring
    enough : float
        Loss that ends the run.
    parts : Population, optional
        Formulas with useful parts, which the seeding has found.
    """

    primitives: PrimitiveSet
    settings: EvolutionSettings
    scoring: Scoring
    enough: float
    parts: Population | None = None

    def habitat(self, number: int, scorer: Scorer) -> Habitat:
        """The habitat of an island, by its number from 0."""
        return Habitat(self.primitives, self.settings.of_island(number), scorer, self.parts)

    def scorer(self, deadline: Deadline, archive: Archive, known: Known | None) -> Scorer:
        """A scorer that knows some individuals."""
        capacity = CAPACITY if self.settings.islands == 1 else CAPACITY_OF_SEVERAL
        return Scorer(self.scoring, archive, deadline, known, capacity)


@dataclass(frozen=True, eq=False)
class Founding:
    """The start of an island.

    Parameters
    ----------
    individuals : Population
        Individuals of its first population.
    key : int
        Of its random numbers, of 64 bits.
    life : int
    """

    individuals: Population
    key: int
    life: int


@dataclass(frozen=True, eq=False)
class Epoch:
    """An island at the beginning of an epoch.

    Parameters
    ----------
    number : int
        Of the island, from 0.
    island : Island or Founding
    known : Known, optional
        The individuals that it has scored.
    archive : Archive
        That of all islands.
    generations : int
        Length of the epoch.
    deadline : float
        On the clock of the world, `time.time`: processes of one run share no other.
    """

    number: int
    island: Island | Founding
    known: Known | None
    archive: Archive
    generations: int
    deadline: float


@dataclass(frozen=True, eq=False)
class EpochResult:
    """An island at the end of an epoch.

    Parameters
    ----------
    island : Island, optional
        None if the epoch did not come to its end.
    known : Known
    archive : Archive
        That of the beginning, with what the island has found.
    evaluations : int
        Distinct individuals evaluated in the epoch.
    generations : int
        Complete generations.
    ended : {"", "solved", "seconds", "interrupted"}
        Why the epoch ended early, if it did.
    refuted : int
        Individuals of the epoch whose losses were not confirmed.
    """

    island: Island | None
    known: Known
    archive: Archive
    evaluations: int
    generations: int
    ended: Ended
    refuted: int = 0


def run_epoch(world: World, epoch: Epoch, scorer: Scorer) -> EpochResult:
    """Step an island to the end of its epoch, or until it finds what ends the run."""
    before, refuted = scorer.evaluations, scorer.refuted
    habitat = world.habitat(epoch.number, scorer)
    island: Island | None = None
    ended: Ended = ""
    done = 0
    try:
        start = epoch.island
        if isinstance(start, Founding):
            start = habitat.settled(start.individuals, start.key, start.life)
        island = start
        while done < epoch.generations and not ended:
            island, done = habitat.stepped(island), done + 1
            if scorer.archive.solved(world.enough, world.scoring.description):
                ended = "solved"
    except OutOfTime:
        island, ended = None, "seconds"
    except KeyboardInterrupt:
        island, ended = None, "interrupted"
    found = scorer.known, scorer.archive, scorer.evaluations - before
    return EpochResult(island, *found, done, ended, scorer.refuted - refuted)


class LocalEpochs:
    """Epochs in this process, one after the other."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._latest: dict[int, tuple[Scorer, Known]] = {}

    def __call__(self, world: World, epochs: Sequence[Epoch]) -> Iterator[EpochResult]:
        """The islands after an epoch each."""
        for epoch in epochs:
            scorer, known = self._latest.get(epoch.number, (None, None))
            # The memory of a former epoch need not be built again, unless somebody has joined the island since.
            if scorer is None or known is not epoch.known:
                scorer = world.scorer(self._deadline, epoch.archive, epoch.known)
            scorer.archive = epoch.archive
            result = run_epoch(world, epoch, scorer)
            self._latest[epoch.number] = scorer, result.known
            yield result

    def close(self) -> None:
        """Nothing is left behind."""


class WorkerEpochs:
    """Epochs on the workers of a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._shipped: tuple[World, Shipment] | None = None

    def __call__(self, world: World, epochs: Sequence[Epoch]) -> Iterator[EpochResult]:
        """The islands after an epoch each; those that are there, if the user interrupts or the time is over."""
        this_round = Round(self._pool, _run_in_worker, epochs, self._shipment(world))
        # Clocks of machines may differ a little, and what workers return takes time to arrive.
        seconds = min((epoch.deadline for epoch in epochs), default=np.inf) - time.time() + SECONDS_TO_RETURN
        try:
            yield from this_round.results(time.monotonic() + seconds)
        except (KeyboardInterrupt, TimeoutError) as early:
            self.close()
            yield from this_round.finished(SECONDS_TO_RETURN)
            raise (OutOfTime if isinstance(early, TimeoutError) else early) from None
        finally:
            this_round.cancel()

    def close(self) -> None:
        """Let the workers stop."""
        if self._shipped is not None:
            self._shipped[1].recall()
            self._shipped = None

    def _shipment(self, world: World) -> Shipment:
        if self._shipped is None or self._shipped[0] is not world:
            self.close()
            self._shipped = world, Shipment(world)
        return self._shipped[1]


@np.errstate(all="ignore")
def _run_in_worker(world: World, epoch: Epoch, stopped: Callable[[], bool]) -> EpochResult:
    """Pass an epoch in a worker."""
    deadline = Deadline(lambda: float("inf") if stopped() else time.time(), epoch.deadline)
    return run_epoch(world, epoch, world.scorer(deadline, epoch.archive, epoch.known))
