"""What a user may set about the evolution; `shine.config` validates the bounds given here."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

Probability = Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True)
class EvolutionSettings:
    """Operators and limits of the evolution.

    The five probabilities of variation are shares of the offspring; what counts is how they compare.
    """

    population: Annotated[int, Ge(2), Le(10_000_000)] = 1000
    """Individuals that survive a generation, and offspring in it."""
    max_size: Annotated[int, Ge(1), Le(10_000)] = 30
    """Most nodes an individual may have."""
    max_depth: Annotated[int, Ge(1), Le(1_000)] = 10
    """Most levels an individual may have; a single node has one."""
    creation: Literal["ptc2", "ramped"] = "ptc2"
    """How the first individuals are made: PTC2 over sizes up to `initial_size`, or ramped half-and-half over depths."""
    initial_size: Annotated[int, Ge(1)] = 10
    """Most nodes an individual made by PTC2 has; `max_size` if that is less."""
    tournament: Annotated[int, Ge(1)] = 3
    """Individuals that compete for each parenthood."""
    crossover: Probability = 0.35
    """Share of offspring from subtree crossover."""
    subtree_mutation: Probability = 0.35
    """Share of offspring whose subtree is replaced by a random one."""
    hoist_mutation: Probability = 0.05
    """Share of offspring whose subtree is replaced by a part of itself."""
    point_mutation: Probability = 0.2
    """Share of offspring with nodes replaced by others of the same arity."""
    constant_mutation: Probability = 0.05
    """Share of offspring with perturbed constants."""
    parsimony: Annotated[float, Ge(0)] = 0.02
    """Price of a node: in tournaments individuals compete by ``loss * (1 + parsimony * size)``."""
    constants: tuple[float, float] = (-5.0, 5.0)
    """Range that ephemeral constants are drawn from."""
    constant_share: Probability = 0.2
    """Share of terminals that are constants."""

    def __post_init__(self) -> None:
        shares = (
            self.crossover, self.subtree_mutation, self.hoist_mutation, self.point_mutation, self.constant_mutation,
        )  # fmt: skip
        if not any(shares):
            raise ValueError("every share of variation is 0; raise one, for example crossover")
        low, high = self.constants
        if not (isfinite(low) and isfinite(high) and low <= high):
            raise ValueError(f"constants must be a finite range from low to high, got {low} to {high}")


@dataclass(frozen=True)
class StopSettings:
    """When the evolution ends: whichever comes first."""

    generations: Annotated[int, Ge(0)] = 100
    """Most generations after the first population."""
    seconds: Annotated[float, Gt(0)] | None = 60.0
    """Most seconds; also checked within long generations."""
    loss: Annotated[float, Ge(0)] = 1e-12
    """A loss that is good enough."""
