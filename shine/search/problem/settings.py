"""The settings of a search: what they are, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Lt

from shine.evaluate.validation import Dtype, Threads, Tier
from shine.formats.read.guesses import Guess
from shine.lang.vocabulary import PrimitiveSource
from shine.search.constraints.constraints import Constraints
from shine.search.evolution.settings import EvolutionSettings, StopSettings
from shine.search.problem import DEFAULT_PRIMITIVES
from shine.search.templates.template import Template


@dataclass(frozen=True)
class FitnessSettings:
    """The loss of formulas, and how it is computed."""

    loss: str = "mse"
    """The loss to minimize: `mse`, `rmse`, `mae`, `nmse` (the mse over the target's variance), `r2` (the same number,
    1 - R^2); one of `shine.losses`, such as `poisson` or `quantile(0.9)`; or the text of a function,
    `def name(prediction, target): ...`, which may also read `weight` and columns beside the data."""
    noise: Literal["auto", "absolute", "relative", "log", "counts"] = "auto"
    """Growth of the target's noise: none (`absolute`), with its values (`relative`), their logarithms (`log`) or their
    roots (`counts`). `auto` decides by evidence if the target has one sign and its largest value is at least 5 times
    the smallest, or has whole numbers from 0 and 10 times; otherwise it is `absolute`. Known standard deviations of the
    rows belong to the data (`sigma`)."""
    outliers: Literal["auto", "keep"] = "auto"
    """Rows whose target is far from that of all neighbours, if errors are squared or the loss is made for outliers:
    with `auto`, they take no part, and the reason of the choice names them; with `keep`, all rows count."""
    validation: Literal["random", "groups", "time"] | None = None
    """Rows to keep back from the search, to choose the formula by: at `random`, whole `groups`, or the last rows
    (`time`). By default, whole groups if the data have groups; otherwise none, and the shortest description of all rows
    decides."""
    validation_fraction: Annotated[float, Gt(0), Lt(1)] = 0.25
    """Least share of the rows to keep back."""
    evidence: Annotated[float, Ge(8)] | None = None
    """Number of independent rows that the data are worth, if rows repeat one another: samples of a smooth function, of
    a network, or of a slow process. All statistics use it: the choice of the formula, its number of constants, their
    uncertainty. By default, all rows are independent, unless the errors of successive ones correlate."""
    linear_scaling: bool = True
    """Judge `intercept + slope * formula` with the best slope and intercept, instead of the formula itself."""
    dtype: Dtype = "float64"
    """Precision of the evaluation."""
    tier: Tier = "machine"
    """The evaluator: the tile machine (`machine`), code compiled for each formula (`native`), or NumPy
    (`reference`)."""
    threads: Threads | None = None
    """Threads of the tile machine; by default all processors. Their number does not change the result."""


@dataclass(frozen=True)
class SearchSettings:
    """All settings of a search, with the defaults.

    `shine.evolve` and the estimators spell some of them out in their signatures; the parts are the sections of the YAML
    file (see `shine.faces.config`).
    """

    primitives: tuple[PrimitiveSource, ...] = DEFAULT_PRIMITIVES
    """Functions that formulas are made of."""
    evolution: EvolutionSettings = field(default_factory=EvolutionSettings)
    """Operators and limits of the evolution."""
    fitness: FitnessSettings = field(default_factory=FitnessSettings)
    """The loss, and how it is computed."""
    constraints: Constraints = field(default_factory=Constraints)
    """Constraints on formulas."""
    stop: StopSettings = field(default_factory=StopSettings)
    """Limits that end the search."""
    seed: int = 0
    """Seed of the random generator: the same seed gives the same front."""
    guesses: tuple[Guess, ...] = ()
    """Formulas that join the first population; those that break a constraint die out at once."""
    template: Template | None = None
    """The known part of the law; without it, formulas are free."""
