"""Correlations of all members of a bank with all views of a target: the best members, pairs and triples; and the part
of a logarithm that no product of powers of the features explains, which is correlated likewise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Indices, Singles
from shine.compiler.arrays import Panels, Regression, dot, inner, log

AT_ONCE = 1 << 23
"""Correlations held at a time, which bounds the memory."""

PARALLEL_PAIR = 1e-3
"""Squared sine of the angle of two members, below which float32 cannot tell how much both explain."""


@dataclass(frozen=True, eq=False)
class Normalized:
    """Rows of values, centered at their weighted mean and scaled to length 1.

    Parameters
    ----------
    units : ndarray of shape (n, n_rows), float32
        0 where a row of values is unusable.
    means, lengths : ndarray of shape (n,)
    """

    units: Singles
    means: Floats
    lengths: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> Normalized:
        """Normalize rows of values; rows that are constant or not finite are unusable.

        Parameters
        ----------
        values : ndarray of shape (n, n_rows)
        weights : ndarray of shape (n_rows,)
            They add up to 1.
        """
        units, means, lengths = units_of(values, weights)
        return cls(units.astype(np.float32), means, lengths)


def units_of(values: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Rows of values, centered and scaled to length 1 in double precision; their means and lengths."""
    with np.errstate(all="ignore"):
        means = dot(values, weights)
        centered = (values - means[:, None]) * np.sqrt(weights)
        lengths = np.sqrt(dot(centered, centered))
        # Length below which values cannot be normalized: its square underflows.
        # Standard deviation, as a share of the mean, below which values are a constant with rounding
        good = np.isfinite(lengths) & (lengths > 1e-9 * np.abs(means)) & (lengths > 1e-150)
        inverse = np.where(good, 1 / np.where(good, lengths, 1), 0)
        units = np.where(good[:, None], centered, 0) * inverse[:, None]
    return units, np.where(good, means, 0), np.where(good, lengths, 0)


def best_matches(members: Panels, views: Singles, each: int) -> tuple[Indices, Indices, Floats]:
    """The members that correlate best with each view.

    Parameters
    ----------
    members : Panels
        Rows of float32, normalized.
    views : ndarray of shape (n_views, n_rows), float32
    each : int
        Members for each view.

    Returns
    -------
    views, members : ndarray of shape (n,), int64
    correlations : ndarray of shape (n,)
    """
    at_once = max(1, AT_ONCE // max(members.count, 1))
    found_views, found_members, found = [], [], []
    each = min(each, members.count)
    for start in range(0, len(views), at_once):
        correlations = members.inner(views[start : start + at_once])
        best = largest(np.abs(correlations), each)
        found_members.append(best.ravel())
        found_views.append(np.repeat(np.arange(start, start + len(correlations)), best.shape[1]))
        found.append(np.take_along_axis(correlations, best, axis=1).ravel())
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(found_views), np.concatenate(found_members), np.concatenate(found).astype(np.float64)


def largest(table: Singles, each: int) -> Indices:
    """Columns of the largest entries of each row, shape (n_rows, each), the largest first; overwrites the table.

    The first of equal entries comes first. (`np.argpartition` would order them differently on other processors.)
    """
    each = min(each, table.shape[1])
    found = np.empty((len(table), each), np.int64)
    rows = np.arange(len(table))
    for place in range(each):
        found[:, place] = np.argmax(table, axis=1)
        table[rows, found[:, place]] = -1
    return found


def best_pairs(units: Singles, view: Singles, gram: Singles, most: int) -> tuple[Indices, Indices, Floats]:
    """Pairs of members that explain a view best together: each member with its best partner.

    Parameters
    ----------
    units : ndarray of shape (n, n_rows), float32
    view : ndarray of shape (n_rows,), float32
    gram : ndarray of shape (n, n)
        Correlations of the members with each other.
    most : int

    Returns
    -------
    first, second : ndarray of shape (n_pairs,), int64
    unexplained : ndarray of shape (n_pairs,)
        Share of the view's variance.

    Notes
    -----
    For two regressors, ``1 - R2 = (1 - a^2 - b^2 - r^2 + 2 a b r) / (1 - r^2)`` with their correlations a, b with the
    view and r with each other. Pairs that are nearly parallel are left out.
    """
    own = dot(units, view)
    found: list[tuple[Indices, Indices, Floats]] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    block = max(1, AT_ONCE // 4 // max(len(units), 1))
    for start in range(0, len(units), block):
        a, r = own[start : start + block, None], gram[start : start + block]
        apart = 1 - r * r
        unexplained = (apart - a * a - own * own + 2 * a * own * r) / np.maximum(apart, PARALLEL_PAIR)
        unexplained[apart < PARALLEL_PAIR] = 1
        partner = np.argmin(unexplained, axis=1)
        rows = np.arange(len(partner))
        found.append((rows + start, partner, unexplained[rows, partner].astype(np.float64)))
    i, j, unexplained = (np.concatenate(column) for column in zip(*found, strict=True))
    _, once = np.unique(np.minimum(i, j) * len(units) + np.maximum(i, j), return_index=True)
    i, j, unexplained = i[once], j[once], unexplained[once]
    order = np.argsort(unexplained, kind="stable")[:most]
    return i[order], j[order], unexplained[order]


def fitted_lines(
    views: Normalized, members: Normalized, values: Floats, which: Indices, chosen: Indices, correlations: Floats
) -> Floats:
    """Predictions of views by regressions on one member each, shape (n, n_rows).

    Parameters
    ----------
    views, members : Normalized
    values : ndarray of shape (n_members, n_rows)
    which, chosen : ndarray of shape (n,), int64
        The view and the member of each regression.
    correlations : ndarray of shape (n,)
    """
    slopes = correlations * views.lengths[which] / np.maximum(members.lengths[chosen], np.finfo(np.float64).tiny)
    return views.means[which][:, None] + (values[chosen] - members.means[chosen][:, None]) * slopes[:, None]


def monomial_basis(columns: Sequence[Floats], weights: Floats) -> Floats:
    """An orthonormal basis of the span of 1 and log|column|, times the square roots of weights; (n_basis, n_rows)."""
    ones = np.ones(len(weights))
    logs = [log(np.abs(column)) for column in columns]
    # Length, as a share of its own, below which a logarithm adds only rounding to the others.
    found = Regression.of(np.stack([ones, *logs]) * np.sqrt(weights), 1e-9)
    return found.basis[found.kept]


def beyond_monomials(values: Floats, basis: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The part of log|values| that no monomial explains, each row scaled to length 1, and its length before.

    Rows with a zero or a non-finite value, and rows that are monomials themselves, become 0 with the length 0.
    """
    with np.errstate(all="ignore"):
        logs = log(np.abs(values)) * np.sqrt(weights)
        total = np.sqrt(dot(logs, logs))
        rest = logs - inner(inner(logs, basis), basis.T)
        lengths = np.sqrt(dot(rest, rest))
        # Length of the part that monomials leave, as a share of the whole logarithm, below which it is rounding.
        good = np.isfinite(lengths) & (lengths > 1e-7 * total)
        rest = np.where(good[:, None], rest / np.where(good, lengths, 1)[:, None], 0)
    return rest, np.where(good, lengths, 0.0)
