"""Recipes for data: how each feature's values are drawn by seeded generators, and the target by a formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Annotated, Protocol

import numpy as np
from annotated_types import Ge, Gt, Le

from shine.base.errors import DataError, UnsupportedSyntaxError
from shine.base.typing import Floats
from shine.data.datasets.dataset import Dataset
from shine.data.files.source import MAX_BYTES
from shine.lang.forms.names import identifier, listed, name_problem, normalized, shortened, shown
from shine.lang.interpret import evaluate
from shine.lang.parse import parse

MAX_ROWS = 100_000_000
MAX_COUNT = 2**53
"""Largest count: all whole numbers up to here are exact in float64."""


class Draw(Protocol):
    """A way to make the values of one feature."""

    def values(self, rows: int, rng: np.random.Generator) -> Floats:
        """Values of shape (rows,)."""


@dataclass(frozen=True)
class Uniform:
    """Every number of a range is equally likely."""

    low: float
    """Smallest number."""
    high: float
    """Largest number."""

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)
        if not isfinite(self.high - self.low):
            widest = float(np.finfo(np.float64).max)
            raise ValueError(f"high - low must be at most {widest:.4g}; they are {self.low:g} and {self.high:g}")

    def values(self, rows: int, rng: np.random.Generator) -> Floats:
        return rng.uniform(self.low, self.high, rows)


@dataclass(frozen=True)
class LogUniform:
    """Every order of magnitude of a range is equally likely."""

    low: Annotated[float, Gt(0)]
    """Smallest number."""
    high: Annotated[float, Gt(0)]
    """Largest number."""

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)

    def values(self, rows: int, rng: np.random.Generator) -> Floats:
        # Rounding may exceed the range, and even the range of float64.
        from shine.compiler.arrays import exp, log  # the compiler takes a while to load

        low, high = log(np.array([self.low, self.high])).tolist()
        return np.clip(exp(rng.uniform(low, high, rows)), self.low, self.high)


@dataclass(frozen=True)
class Normal:
    """The normal distribution."""

    mean: float = 0.0
    """Its mean."""
    deviation: Annotated[float, Ge(0)] = 1.0
    """Its standard deviation."""

    def values(self, rows: int, rng: np.random.Generator) -> Floats:
        return rng.normal(self.mean, self.deviation, rows)


@dataclass(frozen=True)
class Integers:
    """Every whole number of a range is equally likely."""

    low: Annotated[int, Ge(-MAX_COUNT), Le(MAX_COUNT)]
    """Smallest number."""
    high: Annotated[int, Ge(-MAX_COUNT), Le(MAX_COUNT)]
    """Largest number; it can occur."""

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)

    def values(self, rows: int, rng: np.random.Generator) -> Floats:
        return rng.integers(self.low, self.high, rows, endpoint=True).astype(np.float64)


@dataclass(frozen=True)
class Grid:
    """Numbers in even steps: row i has ``start + step * ((i // repeat) % count)``."""

    start: float
    """The first number."""
    step: float
    """Difference between neighbouring numbers."""
    count: Annotated[int, Ge(1), Le(MAX_COUNT)] | None = None
    """Numbers before the sequence repeats; by default it never does."""
    repeat: Annotated[int, Ge(1), Le(MAX_COUNT)] = 1
    """Number of consecutive rows with the same number."""

    def values(self, rows: int, rng: np.random.Generator) -> Floats:
        index = np.arange(rows) // self.repeat
        if self.count is not None:
            index %= self.count
        return np.asarray(self.start + self.step * index, dtype=np.float64)


@dataclass(frozen=True)
class Feature:
    """Distribution of one feature: exactly one of the keys."""

    uniform: Uniform | None = None
    """Every number of a range is equally likely."""
    log_uniform: LogUniform | None = None
    """Every order of magnitude of a range is equally likely."""
    normal: Normal | None = None
    """The normal distribution."""
    integers: Integers | None = None
    """Every whole number of a range is equally likely."""
    grid: Grid | None = None
    """Numbers in even steps."""
    permute: str | None = None
    """Name of an earlier feature, whose values are shuffled."""

    def __post_init__(self) -> None:
        given = [each.name for each in fields(self) if getattr(self, each.name) is not None]
        if len(given) != 1:
            known = ", ".join(each.name for each in fields(self))
            raise ValueError(f"needs exactly one of {known}; has {', '.join(given) or 'none'}")

    @property
    def draw(self) -> Draw | None:
        """The way to draw values; None for a permutation, which draws none."""
        ways: Iterator[Draw | None] = iter((self.uniform, self.log_uniform, self.normal, self.integers, self.grid))
        return next((way for way in ways if way is not None), None)


@dataclass(frozen=True)
class Recipe:
    """Data made from a formula instead of read from a file."""

    features: dict[str, Feature]
    """Distribution of each feature, by its name."""
    target: str
    """Formula of the target in the features."""
    rows: Annotated[int, Ge(1), Le(MAX_ROWS)] = 1000
    """Number of rows."""
    noise: Annotated[float, Ge(0)] = 0.0
    """Standard deviation of normal noise on the target, as a share of the target's standard deviation."""
    seed: Annotated[int, Ge(0), Le(2**63 - 1)] = field(default=0)
    """Seed of the values and the noise; the run's own `seed` leaves the data as they are."""

    def __post_init__(self) -> None:
        if not self.features:
            raise ValueError("needs at least one feature")


def _check_range(low: float, high: float) -> None:
    if not low < high:
        raise ValueError(f"low must be below high; they are {low:g} and {high:g}")


def generate(recipe: Recipe) -> Dataset:
    """Make the data that a recipe describes; the same recipe gives the same bits.

    Returns
    -------
    Dataset
        Without weights.

    Raises
    ------
    DataError
        If a name is invalid, the formula is not part of the language, or a value is not finite.
    """
    problems = [": ".join((".".join(loc), message)) for loc, message in recipe_problems(recipe)]
    if problems:
        raise DataError("; ".join(problems))
    columns = _columns(recipe)
    from shine.compiler.arrays import COMPILED  # the compiler is slow to load, and only generated data need it

    tree = parse(recipe.target, list(columns))
    target = evaluate(tree, list(columns.values()), np.float64, COMPILED)
    target = np.broadcast_to(target, recipe.rows).copy()
    _check_target(recipe, columns, target)
    if recipe.noise:
        target += _noise(recipe, target, _generator(recipe, len(columns)))
    return Dataset.from_arrays(np.column_stack(list(columns.values())), target, features=tuple(columns))


def recipe_problems(recipe: Recipe) -> Iterator[tuple[tuple[str, ...], str]]:
    """Problems of a recipe beyond its types: the keys that lead to each, and a message."""
    above: dict[str, str] = {}
    for given, feature in recipe.features.items():
        if feature.permute is not None and normalized(feature.permute) not in above:
            known = f"the features above it are {listed(above)}" if above else "no feature is above it"
            message = f"{shown(feature.permute)} is not a feature listed above {shown(given)}; {known}"
            yield ("features", given, "permute"), message
        name = normalized(given)
        problem = name_problem(name)
        if problem is not None:
            yield ("features", given), f"the name {problem}; {shown(identifier(given))} would do"
        elif name in above:
            yield ("features", given), f"is one name with {shown(above[name])} in Unicode's normal form; rename one"
        else:
            above[name] = given
    if len(above) == len(recipe.features):
        try:
            parse(recipe.target, list(above))
        except UnsupportedSyntaxError as error:
            yield ("target",), str(error)
    size = 8 * recipe.rows * (len(recipe.features) + 1)
    if size > MAX_BYTES:
        yield ("rows",), f"the data would take {size / 2**30:.3g} GiB; at most {MAX_BYTES / 2**30:g} GiB are made"


def _columns(recipe: Recipe) -> dict[str, Floats]:
    columns: dict[str, Floats] = {}
    for index, (given, feature) in enumerate(recipe.features.items()):
        values = _column(feature, columns, recipe.rows, _generator(recipe, index))
        bad = int((~np.isfinite(values)).sum())
        if bad:
            raise DataError(
                f"features.{shortened(given)}: {bad} of {recipe.rows} values exceed float64; choose a smaller range"
            )
        columns[normalized(given)] = values
    return columns


def _noise(recipe: Recipe, target: Floats, rng: np.random.Generator) -> Floats:
    """Normal noise; a `DataError` if it exceeds the range of float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = recipe.noise * float(target.std())
        noise = rng.normal(0.0, deviation, recipe.rows) if isfinite(deviation) else np.full(recipe.rows, np.inf)
        if np.isfinite(target + noise).all():
            return noise
    raise DataError(
        f"noise: {recipe.noise:g} standard deviations of the target exceed float64; "
        "choose less noise, or a target of smaller numbers"
    )


def _column(feature: Feature, above: dict[str, Floats], rows: int, rng: np.random.Generator) -> Floats:
    if feature.permute is not None:
        return rng.permutation(above[normalized(feature.permute)])
    assert feature.draw is not None
    with np.errstate(over="ignore", invalid="ignore"):
        return feature.draw.values(rows, rng)


def _generator(recipe: Recipe, index: int) -> np.random.Generator:
    """A random generator for each column, so that changes to one feature leave the others as they are."""
    return np.random.default_rng([recipe.seed, index])


def _check_target(recipe: Recipe, columns: dict[str, Floats], target: Floats) -> None:
    bad = np.flatnonzero(~np.isfinite(target))
    if len(bad):
        where = listed(f"{shortened(name)}={values[bad[0]]:.6g}" for name, values in columns.items())
        raise DataError(
            f"target: the formula is NaN or infinite in {len(bad)} of {recipe.rows} rows, the first at {where}"
        )
