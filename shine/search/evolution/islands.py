"""An island: a population that evolves by itself, as a plain value that can be stepped and saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shine.base.typing import Floats, Indices
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.growth import Terminals, mixed
from shine.lang.population import Population
from shine.search.evolution.complexity import complexities
from shine.search.evolution.operators.creation import ptc2
from shine.search.evolution.operators.selection import (
    best_of_each_complexity,
    largest_of_each_complexity,
    ranking,
)
from shine.search.evolution.operators.slot_breeding import breed_slots, created_with_slots
from shine.search.evolution.operators.slots import SlottedSet
from shine.search.evolution.operators.variation import breed
from shine.search.evolution.scoring import Scorer
from shine.search.evolution.settings import EvolutionSettings


@dataclass(frozen=True, eq=False)
class Island:
    """A population and the state that its evolution depends on.

    Parameters
    ----------
    parents : Population
    losses : ndarray of shape (n_individuals,), float64
    generation : int
        Generations since the island began.
    improved : int
        Generation in which the best loss last fell.
    life : int
        How often the island has begun anew.
    key : int
        Of its random numbers, of 64 bits.
    """

    parents: Population
    losses: Floats
    generation: int
    improved: int
    life: int
    key: int

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
    parts : Population, optional
        Formulas with useful parts, for part mutation.
    """

    primitives: PrimitiveSet
    settings: EvolutionSettings
    scorer: Scorer
    parts: Population | None = None

    @property
    def terminals(self) -> Terminals:
        """The distribution of new terminals."""
        return Terminals(self.settings.constants, self.settings.constant_share)

    def settled(self, given: Population, key: int, life: int = 0) -> Island:
        """A new island: given individuals, filled up to the size of a population by random ones."""
        n = self.settings.population - len(given)
        everyone = Population.concatenate([given, self._random(n, np.random.default_rng(key))])
        population, losses = self.scorer.scored(everyone)
        return Island(population, losses, 0, 0, life, key)

    def stepped(self, island: Island) -> Island:
        """The island after one more generation."""
        settings = self.settings
        weights = complexities(island.parents, settings.complexity)
        ranked = ranking(island.losses, weights, settings.parsimony)
        bred = self._bred(island, ranked)
        own = complexities(bred, settings.complexity)  # constants do not count
        offspring, losses = self.scorer.scored(bred, largest_of_each_complexity(island.losses, weights, own))
        later = replace(island, generation=island.generation + 1)
        later = self._survived(later, np.concatenate([weights, own]), offspring, losses)
        return replace(later, improved=later.generation) if later.best_loss < island.best_loss else later

    def joined(self, island: Island, arrivals: Population, losses: Floats) -> Island:
        """The island after individuals from elsewhere have arrived."""
        everyone = Population.concatenate([island.parents, arrivals])
        weights = complexities(everyone, self.settings.complexity)
        return self._survived(island, weights, arrivals, losses)

    def emigrants(self, island: Island, n: int) -> tuple[Population, Floats]:
        """The fittest individuals of an island, with their losses."""
        population = island.parents
        ranked = ranking(island.losses, complexities(population, self.settings.complexity), self.settings.parsimony)
        return population.take(ranked[:n]), island.losses[ranked[:n]]

    def _survived(self, island: Island, weights: Indices, offspring: Population, losses: Floats) -> Island:
        """The island after selection among its individuals and offspring, with the complexities of both."""
        settings, parents, all_losses = self.settings, island.parents, np.concatenate([island.losses, losses])
        kept = np.sort(best_of_each_complexity(all_losses, weights, settings.population))
        old, new = kept[kept < len(parents)], kept[kept >= len(parents)] - len(parents)
        return replace(
            island, parents=Population.concatenate([parents.take(old), offspring.take(new)]), losses=all_losses[kept]
        )

    def _bred(self, island: Island, ranked: Indices) -> Population:
        """A generation of offspring."""
        breeding = breed_slots if isinstance(self.primitives, SlottedSet) else breed
        parts = self.parts if self.parts is not None and len(self.parts) else None
        key = mixed(island.key + island.generation)
        return breeding(island.parents, ranked, self.settings, self.terminals, key, parts).population

    def _random(self, n: int, rng: np.random.Generator) -> Population:
        """Random individuals; none if n is negative."""
        n, settings = max(n, 0), self.settings
        if isinstance(self.primitives, SlottedSet):
            return created_with_slots(n, self.primitives, settings, self.terminals, rng)
        limits = settings.max_size, settings.max_depth
        return ptc2(n, self.primitives, *limits, self.terminals, rng, settings.initial_size)


def migrated(islands: Sequence[Island], habitats: Sequence[Habitat]) -> list[Island]:
    """The islands after each has received copies of the fittest individuals of the one before, in a ring."""
    leaving = [
        habitat.emigrants(island, habitat.settings.migrants) for island, habitat in zip(islands, habitats, strict=True)
    ]
    return [
        habitat.joined(island, *leaving[i - 1])
        for i, (island, habitat) in enumerate(zip(islands, habitats, strict=True))
    ]
