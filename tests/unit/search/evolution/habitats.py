"""Islands for the tests. Other processes import this module by name; they could not import a test module."""

from __future__ import annotations

import pickle

from unit.search.evolution.oracles import NodeCounter, primitive_set

from shine.search.evolution.archive import Archive
from shine.search.evolution.islands import Habitat, Island
from shine.search.evolution.scoring import Scorer, Scoring
from shine.search.evolution.settings import EvolutionSettings
from shine.search.seeding.effort import Deadline

PRIMITIVES = primitive_set()
NEG = PRIMITIVES.function_codes["neg"]
SETTINGS = EvolutionSettings(population=60, max_size=15, max_depth=6, islands=3, migrants=4)


def habitat_of(settings=SETTINGS, evaluator=None):
    scorer = Scorer(Scoring(evaluator or NodeCounter(NEG, 50)), Archive.empty(PRIMITIVES, 15), Deadline(lambda: 0.0))
    return Habitat(PRIMITIVES, settings, scorer)


def stepped(habitat, island, times=1):
    for _ in range(times):
        island = habitat.stepped(island)
    return island


def bits(island: Island) -> bytes:
    """The whole content of an island as bytes."""
    population = island.parents
    arrays = population.codes, population.values, population.sizes, island.losses
    rest = island.generation, island.improved, island.key
    return b"".join(array.tobytes() for array in arrays) + repr(rest).encode()


def bits_after_five_steps(data: bytes) -> bytes:
    """`bits` of a pickled island after five steps."""
    return bits(stepped(habitat_of(), pickle.loads(data), 5))
