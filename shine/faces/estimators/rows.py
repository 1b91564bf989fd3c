"""Rows in a canonical form, so that a whole weight means the same as a repeated row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shine.base.typing import Floats, Indices
from shine.data.columns.headings import frame_headings
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import distinct_names
from shine.search.evolution.complexity import CONSTANT_NAME

MOST_MERGED = 10_000
"""Most rows that are merged. A search takes a random sample of more rows, which merging cannot make equal."""


def in_order(
    X: Floats, Y: Floats, weights: Floats | None, sigma: Floats | None, groups: Indices | None
) -> tuple[Floats, Floats, Floats | None, Floats | None, Indices | None]:
    """Rows of positive weight, in their order, which tells the time (see `merged` for the parameters)."""
    if weights is None or weights.all():
        return X, Y, weights, sigma, groups
    there = weights > 0
    sigma = None if sigma is None else sigma[there]
    return X[there], Y[there], weights[there], sigma, None if groups is None else groups[there]


def seen(column: Floats, weights: Floats | None) -> Floats:
    """The rows of a column that have positive weight (see `in_order`)."""
    return column if weights is None or weights.all() else column[weights > 0]


def merged(
    X: Floats, Y: Floats, weights: Floats | None, sigma: Floats | None = None
) -> tuple[Floats, Floats, Floats | None, Floats | None]:
    """Rows of positive weight; up to `MOST_MERGED` of them also sorted, equal rows merged and their weights added.

    A search is deterministic, but the last bit of its data decides its course. Here, a row with a whole weight becomes
    the same as rows repeated as often, in any order, so both give the same formulas.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    Y : ndarray of shape (n_rows, n_targets)
    weights : ndarray of shape (n_rows,), optional
        Not negative, one positive.
    sigma : ndarray of shape (n_rows,), optional
        Standard deviations; rows are equal only if theirs are.

    Returns
    -------
    X, Y, weights, sigma
        The weights are None if all are equal.
    """
    Z = np.zeros((len(X), 0)) if sigma is None else sigma[:, None]
    if weights is not None and not weights.all():
        X, Y, Z, weights = X[weights > 0], Y[weights > 0], Z[weights > 0], weights[weights > 0]
    if len(X) <= MOST_MERGED:
        # Adding 0.0 makes -0.0 and 0.0 one number.
        table = np.column_stack([X, Y, Z]) + 0.0
        table, inverse = np.unique(table, axis=0, return_inverse=True)
        weights = np.bincount(inverse.reshape(-1), weights, minlength=len(table)).astype(np.float64)
        X, Y, Z = np.split(table, [X.shape[1], X.shape[1] + Y.shape[1]], axis=1)
    if weights is not None and (weights == weights[0]).all():
        weights = None
    return X, Y, weights, None if sigma is None else Z[:, 0]


def formula_names(headings: Sequence[object] | None, count: int) -> tuple[str, ...]:
    """A distinct identifier for each column.

    See `shine.lang.forms.names.distinct_names`; names of Shine's primitives count as taken.

    Parameters
    ----------
    headings : sequence, optional
        The names are ``x0, x1, ...`` without headings.
    count : int
        Number of columns.

    Examples
    --------
    >>> formula_names(["mass", "my col", "my-col", "lambda", "sin"], 5)
    ('mass', 'my_col', 'my_col_2', 'lambda_', 'sin_')
    """
    if headings is None:
        return tuple(f"x{i}" for i in range(count))
    return distinct_names(headings, STANDARD.keys() | {CONSTANT_NAME})


def names_and_headings(X: Any) -> tuple[tuple[str, ...], list[str]]:
    """Names in formulas, and headings, of the columns of a table that scikit-learn has not validated."""
    headings = frame_headings(X)
    try:
        shape = np.shape(X)
    except ValueError:  # rows of several lengths, of which the check of X tells
        shape = ()
    names = formula_names(headings, shape[1] if len(shape) > 1 else 1)
    return names, list(names) if headings is None else headings
