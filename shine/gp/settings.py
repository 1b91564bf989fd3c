"""What a user may set about the evolution; `shine.config` validates the bounds given here."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from shine.lang.names import normalized

Probability = Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True)
class EvolutionSettings:
    """Operators and limits of the evolution.

    The probabilities of variation are shares of the offspring; what counts is how they compare.
    """

    population: Annotated[int, Ge(2), Le(10_000_000)] = 1000
    """Individuals that survive a generation, and offspring in it."""
    rows: Annotated[int, Ge(1)] = 10_000
    """Rows that the evolution looks at: a random sample of them where there are more. What it finds is fitted and
    judged on all rows."""
    max_size: Annotated[int, Ge(1), Le(10_000)] = 30
    """Most nodes an individual may have."""
    max_depth: Annotated[int, Ge(1), Le(1_000)] = 10
    """Most levels an individual may have; a single node has one."""
    creation: Literal["ptc2", "ramped"] = "ptc2"
    """How the first individuals are made: PTC2 over sizes up to `initial_size`, or ramped half-and-half over depths."""
    initial_size: Annotated[int, Ge(1)] = 10
    """Most nodes an individual made by PTC2 has; `max_size` if that is less."""
    selection: Literal["tournament", "lexicase"] = "tournament"
    """How parents are chosen: by tournaments of loss and complexity, or by epsilon-lexicase over a sample of rows."""
    tournament: Annotated[int, Ge(1)] = 3
    """Individuals that compete for each parenthood."""
    lexicase_rows: Annotated[int, Ge(1)] = 30
    """Rows drawn anew each generation that lexicase selection looks at."""
    survival: Literal["complexity", "nsga2", "age"] = "complexity"
    """Who goes on to the next generation: the best few of each complexity, the first Pareto fronts of loss and
    complexity, or those of loss and age."""
    constant_steps: Annotated[int, Ge(0)] = 8
    """Most Levenberg-Marquardt steps that fit the constants of a new individual; 0 leaves constants to mutation."""
    fitting_rows: Annotated[int, Ge(1)] = 250
    """Rows that constants are fitted on during the evolution, of those it looks at."""
    islands: Annotated[int, Ge(1), Le(10_000)] = 1
    """Populations that evolve apart, each of the size `population`."""
    migration_interval: Annotated[int, Ge(1)] = 20
    """Generations between migrations."""
    migrants: Annotated[int, Ge(0)] = 10
    """Individuals that each island copies to the next in a migration."""
    seeding: Probability = 0.5
    """Share of the run's seconds that may go into enumerating small formulas before the evolution; 0 for no seeding."""
    seeding_members: Annotated[int, Ge(10), Le(10_000_000)] = 30_000
    """Most expressions that the seeding keeps to combine: with the number of rows, it bounds its work whatever the
    clock says."""
    patience: Annotated[int, Ge(1)] = 50
    """Generations without a better loss after which an island begins anew; what it found stays in the front."""
    complexity: dict[str, Annotated[int, Ge(1), Le(1000)]] = field(default_factory=dict)
    """What a primitive, a feature or a `constant` counts in the complexity of a formula, by name; 1 if not listed."""
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
    coefficient_mutation: Probability = 0.15
    """Share of offspring in which a part receives a coefficient or an offset, to be fitted; none without fitting."""
    part_mutation: Probability = 0.1
    """Share of offspring that receive a part of a formula that the seeding found useful."""
    parsimony: Annotated[float, Ge(0)] = 0.02
    """Price of complexity: in tournaments individuals compete by ``loss * (1 + parsimony * complexity)``."""
    constants: tuple[float, float] = (-5.0, 5.0)
    """Range that ephemeral constants are drawn from."""
    constant_share: Probability = 0.1
    """Share of terminals that are constants."""

    def __post_init__(self) -> None:
        weights = {normalized(name): weight for name, weight in self.complexity.items()}
        object.__setattr__(self, "complexity", weights)
        # Part mutation is none of them: there may be no useful parts.
        shares = (
            self.crossover, self.subtree_mutation, self.hoist_mutation, self.point_mutation, self.constant_mutation,
            self.fitted_coefficients,
        )  # fmt: skip
        if not any(shares):
            raise ValueError("every share of variation is 0; raise one, for example crossover")
        low, high = self.constants
        if not (isfinite(low) and isfinite(high) and low <= high):
            raise ValueError(f"constants must be a finite range from low to high, got {low} to {high}")

    @property
    def fitted_coefficients(self) -> float:
        """Share of coefficient mutation: none where constants are not fitted, for it only makes room for them."""
        return self.coefficient_mutation if self.constant_steps else 0.0


@dataclass(frozen=True)
class StopSettings:
    """When the evolution ends: whichever comes first."""

    generations: Annotated[int, Ge(0)] = 100
    """Most generations after the first population."""
    seconds: Annotated[float, Gt(0)] | None = 60.0
    """Most seconds; also checked within long generations."""
    loss: Annotated[float, Ge(0)] = 1e-20
    """Share of the best constant's loss that is good enough; what rounding leaves always is."""
