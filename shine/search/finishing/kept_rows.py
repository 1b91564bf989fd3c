"""Validation rows, kept back from the search to choose the formula by (see `shine.search.finishing.validation`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np

from shine.base.errors import DataError
from shine.base.typing import Indices, Mask
from shine.data.datasets.dataset import Dataset
from shine.lang.forms.names import value_text

Validation = Literal["random", "groups", "time"]

UNITS = {"random": "rows with different features", "groups": "groups", "time": "rows"}
"""Units of rows that are kept back."""

DRAWING = 2
"""Number of the random generator that draws the rows, beside that of the search."""

COMPARED_ROWS = 100_000
"""Rows up to which those with equal features are kept back together: comparing more of them takes seconds."""


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Validation rows, and the method of choosing them."""

    rows: Dataset
    way: str


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to search in, and rows that are kept back.

    Parameters
    ----------
    dataset : Dataset
        All rows.
    way : str
        How rows are kept back; empty if they are not.
    hidden : ndarray of shape (n_rows,), bool
        Whether a row is kept back.
    """

    dataset: Dataset
    way: str
    hidden: Mask

    @classmethod
    def of(cls, dataset: Dataset, validation: str | None, fraction: float, seed: int) -> Self:
        """The split that the settings ask for (see `kept_back`)."""
        return cls(dataset, way_of(dataset, validation), kept_back(dataset, validation, fraction, seed))

    @property
    def learned(self) -> Dataset:
        """The rows that the search sees."""
        return self.dataset.take(np.flatnonzero(~self.hidden)) if self.way else self.dataset

    @property
    def kept(self) -> Dataset:
        """The rows that it does not see."""
        return self.dataset.take(np.flatnonzero(self.hidden))


def check_validation(validation: str | None, fraction: float) -> None:
    """Raise a `ValueError` if there is no such way of keeping rows back, or the fraction is not one of the rows."""
    if validation is not None and validation not in get_args(Validation):
        raise ValueError(
            f"unknown validation {value_text(validation)}; use None or one of {', '.join(get_args(Validation))}"
        )
    if isinstance(fraction, bool) or not 0 < fraction < 1:
        raise ValueError(f"validation_fraction must be above 0 and below 1, is {value_text(fraction)}")


def way_of(dataset: Dataset, validation: str | None) -> str:
    """Method of choosing validation rows; empty if there are none."""
    return validation or ("groups" if dataset.groups is not None else "")


def kept_back(dataset: Dataset, validation: str | None, fraction: float, seed: int) -> Mask:
    """Whether each row is kept back from the search.

    Parameters
    ----------
    dataset : Dataset
    validation : {"random", "groups", "time"}, optional
        Rows at random (those with equal features together), whole groups, or the last rows. Without it, whole groups if
        the data set has groups, and otherwise none.
    fraction : float
        Least share of the rows to keep back.
    seed : int
        Of the search.

    Raises
    ------
    ValueError
        If `check_validation` raises it.
    DataError
        If groups are needed and missing or given and not used, or too few rows or groups are left to search in.
    """
    check_validation(validation, fraction)
    way, rng = way_of(dataset, validation), np.random.default_rng((seed, DRAWING))
    if not way:
        return np.zeros(dataset.n_rows, np.bool_)
    if way == "groups" and dataset.groups is None:
        raise DataError("validation='groups' needs groups: the label of each row's group; give them, or use 'random'")
    if way != "groups" and dataset.groups is not None:
        raise DataError(f"validation={way!r} does not use the groups; use validation='groups', or leave them out")
    if way == "time":
        kept = np.arange(dataset.n_rows) >= dataset.n_rows - _least(fraction, dataset.n_rows)
    else:
        kept = _complete_groups(_alike(dataset) if dataset.groups is None else dataset.groups, fraction, rng)
    weights = dataset.row_weights
    if not (weights[kept] > 0).any() or not (weights[~kept] > 0).any():
        raise DataError(
            f"validation={way!r} needs {UNITS[way]} of positive weight to search in, and others to keep back; "
            "there are too few"
        )
    return kept


def _least(fraction: float, count: int) -> int:
    return math.ceil(fraction * count)


def _complete_groups(groups: Indices, fraction: float, rng: np.random.Generator) -> Mask:
    """Groups in a random order, until they have the share of the rows; all but one at most."""
    sizes = np.bincount(groups)
    order = rng.permutation(len(sizes))
    enough = int(np.searchsorted(np.cumsum(sizes[order]), _least(fraction, len(groups)))) + 1
    taken = np.zeros(len(sizes), np.bool_)
    taken[order[: min(enough, len(sizes) - 1)]] = True
    kept: Mask = taken[groups]
    return kept


def _alike(dataset: Dataset) -> Indices:
    """Number of each row's features: replicates of a row that the search saw would only show the noise."""
    if dataset.n_rows > COMPARED_ROWS:
        return np.arange(dataset.n_rows)
    numbers: Indices = np.unique(dataset.columns.T, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return numbers
