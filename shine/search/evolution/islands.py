"""An island: a population that evolves by itself, as a plain value that can be stepped and saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np

from shine.base.typing import Floats, Indices
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.search.evolution.complexity import complexities
from shine.search.evolution.operators.creation import created
from shine.search.evolution.operators.limits import at_width, limit_of, within, within_life
from shine.search.evolution.operators.selection import (
    SURVIVAL,
    largest_of_each_complexity,
    lexicase,
    ranking,
    tournaments,
)
from shine.search.evolution.operators.slot_breeding import breed_slots, created_with_slots
from shine.search.evolution.operators.slots import SlottedSet
from shine.search.evolution.operators.variation import Offspring, breed
from shine.search.evolution.run_state_checks import generator_of
from shine.search.evolution.scoring import Errors, Scorer
from shine.search.evolution.settings import EvolutionSettings


@dataclass(frozen=True, eq=False)
class Island:
    """A population and the state that its evolution depends on.

    Parameters
    ----------
    parents : Population
    losses : ndarray of shape (n_individuals,), float64
    births : ndarray of shape (n_individuals,), int64
        Generation in which the first ancestor of each individual joined the island.
    generation : int
        Generations since the island began.
    improved : int
        Generation in which the best loss last fell.
    life : int
        How often the island has begun anew.
    random : mapping
        State of the bit generator.
    """

    parents: Population
    losses: Floats
    births: Indices
    generation: int
    improved: int
    life: int
    random: Mapping[str, Any]

    @property
    def best_loss(self) -> float:
        """Loss of the best individual; inf if none has a finite one."""
        return float(self.losses.min(initial=np.inf))


@dataclass(frozen=True)
class Habitat:
    """The settings and tools of an island.

    Parameters
    ----------
    primitives : PrimitiveSet
    settings : EvolutionSettings
    scorer : Scorer
    errors : callable, optional
        Needed for lexicase selection.
    parts : Population, optional
        Formulas with useful parts, for part mutation.
    """

    primitives: PrimitiveSet
    settings: EvolutionSettings
    scorer: Scorer
    errors: Errors | None = None
    parts: Population | None = None

    def __post_init__(self) -> None:
        if self.settings.selection == "lexicase" and self.errors is None:
            raise ValueError("lexicase selection compares errors on rows: pass errors, or select by tournament")

    @property
    def terminals(self) -> Terminals:
        """The distribution of new terminals."""
        return Terminals(self.settings.constants, self.settings.constant_share)

    def settled(self, given: Population, rng: np.random.Generator, life: int = 0) -> Island:
        """A new island: given individuals, filled up to the size of a population by random ones."""
        n = self.settings.population - len(given)
        everyone = Population.concatenate([given, self._random(n, rng, life)])
        population, losses = self.scorer.scored(everyone)
        births = np.zeros(len(population), np.int64)
        return Island(population, losses, births, 0, 0, life, rng.bit_generator.state)

    def stepped(self, island: Island) -> Island:
        """The island after one more generation."""
        settings, rng = self.settings, generator_of(island.random)
        weights = complexities(island.parents, settings.complexity)
        bred = self._bred(island, self._selector(island, weights, rng), rng)
        births = island.births[bred.ancestors]
        limits = None
        if settings.survival != "age":  # there, the young survive with any loss
            own = complexities(bred.population, settings.complexity)
            limits = largest_of_each_complexity(island.losses, weights, own)
        offspring, losses = self.scorer.scored(bred.population, limits)
        if settings.survival == "age":
            arrivals, arrived = self.scorer.scored(self._random(max(1, settings.population // 100), rng, island.life))
            offspring = Population.concatenate([offspring, arrivals])
            losses = np.concatenate([losses, arrived])
            births = np.concatenate([births, np.full(len(arrivals), island.generation + 1)])
        later = replace(island, generation=island.generation + 1, random=rng.bit_generator.state)
        later = self._survived(later, weights, offspring, losses, births)
        return replace(later, improved=later.generation) if later.best_loss < island.best_loss else later

    def joined(self, island: Island, arrivals: Population, losses: Floats) -> Island:
        """The island after individuals from elsewhere have arrived; it takes none beyond its own limit of nodes."""
        small = within_life(arrivals, island.life, self.settings.max_size)
        births = np.full(np.count_nonzero(small), island.generation, np.int64)
        weights = complexities(island.parents, self.settings.complexity)
        return self._survived(island, weights, arrivals.take(small), losses[small], births)

    def emigrants(self, island: Island, n: int) -> tuple[Population, Floats]:
        """The fittest individuals of an island, with their losses."""
        population = island.parents
        ranked = ranking(island.losses, complexities(population, self.settings.complexity), self.settings.parsimony)
        return population.take(ranked[:n]), island.losses[ranked[:n]]

    def _survived(
        self, island: Island, weights: Indices, offspring: Population, losses: Floats, births: Indices
    ) -> Island:
        """The island after selection among its individuals, with their complexities, and offspring."""
        settings, parents = self.settings, island.parents
        all_losses, all_births = np.concatenate([island.losses, losses]), np.concatenate([island.births, births])
        weights = np.concatenate([weights, complexities(offspring, settings.complexity)])
        survive = SURVIVAL[settings.survival]
        kept = np.sort(survive(all_losses, weights, island.generation - all_births, settings.population))
        old, new = kept[kept < len(parents)], kept[kept >= len(parents)] - len(parents)
        everyone = Population.concatenate([parents.take(old), offspring.take(new)])
        return replace(island, parents=everyone, losses=all_losses[kept], births=all_births[kept])

    def _selector(self, island: Island, weights: Indices, rng: np.random.Generator) -> Callable[[int], Indices]:
        """The function that draws n parents."""
        settings = self.settings
        match settings.selection:
            case "tournament":
                ranked = ranking(island.losses, weights, settings.parsimony)
                return lambda n: tournaments(ranked, n, settings.tournament, rng)
            case "lexicase":
                assert self.errors is not None
                errors = self.errors(island.parents, rng)
                # Individuals that break a constraint, or fail on other rows, are never selected.
                errors[~np.isfinite(island.losses)] = np.inf
                return lambda n: lexicase(errors, n, rng)
        assert_never(settings.selection)

    def _bred(self, island: Island, select: Callable[[int], Indices], rng: np.random.Generator) -> Offspring:
        """A generation of offspring within the limits of the island's life."""
        settings, life = self.settings, island.life
        if isinstance(self.primitives, SlottedSet):
            return breed_slots(island.parents, select, settings, self.terminals, rng, life, self.parts)
        limit = limit_of(life, settings.max_size)
        parts = None if self.parts is None else within(self.parts, limit)
        parts = parts if parts is not None and len(parts) else None
        bred = breed(within(island.parents, limit), select, settings, self.terminals, rng, parts)
        return replace(bred, population=at_width(bred.population, settings.max_size))

    def _random(self, n: int, rng: np.random.Generator, life: int) -> Population:
        """Random individuals within the limits of a life; none if n is negative."""
        n, settings = max(n, 0), self.settings
        if isinstance(self.primitives, SlottedSet):
            return created_with_slots(n, self.primitives, settings, self.terminals, rng, life)
        limit = limit_of(life, settings.max_size)
        return at_width(created(n, self.primitives, settings, limit, self.terminals, rng), settings.max_size)


def migrated(islands: Sequence[Island], habitats: Sequence[Habitat]) -> list[Island]:
    """The islands after each has received copies of the fittest individuals of the one before, in a ring."""
    leaving = [
        habitat.emigrants(island, habitat.settings.migrants) for island, habitat in zip(islands, habitats, strict=True)
    ]
    return [
        habitat.joined(island, *leaving[i - 1])
        for i, (island, habitat) in enumerate(zip(islands, habitats, strict=True))
    ]
