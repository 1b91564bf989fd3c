"""A generation of offspring: draw the parents of each operator, and apply the operators by their shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shine.gp import variation
from shine.gp.settings import EvolutionSettings
from shine.gp.subtrees import Parents
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.typing import Indices


@dataclass(frozen=True, eq=False)
class Offspring:
    """A generation of new individuals.

    Parameters
    ----------
    population : Population
    ancestors : ndarray of shape (n_individuals,), int64
        Index of the parent that each offspring was made from; with crossover, of the receiver.
    """

    population: Population
    ancestors: Indices


def breed(
    everyone: Parents,
    select: Callable[[int], Indices],
    settings: EvolutionSettings,
    terminals: Terminals,
    rng: np.random.Generator,
    parts: Parents | None = None,
) -> Offspring:
    """A generation of offspring, as many as a population has individuals.

    Parameters
    ----------
    everyone : Parents
        All possible parents.
    select : callable
        ``select(n)``: indices of n parents.
    settings : EvolutionSettings
    terminals : Terminals
    rng : numpy.random.Generator
    parts : Parents, optional
        Formulas with useful parts; without them there is no part mutation.
    """
    counts = _counts(settings, rng, parts is not None)
    selected = [select(n) for n in counts]
    crossed, regrown, enriched, hoisted, pointed, moved, scaled = (everyone.take(chosen) for chosen in selected)
    donors, depth = everyone.take(select(counts[0])), settings.max_depth
    useful = (parts or everyone).take(rng.integers(0, len(parts or everyone), len(enriched)))
    population = Population.concatenate(
        [
            variation.subtree_crossover(crossed, donors, depth, rng),
            variation.subtree_mutation(regrown, depth, terminals, rng),
            variation.subtree_crossover(enriched, useful, depth, rng),
            variation.hoist_mutation(hoisted, rng),
            variation.point_mutation(pointed.population, terminals, rng),
            variation.constant_mutation(moved.population, rng),
            variation.coefficient_mutation(scaled, depth, rng),
        ]
    )
    return Offspring(population, np.concatenate(selected))


def _counts(settings: EvolutionSettings, rng: np.random.Generator, with_parts: bool) -> tuple[int, ...]:
    """Random numbers of offspring by operator, in the order of `breed`."""
    shares = np.array([
        settings.crossover,
        settings.subtree_mutation,
        settings.part_mutation if with_parts else 0.0,
        settings.hoist_mutation,
        settings.point_mutation,
        settings.constant_mutation,
        settings.fitted_coefficients,
    ])  # fmt: skip
    return tuple(rng.multinomial(settings.population, shares / shares.sum()).tolist())
