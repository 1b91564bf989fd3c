"""Problems with a known answer: a formula, and where its rows are drawn from."""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quality.formulas import Formula, parse_formula

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """Rows to learn from and rows held out: X of shape (n_rows, n_features), y of shape (n_rows,)."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


class Problem(Protocol):
    """A problem that engines are run on."""

    @property
    def name(self) -> str:
        """Unique within an experiment; the part before the hyphen is the family."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns."""

    @property
    def text(self) -> str:
        """The formula to be recovered as text; empty if it is not known."""

    @property
    def truth(self) -> Formula | None:
        """The formula to be recovered, if it is known."""

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Range of each feature in the training rows."""

    @property
    def expressible(self) -> bool:
        """Whether the engines' primitives can express the truth."""

    def split(self, rng: np.random.Generator, rows: int | None) -> Split:
        """Draw the rows; `rows` replaces the problem's own number of rows to learn from."""


@dataclass(frozen=True)
class Uniform:
    """Rows drawn uniformly within a range for each feature: U[low, high, rows] in the literature."""

    bounds: tuple[tuple[float, float], ...]
    rows: int

    def points(self, rng: np.random.Generator) -> Array:
        """Shape (rows, n_features)."""
        low, high = np.array(self.bounds, dtype=np.float64).T
        return low + (high - low) * rng.random((self.rows, len(self.bounds)))

    def of(self, rows: int | None) -> Uniform:
        """The same with another number of rows."""
        return self if rows is None else replace(self, rows=rows)


@dataclass(frozen=True)
class Grid:
    """All combinations of evenly spaced values, (low, high, step) for each feature: E[low, high, step]."""

    axes: tuple[tuple[float, float, float], ...]

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Range of each feature."""
        return tuple((low, high) for low, high, _ in self.axes)

    def points(self, rng: np.random.Generator) -> Array:
        """All points, shape (n_points, n_features); nothing is random."""
        values = [low + step * np.arange(int((high - low) / step + 1e-9) + 1) for low, high, step in self.axes]
        return np.array(list(itertools.product(*values)), dtype=np.float64)

    def of(self, rows: int | None) -> Grid:
        """A grid keeps its points."""
        return self


@dataclass(frozen=True)
class FormulaProblem:
    """Rows of a formula.

    Parameters
    ----------
    name : str
    features : tuple of str
    text : str
        The formula in Python's notation.
    train, test : Uniform or Grid
    expressible : bool
        Whether add, sub, mul, div, sqrt, square, exp, log, sin, cos and constants can express it.
    """

    name: str
    features: tuple[str, ...]
    text: str
    train: Uniform | Grid
    test: Uniform | Grid
    expressible: bool = True

    @cached_property
    def truth(self) -> Formula:
        """The formula to be recovered."""
        return parse_formula(self.text, self.features)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Range of each feature in the training rows."""
        return self.train.bounds

    def split(self, rng: np.random.Generator, rows: int | None = None) -> Split:
        """Draw the rows, all of them where the formula is defined."""
        return Split(*self._rows(self.train.of(rows), rng), *self._rows(self.test, rng))

    def _rows(self, where: Uniform | Grid, rng: np.random.Generator) -> tuple[Array, Array]:
        """The grid points where the formula is finite, or the wanted number of such random points."""
        X = where.points(rng)
        y = self.truth.predict(X)
        for _ in range(100):
            bad = ~np.isfinite(y)
            if isinstance(where, Grid) or not bad.any():
                break
            X[bad] = where.of(int(bad.sum())).points(rng)
            y[bad] = self.truth.predict(X[bad])
        defined = np.isfinite(y)
        return X[defined], y[defined]


def generator(problem: str, seed: int) -> np.random.Generator:
    """The random generator of a problem and seed: the same rows for every engine."""
    return np.random.default_rng([seed, zlib.crc32(problem.encode())])


def with_noise(split: Split, level: float, rng: np.random.Generator) -> Split:
    """Add normal noise to the training targets: `level` times their standard deviation."""
    return replace(split, y=split.y + level * np.std(split.y) * rng.standard_normal(len(split.y)))
