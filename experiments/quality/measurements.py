"""Laws as they were measured: a formula, the places where somebody read the instruments, and how well they read."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quality.formulas import Formula, parse_formula
from quality.problems import Split, generator

Array = NDArray[np.float64]

HELD_OUT = 1000

Draw = Callable[[np.random.Generator, int], Array]


@dataclass(frozen=True)
class Axis:
    """The values of one feature: how `n` rows are drawn, and the lowest and the highest of them."""

    draw: Draw
    low: float
    high: float


def even(low: float, high: float) -> Axis:
    """Evenly spaced settings."""
    return Axis(lambda rng, n: np.linspace(low, high, n), low, high)


def spaced(low: float, high: float) -> Axis:
    """Settings with a constant ratio between neighbours."""
    return Axis(lambda rng, n: np.geomspace(low, high, n), low, high)


def anywhere(low: float, high: float) -> Axis:
    """Values that nobody set, uniform over a range."""
    return Axis(lambda rng, n: rng.uniform(low, high, n), low, high)


def decades(low: float, high: float) -> Axis:
    """Values that nobody set, spread over decades."""
    return Axis(lambda rng, n: np.exp(rng.uniform(np.log(low), np.log(high), n)), low, high)


def of(*values: float) -> Axis:
    """A few settings, each used about equally often, in random order."""
    return Axis(lambda rng, n: rng.permutation(np.resize(np.array(values, dtype=float), n)), min(values), max(values))


def given(*values: float) -> Axis:
    """These values in this order, over and over."""
    return Axis(lambda rng, n: np.resize(np.array(values, dtype=float), n), min(values), max(values))


@dataclass(frozen=True)
class Noise:
    """The standard deviation of a reading, as a function of its true value."""

    kind: str
    level: float

    def sigma(self, y: Array) -> Array:
        """Standard deviation of each reading, shape (n_rows,)."""
        match self.kind:
            case "relative":
                return self.level * np.abs(y)
            case "absolute":
                return np.full(len(y), self.level)
            case "counts":
                return np.sqrt(np.maximum(y, 1.0))
        raise ValueError(f"unknown kind of noise {self.kind!r}; use relative, absolute or counts")

    def __str__(self) -> str:
        return {"relative": f"{100 * self.level:g} %", "absolute": f"{self.level:g}", "counts": "counts"}[self.kind]


def relative(level: float) -> Noise:
    """A share of the value."""
    return Noise("relative", level)


def absolute(level: float) -> Noise:
    """The same for all values, in the target's units."""
    return Noise("absolute", level)


COUNTS = Noise("counts", 1.0)
"""Whole numbers of events: the standard deviation is the root of their mean."""


@dataclass(frozen=True)
class Law:
    """An empirical law and its measurement.

    Parameters
    ----------
    name : str
        Field and law, with a hyphen between.
    text : str
        The law in Python's notation, with the numbers of this measurement.
    axes : tuple of (str, Axis)
        Each feature.
    rows : int
    noise : Noise
    expressible : bool
        Whether the default primitives can express it.
    """

    name: str
    text: str
    axes: tuple[tuple[str, Axis], ...]
    rows: int
    noise: Noise
    expressible: bool = True

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for name, _ in self.axes)

    @cached_property
    def truth(self) -> Formula:
        """The law."""
        return parse_formula(self.text, self.features)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Range of each feature."""
        return tuple((axis.low, axis.high) for _, axis in self.axes)

    @property
    def untouched(self) -> bool:
        """Whether the law is one of those that nobody may look at while improving an engine."""
        return zlib.crc32(self.name.encode()) % 2 == 0

    def split(self, rng: np.random.Generator, rows: int | None = None) -> Split:
        """The measurement, and noiseless rows of the same kind; `rows` replaces the number of readings."""
        X, y = self._rows(rng, rows or self.rows)
        if self.noise.kind == "counts":
            y = rng.poisson(y).astype(np.float64)
        else:
            y = y + self.noise.sigma(y) * rng.standard_normal(len(y))
        return Split(X, y, *self._rows(rng, HELD_OUT))

    def sigma(self, X: Array) -> Array:
        """Standard deviation of the readings at these rows, shape (n_rows,)."""
        return self.noise.sigma(self.truth.predict(X))

    def _rows(self, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
        X = np.column_stack([axis.draw(rng, count) for _, axis in self.axes])
        y = self.truth.predict(X)
        if not np.isfinite(y).all():
            raise ValueError(f"{self.name}: the law has no value in some rows; narrow its ranges")
        return X, y


def law(name: str, text: str, *, rows: int, noise: Noise, expressible: bool = True, **axes: Axis) -> Law:
    """One line of a table of laws; the axes are named by their features."""
    return Law(name, text, tuple(axes.items()), rows, noise, expressible)


def data(law: Law, seed: int) -> Split:
    """The measurement of a law: the same for the same seed."""
    return law.split(generator(law.name, seed))
