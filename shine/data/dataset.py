"""The data set of evaluators: columns, a target, weights. Values are checked here, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from shine.data.frames import array_problem, frame_problem
from shine.errors import DataError
from shine.lang.lazy import cached_property
from shine.lang.names import cut, distinct_names, identifier, name_problem, normalized, shown
from shine.typing import Floats, Indices

COPIED_BYTES = 1 << 25
"""Columns of at most this size are copied to be contiguous; larger ones stay as they are, to save memory."""

ORDINARY = 128
"""Numbers with at most this absolute binary exponent, 3e-39 to 3e38, need no scaling. A product of seven is finite."""

MOST_SEEN = 1e9
"""From this weight on, whole weights no longer count as repeated rows."""

LEAST_DEVIATION = 1e-140
"""Least standard deviation of a row's noise, as a share of the largest: weights and their squares stay finite."""

_CHECKED = 1 << 20
"""Numbers checked at a time, to bound memory."""


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
    headings : mapping of str to str
        Original heading of each column, by its name in `features`; empty if names are the headings.
    beside : mapping of str to ndarray of shape (n_rows,), float64
        Columns that are no features, by name: losses may read them.
    labels : mapping of str to tuple of str
        Texts that the values of a column number, by its name.
    """

    columns: Floats
    target: Floats
    weights: Floats | None
    features: tuple[str, ...]
    deviations: Floats | None = None
    groups: Indices | None = None
    headings: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, Floats] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        features: Sequence[str] | None = None,
        sigma: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        headings: Sequence[str] | None = None,
        beside: Mapping[str, ArrayLike] | None = None,
    ) -> Dataset:
        """Check arrays and arrange them by column.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,), optional
        features : sequence of str, optional
            Names of the columns; ``x0, x1, ...`` by default.
        sigma : array-like of shape (n_rows,), optional
            Standard deviation of the noise in each row; only their ratios count.
        groups : array-like of shape (n_rows,), optional
            Label of the group that each row belongs to: numbers or strings.
        headings : sequence of str, optional
            Original headings of the columns, any text; the names by default.
        beside : mapping of str to array-like of shape (n_rows,), optional
            Columns that are no features, by name.

        Raises
        ------
        DataError
            If shapes do not fit, there is no row or no column, a value is not a finite number, a weight is negative,
            none is positive, a standard deviation is not positive, a group has no label, or a name is invalid.
        """
        matrix, target = numbers(X, "X", 2), numbers(y, "y", 1)
        rows, count = matrix.shape
        if not rows or not count:
            raise DataError(f"X has shape {matrix.shape}; at least one row and one feature are needed")
        if len(target) != rows:
            raise DataError(f"X has {rows} rows, but y has {len(target)}")
        names = tuple(f"x{i}" for i in range(count)) if features is None else check_features(features)
        if len(names) != count:
            raise DataError(f"X has {count} columns, but {len(names)} feature names are given")
        weights = None
        if sample_weight is not None:
            weights = np.ascontiguousarray(numbers(sample_weight, "sample_weight", 1))
            if len(weights) != rows:
                raise DataError(f"X has {rows} rows, but sample_weight has {len(weights)}")
            if (weights < 0).any() or not weights.any():
                raise DataError("sample weights must not be negative, and one must be positive")
            weights = ordinary_weights(weights)
        # Columns that are contiguous already (Fortran order) are never copied.
        columns = np.ascontiguousarray(matrix.T) if matrix.nbytes <= COPIED_BYTES else matrix.T
        numbered = None if groups is None else numbered_groups(groups, rows)
        if headings is not None and len(headings) != count:
            raise DataError(f"X has {count} columns, but {len(headings)} headings are given")
        original = {} if headings is None else dict(zip(names, map(str, headings), strict=True))
        others = {} if beside is None else check_beside(beside, rows)
        plain = cls(
            columns, np.ascontiguousarray(target), weights, names, groups=numbered, headings=original, beside=others
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
        return replace(plain, beside={**others, "sigma": deviations}).with_deviations(deviations)

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
            self.headings,
            {name: column[at] for name, column in self.beside.items()},
            self.labels,
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
        """A random sample of at most `rows` rows, in their order; the same object if there are no more."""
        if self.n_rows <= rows:
            return self
        return self.take(np.sort(rng.choice(self.n_rows, rows, replace=False)))

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

        Rows count by their sample weights: precise and noisy rows alike are rows.
        """
        if self.deviations is not None:
            weights = self.sample_weights
            return float(stable_sum(weights)) ** 2 / float(stable_sum(weights * weights))
        weights = self.row_weights
        # Nobody has seen a row a billion times, and very large numbers are always whole.
        if (weights == np.floor(weights)).all() and weights.max() < MOST_SEEN:
            return self.weight
        return self.weight**2 / float(stable_sum(weights * weights))

    @cached_property
    def target_mean(self) -> float:
        """Weighted mean of the target."""
        return _total(stable_sum(weights * target) for target, weights in self.blocks()) / self.weight

    @cached_property
    def target_square(self) -> float:
        """Weighted sum of the target's squared deviations from its mean."""
        mean = self.target_mean
        return _total(stable_sum(weights * (target - mean) ** 2) for target, weights in self.blocks())


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


def ordinary_weights(weights: Floats) -> Floats:
    """Weights whose sums stay in float64's range: extreme ones are divided by a power of two, which changes no result.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Not negative.
    """
    exponent = int(np.frexp(weights.max(initial=0.0))[1])
    return np.ldexp(weights, -exponent) if abs(exponent) > ORDINARY else weights


def check_unmasked(values: object, name: str) -> None:
    """Raise a `DataError` if values are an array with masked elements."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise DataError(f"{name} has masked values; fill them, or leave their rows out")


def too_large(name: str) -> DataError:
    """The error for a whole number beyond the range of float64."""
    return DataError(f"{name} has a whole number beyond 1.8e308, the largest float64; scale it")


def numbers(values: ArrayLike, name: str, dimensions: int) -> Floats:
    """A float64 array of finite numbers; the same object if it is one already.

    Raises
    ------
    DataError
        Naming the first offending row, and column if there are two dimensions.
    """
    check_unmasked(values, name)
    problem = frame_problem(values, name)
    if problem is not None:
        raise DataError(problem)
    try:
        given = np.asarray(values)
        if given.dtype.kind == "c":
            raise DataError(f"{name} has complex numbers; real ones are needed")
        with np.errstate(over="ignore"):  # too large numbers become infinite and are reported below
            array = np.asarray(given, dtype=np.float64)
    except OverflowError:
        raise too_large(name) from None
    except (TypeError, ValueError) as error:
        raise DataError(array_problem(values, name) or f"{name} cannot be read as numbers: {cut(error)}") from None
    if array.ndim != dimensions:
        shape = "(n_rows, n_features)" if dimensions == 2 else "(n_rows,)"
        raise DataError(f"{name} has shape {array.shape}; {shape} is needed")
    step = max(_CHECKED // max(array[:1].size, 1), 1)
    if not all(np.isfinite(array[start : start + step]).all() for start in range(0, len(array), step)):
        finite = np.isfinite(array)
        place = np.argwhere(~finite)[0].tolist()
        where = f"row {place[0]}" + (f", column {place[1]}" if dimensions == 2 else "")
        raise DataError(f"{name} has {(~finite).sum()} values that are NaN or infinite, the first in {where}")
    return array


def numbered_groups(labels: ArrayLike, rows: int) -> Indices:
    """Number of each row's group, in the order of their labels.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        Numbers or strings.
    rows : int
        Number of rows that need a label.

    Raises
    ------
    DataError
        If there is not one label for each row, or a label is missing.
    """
    check_unmasked(labels, "groups")
    given = np.asarray(labels)
    if given.shape != (rows,):
        raise DataError(f"groups has shape {given.shape}; X has {rows} rows, so ({rows},) is needed")
    if given.dtype.kind == "O":
        # A column of a data frame has its texts, and None or NaN where one is missing.
        missing = [label is None or label != label for label in given]
        given = given.astype(str)
    else:
        missing = list(np.isnan(given)) if given.dtype.kind == "f" else []
    if any(missing):
        raise DataError(f"groups has no label in row {missing.index(True)}; give every row a label")
    numbers: Indices = np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers


def check_beside(beside: Mapping[str, ArrayLike], rows: int) -> dict[str, Floats]:
    """Columns beside the features, with normalized names.

    Raises
    ------
    DataError
        If a name is invalid or occurs twice, or a column has not one finite number for each row.
    """
    names = check_features(list(beside), "column")
    columns = {
        name: np.ascontiguousarray(numbers(values, f"column {shown(name)}", 1))
        for name, values in zip(names, beside.values(), strict=True)
    }
    for name, column in columns.items():
        if len(column) != rows:
            raise DataError(f"X has {rows} rows, but column {shown(name)} has {len(column)}")
    return columns


def frame_headings(X: object) -> list[str] | None:
    """The headings of a data frame; None for other tables, and for frames whose columns have numbers."""
    columns = getattr(X, "column_names", getattr(X, "columns", None))  # of Arrow; of pandas and Polars
    if columns is None or not all(isinstance(heading, str) for heading in columns):
        return None
    return list(columns)


def names_of_headings(headings: Sequence[str]) -> tuple[str, ...]:
    """Distinct feature names for headings, which may be any text.

    Raises
    ------
    DataError
        If a heading occurs twice.
    """
    texts = [str(heading) for heading in headings]
    heading, uses = Counter(texts).most_common(1)[0] if texts else ("", 0)
    if uses > 1:
        raise DataError(f"feature name {shown(heading)} occurs twice; rename one of them")
    return distinct_names(texts)


def check_features(names: Sequence[str], what: str = "feature name") -> tuple[str, ...]:
    """Feature names that formulas can use, normalized as formulas are (see `shine.lang.names.normalized`).

    Parameters
    ----------
    names : sequence of str
    what : str
        What they are, for messages.

    Raises
    ------
    DataError
        If a name is not an identifier, is a keyword, is too long, begins with two underscores, or occurs twice.
    """
    checked: dict[str, str] = {}
    for given in map(str, names):
        name = normalized(given)
        problem = name_problem(name)
        if problem is not None:
            would_do = shown(identifier(given))
            raise DataError(f"{what} {shown(given)} {problem}; rename the column, {would_do} would do")
        if name in checked:
            raise DataError(f"{what} {shown(given)} {_repetition(checked[name], given, name)}; rename one of them")
        checked[name] = given
    return tuple(checked)


def _repetition(first: str, second: str, name: str) -> str:
    if first == second:
        return "occurs twice"
    return f"and {shown(first)} are one name in formulas, which are read in Unicode's normal form: {shown(name)}"
