"""The data set of evaluators: columns, a target, weights. Values are checked here, once."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from shine.base.errors import DataError
from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices
from shine.data.columns.headings import check_features
from shine.data.columns.numbers import check_loss_columns, instants, numbered_groups, numbers

if TYPE_CHECKING:
    from shine.data.datasets.serial import Serial  # the compiler is slow to load

COPIED_BYTES = 1 << 25
"""Columns of at most this size are copied to be contiguous; larger ones stay as they are, to save memory."""

ORDINARY = 128
"""Numbers with at most this absolute binary exponent, 3e-39 to 3e38, need no scaling. A product of seven is finite."""

MOST_MERGED = 10_000
"""Most rows of which equal ones are merged."""

MOST_SEEN = 1e9
"""From this weight on, whole weights no longer count as repeated rows."""

LEAST_DEVIATION = 1e-140
"""Least standard deviation of a row's noise, as a share of the largest: weights and their squares stay finite."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows to learn from, column by column.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows), float64
        Contiguous columns; views of the given array if it is large and stored row by row.
    target : ndarray of shape (n_rows,), float64
    weights : ndarray of shape (n_rows,), float64, optional
        Non-negative sample weights with a positive sum; all rows weigh 1 without them.
    features : tuple of str
        Name of each column, an identifier.
    deviations : ndarray of shape (n_rows,), float64, optional
        Standard deviation of the noise in each row, up to a common factor. The weights contain their inverse squares.
    groups : ndarray of shape (n_rows,), int64, optional
        Number of the group of each row, from 0: rows that depend on one another, such as those of one patient.
    times : ndarray of shape (n_rows,), float64, optional
        When each row was read, in any unit; without it, rows stand in their order.
    headings : mapping of str to str
        Original heading of each column, by its name in `features`; empty if names are the headings.
    loss_columns : mapping of str to ndarray of shape (n_rows,), float64
        Columns that are no features, by name: losses may read them.
    labels : mapping of str to tuple of str
        Texts that the values of a column number, by its name.
    all_rows : AllRows, optional
        All rows, if these are a sample of rows that are not in memory.
    worth : float, optional
        Most independent rows that these count as (see `effective_rows`).
    known_ranges : mapping of str to (float, float), optional
        Least and greatest value of each feature in all rows, if these are some of them (see `ranges`).
    serial : Serial, optional
        Correlation of the errors of rows that follow one another; without it, they are independent.
    """

    columns: Floats
    target: Floats
    weights: Floats | None
    features: tuple[str, ...]
    deviations: Floats | None = None
    groups: Indices | None = None
    times: Floats | None = None
    headings: Mapping[str, str] = field(default_factory=dict)
    loss_columns: Mapping[str, Floats] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    all_rows: AllRows | None = None
    worth: float | None = None
    known_ranges: Mapping[str, tuple[float, float]] | None = None
    serial: Serial | None = None

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        features: Sequence[str] | None = None,
        headings: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
        sigma: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        times: ArrayLike | None = None,
        loss_columns: Mapping[str, ArrayLike] | None = None,
    ) -> Dataset:
        """Check arrays and arrange them by column.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        features : sequence of str, optional
            Names of the columns; ``x0, x1, ...`` by default.
        headings : sequence of str, optional
            Original headings of the columns, any text; the names by default.
        sample_weight : array-like of shape (n_rows,), optional
        sigma : array-like of shape (n_rows,), optional
            Standard deviation of the noise in each row; only their ratios count.
        groups : array-like of shape (n_rows,), optional
            Label of the group that each row belongs to: numbers or strings.
        times : array-like of shape (n_rows,), optional
            Numbers or dates.
        loss_columns : mapping of str to array-like of shape (n_rows,), optional
            Columns that are no features, by name.

        Raises
        ------
        DataError
            If shapes do not fit, there is no row or no column, a value is not a finite number, a weight is negative,
            none is positive, a standard deviation is not positive, a group has no label, a time is missing, or a name
            is invalid.
        """
        matrix, target = numbers(X, "X", 2), numbers(y, "y", 1)
        rows, count = matrix.shape
        if not rows or not count:
            raise DataError(f"X has shape {matrix.shape}; at least one row and one feature are needed")
        if len(target) != rows:
            raise DataError(f"X has {rows} rows, but y has {len(target)}")
        names = tuple(f"x{i}" for i in range(count)) if features is None else check_features(features)
        if len(names) != count:
            raise DataError(f"X has {count} columns, but features has {len(names)} names")
        weights = None
        if sample_weight is not None:
            weights = np.ascontiguousarray(numbers(sample_weight, "sample_weight", 1))
            if len(weights) != rows:
                raise DataError(f"X has {rows} rows, but sample_weight has {len(weights)}")
            if (weights < 0).any() or not weights.any():
                least = int(weights.argmin())
                told = f"row {least} has {weights[least]:g}"
                raise DataError(f"sample weights must not be negative, and one must be positive; {told}")
            weights = ordinary_weights(weights)
        # Columns that are contiguous already (Fortran order) are never copied.
        columns = np.ascontiguousarray(matrix.T) if matrix.nbytes <= COPIED_BYTES else matrix.T
        numbered = None if groups is None else numbered_groups(groups, rows)
        if headings is not None and len(headings) != count:
            raise DataError(f"X has {count} columns, but {len(headings)} headings are given")
        original = {} if headings is None else dict(zip(names, map(str, headings), strict=True))
        others = {} if loss_columns is None else check_loss_columns(loss_columns, rows)
        plain = cls(
            columns,
            np.ascontiguousarray(target),
            weights,
            names,
            groups=numbered,
            times=None if times is None else instants(times, rows),
            headings=original,
            loss_columns=others,
        )
        if sigma is None:
            return plain
        deviations = np.ascontiguousarray(numbers(sigma, "sigma", 1))
        if len(deviations) != rows:
            raise DataError(f"X has {rows} rows, but sigma has {len(deviations)}")
        if not (deviations > 0).all():
            row = int(np.argmin(deviations > 0))
            raise DataError(f"sigma must be positive in every row; it is {deviations[row]} in row {row}")
        if "sigma" in others:
            raise DataError("sigma is given twice, also beside the data; give it once")
        # Weights know the ratios only; losses may read the deviations themselves.
        return replace(plain, loss_columns={**others, "sigma": deviations}).with_deviations(deviations)

    def with_deviations(self, deviations: Floats) -> Dataset:
        """The data set with noise of these standard deviations; a row's weight falls with their square.

        Parameters
        ----------
        deviations : ndarray of shape (n_rows,)
            Positive. Only their ratios count: the weights keep their sum.
        """
        given = self.sample_weights
        # Exact powers of two keep the squares within float64's range.
        relative = np.ldexp(deviations, -int(np.frexp(deviations.max())[1]))
        precisions = 1 / np.maximum(relative, LEAST_DEVIATION) ** 2
        weights = given * precisions
        factor = float(stable_sum(given)) / float(stable_sum(weights))
        return replace(self, weights=weights * factor, deviations=np.sqrt(1 / (precisions * factor)))

    @property
    def without_deviations(self) -> Dataset:
        """The data set with the sample weights alone; the same object if it has no deviations."""
        if self.deviations is None:
            return self
        return replace(self, weights=self.sample_weights, deviations=None)

    @property
    def sample_weights(self) -> Floats:
        """Weight of each row without regard to its noise, shape (n_rows,)."""
        return self.row_weights if self.deviations is None else self.row_weights * self.deviations**2

    def take(self, rows: ArrayLike) -> Dataset:
        """The rows at some indices."""
        at = np.asarray(rows)
        weights = None if self.weights is None else self.weights[at]
        return Dataset(
            _stacked([column[at] for column in self.columns], len(self.target[at])),
            self.target[at],
            weights,
            self.features,
            None if self.deviations is None else self.deviations[at],
            None if self.groups is None else self.groups[at],
            None if self.times is None else self.times[at],
            self.headings,
            {name: column[at] for name, column in self.loss_columns.items()},
            self.labels,
            worth=self.worth,
            known_ranges=self.ranges,
            serial=None if self.serial is None else self.serial.take(at),
        )

    def without(self, features: Collection[str]) -> Dataset:
        """The data set without the given features; the same object if it has none of them."""
        left_out = set(features)
        kept = [index for index, name in enumerate(self.features) if name not in left_out]
        if len(kept) == len(self.features):
            return self
        names = tuple(self.features[index] for index in kept)
        return replace(self, columns=_stacked([self.columns[index] for index in kept], self.n_rows), features=names)

    def sampled(self, rows: int, rng: np.random.Generator) -> Dataset:
        """A random sample of at most `rows` rows, in their order; the same object if there are no more.

        Rows of weight 0 say nothing, and are left out of a sample.
        """
        if self.n_rows <= rows:
            return self
        if self.weights is not None and not self.weights.all():
            return self.take(np.flatnonzero(self.weights)).sampled(rows, rng)
        return self.take(np.sort(rng.choice(self.n_rows, rows, replace=False)))

    def merged(self, most: float = MOST_MERGED) -> Dataset:
        """The data set with equal rows merged into the first of them, and weights added; itself if there are none.

        A search is deterministic, but the last bit of its data decides its course. So rows with whole weights and rows
        repeated as often give the same formulas. Of more than `most` rows, none are merged: a search takes a sample.
        """
        weights = self.row_weights
        if self.all_rows is not None or self.n_rows > most:
            return self
        if self.deviations is not None and "sigma" in self.loss_columns:
            # Rounding would tell the repeated rows from the merged ones.
            shares, exponents = np.frexp(self.sample_weights)
            plain = replace(self, weights=np.ldexp(np.round(shares, 12), exponents), deviations=None).merged(most)
            return plain.with_deviations(plain.loss_columns["sigma"])
        if not weights.all():
            return self.take(np.flatnonzero(weights)).merged(most)
        if len(np.unique(self.target)) == self.n_rows:  # much quicker to see
            return self
        others = [each for each in (self.deviations, self.groups) if each is not None]
        table = np.column_stack([*self.columns, self.target, *others, *self.loss_columns.values()]) + 0.0
        _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
        if len(first) == self.n_rows:
            return self
        sums, order = np.bincount(place.reshape(-1), weights).astype(np.float64), np.argsort(first)
        return replace(self.take(first[order]), weights=sums[order])

    @cached_property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """Least and greatest value of each feature in all rows, of which these may be a sample or a part."""
        if self.all_rows is not None:
            return self.all_rows.ranges
        if self.known_ranges is not None:
            return self.known_ranges
        ends = ((float(column.min()), float(column.max())) for column in self.columns)
        return dict(zip(self.features, ends, strict=True))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.target)

    @cached_property
    def row_weights(self) -> Floats:
        """Weight of each row, shape (n_rows,)."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    def blocks(self, rows: int = 1 << 16) -> Iterator[tuple[Floats, Floats]]:
        """Blocks of the target and the weights, for sums that need little memory."""
        for start in range(0, self.n_rows, rows):
            target = self.target[start : start + rows]
            yield target, np.ones(len(target)) if self.weights is None else self.weights[start : start + rows]

    @cached_property
    def weight(self) -> float:
        """Sum of the weights."""
        return _total(stable_sum(weights) for _, weights in self.blocks())

    @cached_property
    def effective_rows(self) -> float:
        """Number of equally weighted rows with the same information (Kish 1965); whole weights count repeated rows.

        Rows count by their sample weights: precise and noisy rows alike are rows. Of rows whose errors are alike, fewer
        count. There are at most `worth`.
        """
        found = self._weighted_rows
        if self.serial is not None:
            found *= self.serial.independent_rows / self.n_rows
        return found if self.worth is None else min(found, self.worth)

    @property
    def independence(self) -> float:
        """Share of what the rows say that is no repetition: below 1 if `worth` is less, or they follow one another."""
        return self.effective_rows / self._weighted_rows

    @property
    def rows_by_weight(self) -> float:
        """Rows that a unit of sample weight counts as: 1 if whole weights count repeated rows."""
        return self._weighted_rows / float(stable_sum(self.sample_weights))

    @property
    def _weighted_rows(self) -> float:
        weights = self.sample_weights
        # Nobody has seen a row a billion times, and very large numbers are always whole.
        if self.deviations is None and (weights == np.floor(weights)).all() and weights.max() < MOST_SEEN:
            return self.weight
        weights = ordinary_weights(weights)  # those of a sample may be tiny, and their squares 0
        return float(stable_sum(weights)) ** 2 / float(stable_sum(weights * weights))

    @cached_property
    def target_mean(self) -> float:
        """Weighted mean of the target."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = _total(stable_sum(weights * target) for target, weights in self.blocks()) / self.weight
        return mean if math.isfinite(mean) else stable_mean(self.target, ordinary_weights(self.row_weights))

    @cached_property
    def target_square(self) -> float:
        """Weighted sum of the target's squared deviations from its mean; inf beyond float64's range."""
        mean = self.target_mean
        with np.errstate(over="ignore"):
            return _total(stable_sum(weights * (target - mean) ** 2) for target, weights in self.blocks())


@dataclass(frozen=True, eq=False)
class AllRows:
    """All rows of a data set of which memory holds a sample. They are read block by block.

    Parameters
    ----------
    n_rows : int
    weight : float
        Sum of the sample weights.
    effective_rows : float
        As that of a `Dataset`.
    target_mean, target_square : float
        Weighted mean of the target, and weighted sum of squared deviations from it.
    ranges : mapping of str to (float, float)
        Least and largest value of each feature.
    checksum : int
        Of all values.
    read : callable
        Names of features -> the rows with these features, in their order, in blocks that do not depend on how the rows
        are stored. A block's deviations, and the weights that follow from them, have a factor that all blocks share.
    """

    n_rows: int
    weight: float
    effective_rows: float
    target_mean: float
    target_square: float
    ranges: Mapping[str, tuple[float, float]]
    checksum: int
    read: Callable[[Collection[str]], Iterator[Dataset]]


def _stacked(columns: Sequence[Floats], rows: int) -> Floats:
    """Contiguous columns, made by a single copy."""
    stacked = np.empty((len(columns), rows))
    for own, column in zip(stacked, columns, strict=True):
        own[:] = column
    return stacked


def _total(sums: Iterable[Floats]) -> float:
    return float(stable_sum(np.array([float(part) for part in sums])))


def stable_sum(values: Floats) -> Floats:
    """Sum over the last axis by halving it: accurate, and the same bits on every machine.

    NumPy's order of additions depends on the vector instructions of the host.
    """
    count = values.shape[-1]
    while count > 1:
        half = (count + 1) // 2
        lower = values[..., :half].copy()
        lower[..., : count - half] += values[..., half:count]
        values, count = lower, half
    return values[..., 0]


def stable_mean(values: Floats, weights: Floats | None = None) -> float:
    """Mean of finite numbers; no sum within it leaves float64's range.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        At least one.
    weights : ndarray of shape (n_values,), optional
        Not negative, with a positive sum.
    """
    exponent = int(np.frexp(np.abs(values).max())[1])
    exponent = exponent if exponent > ORDINARY else 0
    shares = np.ldexp(values, -exponent)
    # Deviations from the first value keep the digits of large numbers that differ little.
    deviations, count = shares - shares[0], len(values)
    total = (
        stable_sum(deviations) / count if weights is None else stable_sum(weights * deviations) / stable_sum(weights)
    )
    return float(np.ldexp(shares[0] + total, exponent))


def ordinary_weights(weights: Floats) -> Floats:
    """Weights whose sums stay in float64's range: extreme ones are divided by a power of two, which changes no result.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Not negative.
    """
    exponent = int(np.frexp(weights.max(initial=0.0))[1])
    return np.ldexp(weights, -exponent) if abs(exponent) > ORDINARY else weights
