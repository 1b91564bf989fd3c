"""The task of the seeding: rows, allowed formulas, limits, helpers and listeners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt

from shine.base.parallel import Pool
from shine.base.typing import Floats
from shine.evaluate.protocols import Linearizer
from shine.lang.forms.primitives import PrimitiveSet
from shine.lang.forms.tree import Tree
from shine.lang.population import Population
from shine.search.seeding.screen.skeletons import Rows

Predict = Callable[[Population], Floats]
"""Predictions of a population, shape (n_individuals, n_rows)."""

LinearizerOf = Callable[[Rows], Linearizer]
"""Makes what fits constants on some rows."""


@dataclass(frozen=True)
class SeedingSettings:
    """Limits of the stage. Together with the rows they bound its time and memory."""

    members: Annotated[int, Ge(10)] = 30_000
    """Most members of a bank, about 2 KiB each."""
    rows: Annotated[int, Ge(1)] = 160
    """Rows that members are evaluated on."""
    features: Annotated[int, Ge(1)] = 12
    """Most features that are combined: the most relevant ones."""
    coordinates: Annotated[int, Ge(0)] = 6
    """Most systems of merged coordinates that get a bank of their own."""
    candidates: Annotated[int, Ge(1)] = 200
    """Most formulas returned."""
    parts: Annotated[int, Ge(0)] = 300
    """Most building blocks returned."""
    price: Annotated[float, Gt(0)] = 0.02
    """Price of a node: candidates are ordered by the logarithm of their error plus this for each node."""
    exact: Annotated[float, Ge(0)] = 1e-20
    """Share of variance unexplained below which a formula fits exactly: by default, the rest is rounding."""


@dataclass(frozen=True)
class Finding:
    """The best candidate so far.

    Parameters
    ----------
    tree : Tree
    slope, intercept : float
        Its best line on all rows; 1 and 0 without linear scaling.
    unexplained : float
        Share of the target's variance that it leaves unexplained (see `Guesses`).
    """

    tree: Tree
    slope: float
    intercept: float
    unexplained: float


@dataclass(frozen=True, eq=False)
class SeedingTask:
    """Rows, allowed formulas and means of the seeding.

    Parameters
    ----------
    rows : Rows
        A sample of the data, a hundred to a few thousand rows. Weights are at least 0, and not all 0.
    primitives : PrimitiveSet
        Functions and features of the formulas.
    predict : callable
        Predictions of a population of these primitives on these rows, shape (n_individuals, n_rows).
    linearizer_of : callable, optional
        Makes what fits constants inside functions on some rows; without it, they stay as the searches found them.
    max_size, max_depth : int
        Most nodes and levels of a candidate.
    linear_scaling : bool
        Whether formulas will be judged with their best slope and intercept. Candidates then contain neither.
    longest : int
        Most nodes of a candidate that fits exactly, if that is more than `max_size`.
    settings : SeedingSettings
    pool : Pool, optional
        Workers that share the searches (see `shine.base.parallel.opened`). They change no bit of the guesses.
    noise : float
        Share of the target's variance that noise leaves; 0 if the rows do not tell.
    found : callable, optional
        Called with each candidate that is better than all before, as soon as it is found.
    """

    rows: Rows
    primitives: PrimitiveSet
    predict: Predict
    linearizer_of: LinearizerOf | None = None
    max_size: int = 30
    max_depth: int = 10
    linear_scaling: bool = True
    longest: int = 0
    settings: SeedingSettings = field(default_factory=SeedingSettings)
    pool: Pool | None = None
    noise: float = 0.0
    found: Callable[[Finding], object] | None = None

    @property
    def of_positive_weights(self) -> SeedingTask:
        """The task without rows whose weight is 0; the other weights add up to 1."""
        rows, which = self.rows, np.flatnonzero(self.rows.weights > 0)
        weights = rows.weights[which]
        return replace(
            self,
            rows=Rows(rows.columns[:, which], rows.target[which], weights / weights.sum()),
            predict=lambda population: np.asarray(self.predict(population), np.float64)[:, which],
        )
