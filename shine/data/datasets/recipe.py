"""Recipes for data: one small class for each way to draw a feature's values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Annotated, Protocol

import numpy as np
from annotated_types import Ge, Gt, Le

from shine.base.typing import Floats

MAX_ROWS = 100_000_000
MAX_COUNT = 2**53
"""Largest count: all whole numbers up to here are exact in float64."""


class Draw(Protocol):
    """A way to make the values of one feature."""

    def values(self, rows: int, rng: np.random.Generator) -> Floats:
        """Values of shape (rows,)."""
        ...


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
