"""A generation of offspring: draw the parents of each operator, and apply the operators by their shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Indices
from shine.lang.growth import Terminals
from shine.lang.population import Population
from shine.lang.subtrees import Parents
from shine.search.evolution.operators import variation
from shine.search.evolution.settings import EvolutionSettings


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
    *,
    scaled: bool = True,
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
    scaled : bool
        Whether linear scaling fits the coefficients of each formula.
    """
    counts = _counts(settings, rng, parts is not None)
    selected = {operator: select(n) for operator, n in counts.items()}
    parents = {operator: everyone.take(chosen) for operator, chosen in selected.items()}
    donors, depth = everyone.take(select(counts["crossover"])), settings.max_depth
    useful = (parts or everyone).take(rng.integers(0, len(parts or everyone), counts["part_mutation"]))
    offspring = {
        "crossover": variation.subtree_crossover(parents["crossover"], donors, depth, rng),
        "subtree_mutation": variation.subtree_mutation(parents["subtree_mutation"], depth, terminals, rng),
        "part_mutation": variation.subtree_crossover(parents["part_mutation"], useful, depth, rng),
        "hoist_mutation": variation.hoist_mutation(parents["hoist_mutation"], rng),
        "point_mutation": variation.point_mutation(parents["point_mutation"].population, terminals, rng),
        "constant_mutation": variation.constant_mutation(parents["constant_mutation"].population, rng),
        "coefficient_mutation": variation.coefficient_mutation(
            parents["coefficient_mutation"], depth, rng, at_root=not scaled
        ),
    }
    population = Population.concatenate([offspring[operator] for operator in selected])
    return Offspring(population, np.concatenate(list(selected.values())))


def _counts(settings: EvolutionSettings, rng: np.random.Generator, with_parts: bool) -> dict[str, int]:
    """Random numbers of offspring by operator; they sum to the size of the population."""
    shares = settings.shares(with_parts)
    weights = np.array(list(shares.values()))
    counts = rng.multinomial(settings.population, weights / weights.sum())
    return dict(zip(shares, counts.tolist(), strict=True))
