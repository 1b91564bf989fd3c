"""Rows in a form of their own, so that a whole weight means what a repeated row means."""

from __future__ import annotations

import numpy as np

from shine.typing import Floats

MOST_MERGED = 10_000
"""Rows up to which equal ones are merged: a search looks at a random sample of more, which no order can make equal."""


def merged(X: Floats, Y: Floats, weights: Floats | None) -> tuple[Floats, Floats, Floats | None]:
    """Rows without those of weight 0; up to `MOST_MERGED` also sorted, with equal ones as one of their weights' sum.

    A search is deterministic to the last bit, and its course depends on the last bit. Rows with whole weights, and the
    same rows repeated as often and in any order, become the same rows here, and therefore the same formulas.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
    Y : ndarray of shape (n_rows, n_targets)
    weights : ndarray of shape (n_rows,), optional
        Not negative, one positive.

    Returns
    -------
    X, Y, weights
        The weights are None where all are equal.
    """
    if weights is not None and not weights.all():
        X, Y, weights = X[weights > 0], Y[weights > 0], weights[weights > 0]
    if len(X) <= MOST_MERGED:
        # 0.0 is added because -0.0 and 0.0 are one number in two forms.
        table = np.column_stack([X, Y]) + 0.0
        table, inverse = np.unique(table, axis=0, return_inverse=True)
        weights = np.bincount(inverse.reshape(-1), weights, minlength=len(table)).astype(np.float64)
        X, Y = table[:, : X.shape[1]], table[:, X.shape[1] :]
    if weights is not None and (weights == weights[0]).all():
        weights = None
    return X, Y, weights
