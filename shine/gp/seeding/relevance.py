"""Which features a target seems to depend on, when there are too many to combine them all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def relevant(columns: Array, target: Array, weights: Array, most: int) -> Indices:
    """The features that explain most, alone or times another.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows)
    target, weights : ndarray of shape (n_rows,)
        Weights add up to 1.
    most : int

    Returns
    -------
    ndarray of shape (at most `most`,), int64
        In ascending order; all features that are not constant, if these are few enough.

    Notes
    -----
    A feature's score is the largest squared correlation of the target, or its logarithm, with the feature, its square,
    its distance from the mean, its logarithm or its inverse; or of its product with another feature with what a
    regression on the best features and their squares leaves. A product of two features that are centered at 0 shows in
    the latter only.
    """
    varying = np.flatnonzero(np.ptp(columns, axis=1) > 1e-12 * np.abs(columns).max(axis=1))
    if len(varying) <= most:
        return varying
    root = np.sqrt(weights)
    x = _standardized(columns[varying], weights)
    with np.errstate(all="ignore"):
        forms = [x, x**2, np.abs(x), np.log(columns[varying]), 1 / columns[varying]]
        views = _standardized(np.stack([target, np.log(np.abs(target))]), weights) * root
        alone = np.max([(_standardized(form, weights) * root @ views.T) ** 2 for form in forms], axis=(0, 2))
        best = np.argsort(-alone, kind="stable")[:most]
        design = np.column_stack([np.ones_like(target), *x[best], *x[best] ** 2]) * root[:, None]
        goal = views[0]
        residual = goal - design @ np.linalg.lstsq(design, goal, rcond=1e-10)[0]
        size = np.sqrt(residual @ residual)
        if size > 1e-9:
            together = (x * (root * residual / size)) @ x.T
            np.fill_diagonal(together, 0)
            alone = np.maximum(alone, np.abs(together).max(axis=1) ** 2 * size**2)
    return np.sort(varying[np.argsort(-alone, kind="stable")[:most]])


def _standardized(rows: Array, weights: Array) -> Array:
    """Rows with mean 0 and variance 1; 0 where that is impossible."""
    centered = rows - (rows @ weights)[:, None]
    spread = np.sqrt(centered**2 @ weights)
    good = np.isfinite(spread) & (spread > 0)
    return np.where(good[:, None], np.where(good[:, None], centered, 0) / np.where(good, spread, 1)[:, None], 0)
