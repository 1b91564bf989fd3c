"""The user's settings of the evolution; `shine.faces.config` checks the bounds annotated here."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from math import isfinite
from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le

from shine.search.evolution.complexity import normalized_weights

LONGEST = 60
"""Most nodes of a formula that fits exactly, by default."""

Probability = Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True)
class IslandSettings:
    """Settings that may differ between islands, not the form of individuals.

    The fields mean what those of `EvolutionSettings` with the same names mean; None leaves the setting to them.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "use_attribute_docstrings": True}

    population: Annotated[int, Ge(2), Le(10_000_000)] | None = None
    """Individuals that survive a generation."""
    initial_size: Annotated[int, Ge(1)] | None = None
    """Most nodes of a new individual."""
    tournament: Annotated[int, Ge(1)] | None = None
    """Competitors in a tournament."""
    patience: Annotated[int, Ge(1)] | None = None
    """Generations without a better loss after which the island begins anew."""
    crossover: Probability | None = None
    """Share of offspring with a subtree of another parent."""
    subtree_mutation: Probability | None = None
    """Share with a random subtree."""
    hoist_mutation: Probability | None = None
    """Share with a subtree replaced by a part of itself."""
    point_mutation: Probability | None = None
    """Share with nodes replaced by others."""
    constant_mutation: Probability | None = None
    """Share with a constant moved."""
    coefficient_mutation: Probability | None = None
    """Share with a new coefficient or offset."""
    part_mutation: Probability | None = None
    """Share with a useful part found by seeding."""
    parsimony: Annotated[float, Ge(0)] | None = None
    """Price of complexity in tournaments."""
    constants: tuple[float, float] | None = None
    """Range of new constants."""
    constant_share: Probability | None = None
    """Share of constants among new terminals."""


@dataclass(frozen=True)
class EvolutionSettings:
    """Operators and limits of the evolution.

    Seven shares of offspring, `crossover` to `part_mutation`, say how often each operator is used. Only their ratios
    count: they need not add up to 1.
    """

    population: Annotated[int, Ge(2), Le(10_000_000)] = 1000
    """Individuals that survive a generation, and offspring made in it."""
    rows: Annotated[int, Ge(1)] = 10_000
    """Most rows that evolution sees, a random sample; the front is fitted and judged on all rows."""
    renewal: Annotated[int, Ge(0)] | None = None
    """Generations after which evolution sees another sample of the rows; 0 for never. By default 50 if the data are
    streamed, and never if they are in memory."""
    max_size: Annotated[int, Ge(1), Le(10_000)] = 30
    """Most nodes of an individual; 30 are a formula of about one line."""
    max_exact_size: Annotated[int, Ge(1), Le(10_000)] | None = None
    """Most nodes of a formula that seeding finds and that fits exactly, as sums of many terms do; by default 60 if
    `max_size` has its default, and otherwise `max_size`, which is the least."""
    max_depth: Annotated[int, Ge(1), Le(1_000)] = 10
    """Most levels of an individual; a single node has one."""
    initial_size: Annotated[int, Ge(1)] = 10
    """Most nodes of a new individual, at most `max_size`: sizes are spread evenly (PTC2)."""
    tournament: Annotated[int, Ge(1)] = 3
    """Competitors in a tournament."""
    constant_steps: Annotated[int, Ge(0)] = 8
    """Most Levenberg-Marquardt steps that fit the constants of a new individual; 0 leaves constants to mutation."""
    fitting_rows: Annotated[int, Ge(1)] = 250
    """Rows that constants are fitted on during evolution."""
    islands: Annotated[int, Ge(1), Le(10_000)] = 1
    """Separate populations, each of `population` individuals."""
    migration_interval: Annotated[int, Ge(1)] = 20
    """Generations between migrations."""
    migrants: Annotated[int, Ge(0)] = 10
    """Individuals that each island copies to the next in a migration."""
    island_settings: tuple[IslandSettings, ...] = ()
    """Settings in which islands differ, the first entry for the first island; a shorter list begins again."""
    seeding: Probability = 0.5
    """Share of the run that seeding, the enumeration of small formulas, takes in turn with evolution; 0 for none."""
    seeding_members: Annotated[int, Ge(10), Le(10_000_000)] = 30_000
    """Most expressions that seeding combines: a bound on its work that does not depend on the clock."""
    patience: Annotated[int, Ge(1)] = 50
    """Generations without a better loss after which an island starts anew; the front keeps what it found."""
    complexity: dict[str, Annotated[float, Gt(0), Le(1000)]] = field(default_factory=dict)
    """Weight of a primitive, a feature or a `constant` in the complexity, by name; 1 if not listed. The complexity of a
    formula is the sum, rounded."""
    crossover: Probability = 0.35
    """Share of offspring with a subtree replaced by one of another parent."""
    subtree_mutation: Probability = 0.35
    """Share of offspring with a subtree replaced by a random one."""
    hoist_mutation: Probability = 0.05
    """Share of offspring with a subtree replaced by a part of itself."""
    point_mutation: Probability = 0.2
    """Share of offspring with nodes replaced by others of the same arity."""
    constant_mutation: Probability = 0.05
    """Share of offspring with a constant moved."""
    coefficient_mutation: Probability = 0.15
    """Share of offspring in which a subtree gets a coefficient or an offset to be fitted; none without fitting."""
    part_mutation: Probability = 0.1
    """Share of offspring that receive a useful part found by seeding; none without such parts."""
    parsimony: Annotated[float, Ge(0)] = 0.02
    """Price of complexity: tournaments compare ``loss * (1 + parsimony * complexity)``."""
    constants: tuple[float, float] = (-5.0, 5.0)
    """Range of new constants."""
    constant_share: Probability = 0.1
    """Share of constants among new terminals."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "complexity", normalized_weights(self.complexity))
        # Part mutation alone is not enough: there may be no useful parts.
        if not any(self.shares(with_parts=False).values()):
            raise ValueError("every share of variation is 0; raise one, for example crossover")
        if len(self.island_settings) > self.islands:
            raise ValueError(
                f"island_settings has {len(self.island_settings)} entries, and islands is {self.islands}; "
                "give at most one entry for each island"
            )
        for number in range(len(self.island_settings)):
            self.of_island(number)
        low, high = self.constants
        if not (isfinite(low) and isfinite(high) and low <= high):
            raise ValueError(f"constants must be a finite range from low to high, got {low} to {high}")

    @property
    def longest(self) -> int:
        """Most nodes of a formula that fits exactly."""
        own = LONGEST if self.max_size == type(self).max_size else self.max_size
        return max(self.max_size, own if self.max_exact_size is None else self.max_exact_size)

    def allows(self, size: int, exact: bool) -> bool:
        """Whether a formula may have so many nodes."""
        return size <= (self.longest if exact else self.max_size)

    def of_island(self, number: int) -> EvolutionSettings:
        """The settings of an island, by its number from 0."""
        if not self.island_settings:
            return self
        own = self.island_settings[number % len(self.island_settings)]
        values = {each.name: getattr(own, each.name) for each in fields(own)}
        return replace(self, island_settings=(), **{name: value for name, value in values.items() if value is not None})

    def shares(self, with_parts: bool) -> dict[str, float]:
        """Share of each operator that can be used; `with_parts` says whether the seeding found useful parts."""
        return {
            "crossover": self.crossover,
            "subtree_mutation": self.subtree_mutation,
            "part_mutation": self.part_mutation if with_parts else 0.0,
            "hoist_mutation": self.hoist_mutation,
            "point_mutation": self.point_mutation,
            "constant_mutation": self.constant_mutation,
            # It only adds constants to fit.
            "coefficient_mutation": self.coefficient_mutation if self.constant_steps else 0.0,
        }


@dataclass(frozen=True)
class StopSettings:
    """Limits that end the evolution; the first one reached does."""

    generations: Annotated[int, Ge(0)] | None = None
    """Most generations after the first population; they also bound the work of seeding. None for no limit."""
    seconds: Annotated[float, Gt(0)] | None = 60.0
    """Most seconds, also checked within a generation; None for no limit."""
    stagnation: Annotated[int, Ge(1)] | None = 300
    """Most generations without a shorter description of the data. The run goes on for as long as it took to find the
    shortest one, ten times as long while the formula has nearly `max_size` nodes, and ends sooner if little can be
    gained. None for no limit: when nothing improves, the search begins anew, and keeps the best of all its lives."""
    loss: Annotated[float, Ge(0)] = 1e-20
    """Loss that is good enough, as a share of the best constant's loss; a loss of mere rounding always is."""
