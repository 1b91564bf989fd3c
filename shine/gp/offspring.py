"""A generation of offspring: which share of them each operator makes, of which parents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shine.gp import variation
from shine.gp.creation import Terminals
from shine.gp.selection import tournaments
from shine.gp.settings import EvolutionSettings
from shine.gp.structure import Parents
from shine.lang.population import Population


def breed(
    everyone: Parents,
    ranked: NDArray[np.int64],
    settings: EvolutionSettings,
    terminals: Terminals,
    rng: np.random.Generator,
) -> Population:
    """As many offspring as the settings say a population has.

    Parameters
    ----------
    everyone : Parents
        All possible parents.
    ranked : ndarray of shape (n_individuals,), int64
        Their indices, the fittest first.
    settings : EvolutionSettings
    terminals : Terminals
    rng : numpy.random.Generator
    """

    def parents(n: int) -> Parents:
        return everyone.take(tournaments(ranked, n, settings.tournament, rng))

    crossed, regrown, hoisted, pointed, moved = _counts(settings, rng)
    depth = settings.max_depth
    return Population.concatenate(
        [
            variation.subtree_crossover(parents(crossed), parents(crossed), depth, rng),
            variation.subtree_mutation(parents(regrown), depth, terminals, rng),
            variation.hoist_mutation(parents(hoisted), rng),
            variation.point_mutation(parents(pointed).population, terminals, rng),
            variation.constant_mutation(parents(moved).population, rng),
        ]
    )


def _counts(settings: EvolutionSettings, rng: np.random.Generator) -> tuple[int, ...]:
    shares = np.array([
        settings.crossover,
        settings.subtree_mutation,
        settings.hoist_mutation,
        settings.point_mutation,
        settings.constant_mutation,
    ])  # fmt: skip
    return tuple(rng.multinomial(settings.population, shares / shares.sum()).tolist())
