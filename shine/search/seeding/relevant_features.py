"""The features that a target seems to depend on, for tables with too many to combine them all."""

from __future__ import annotations

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import dot, inner, log
from shine.compiler.arrays.functions import Regression

MOST_PAIRED = 1000
"""Features whose products are all tried: the time grows with the square of their number."""

AT_ONCE = 1000
"""Features that are scored together, which bounds the memory."""

LEAST_RANGE = 1e-12
"""Range of a feature, as a share of its largest value, below which it varies by rounding only."""

DEPENDENT = 1e-8
"""Length, as a share of its own, below which a column adds only rounding to the others."""

LEAST_RESIDUAL = 1e-9
"""Length of the residual, as a share of the target's, below which it is rounding."""


def relevant_features(columns: Floats, target: Floats, weights: Floats, most: int) -> Indices:
    """The features that explain most, alone or multiplied by another.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows)
    target, weights : ndarray of shape (n_rows,)
        The weights add up to 1.
    most : int

    Returns
    -------
    ndarray of shape (at most `most`,), int64
        Ascending; all features that vary, if these are few enough.

    Notes
    -----
    A feature's score is the larger of two squared correlations. The first is between the target or its logarithm and
    the feature, its square, its distance from the mean, its logarithm or its inverse. The second is between its product
    with another feature and the residual of a regression on the best features and their squares: only this one shows a
    product of two features centered at 0. With very many features, only products of the best ones are tried.
    """
    varying = np.flatnonzero(np.ptp(columns, axis=1) > LEAST_RANGE * np.abs(columns).max(axis=1))
    if len(varying) <= most:
        return varying
    root = np.sqrt(weights)
    views = _standardized(np.stack([target, log(np.abs(target))]), weights) * root
    blocks = (varying[start : start + AT_ONCE] for start in range(0, len(varying), AT_ONCE))
    scores = np.concatenate([_scores(columns[block], views, weights) for block in blocks])
    order = np.argsort(-scores, kind="stable")
    best = _standardized(columns[varying[order[:most]]], weights)
    regression = Regression.of(np.concatenate([np.ones((1, len(target))), best, best * best]) * root, DEPENDENT)
    residual = regression.rest(views[0])
    size = float(np.sqrt(dot(residual, residual)))
    if size > LEAST_RESIDUAL:
        paired = order[:MOST_PAIRED]
        x = _standardized(columns[varying[paired]], weights)
        together = np.abs(inner(x * (root * residual / size), x))
        np.fill_diagonal(together, 0)
        scores[paired] = np.maximum(scores[paired], together.max(axis=1) ** 2 * size**2)
    return np.sort(varying[np.argsort(-scores, kind="stable")[:most]])


def _scores(columns: Floats, views: Floats, weights: Floats) -> Floats:
    """Largest squared correlation of a form of each feature with a view of the target."""
    x, root = _standardized(columns, weights), np.sqrt(weights)
    with np.errstate(all="ignore"):
        forms = [x, x * x, np.abs(x), log(np.abs(columns)), 1 / columns]
    return np.max([np.abs(inner(_standardized(form, weights) * root, views)) for form in forms], axis=(0, 2)) ** 2


def _standardized(rows: Floats, weights: Floats) -> Floats:
    """Rows with mean 0 and variance 1; 0 where that is impossible."""
    with np.errstate(all="ignore"):
        centered = rows - dot(rows, weights)[:, None]
        spread = np.sqrt(dot(centered * centered, weights))
    good = np.isfinite(spread) & (spread > 0)
    return np.where(good[:, None], np.where(good[:, None], centered, 0) / np.where(good, spread, 1)[:, None], 0)
