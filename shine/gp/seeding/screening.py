"""Screening: which members of a bank explain which views of the target, by correlations of blocks with blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.arrays import Panels, dot, inner, log
from shine.gp.regression import Regression
from shine.typing import Floats, Indices, Singles

CHUNK = 1 << 23
"""Correlations held at a time."""


@dataclass(frozen=True, eq=False)
class Normalized:
    """Rows of values with their weighted mean taken off, scaled to length 1.

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
        """Normalize rows of values; non-finite ones are unusable.

        Parameters
        ----------
        values : ndarray of shape (n, n_rows)
        weights : ndarray of shape (n_rows,)
            Adding up to 1.
        """
        with np.errstate(all="ignore"):
            means = dot(values, weights)
            centered = (values - means[:, None]) * np.sqrt(weights)
            lengths = np.sqrt(dot(centered, centered))
            good = np.isfinite(lengths) & (lengths > 1e-9 * np.abs(means)) & (lengths > 1e-150)
            inverse = np.where(good, 1 / np.where(good, lengths, 1), 0)
            units = np.where(good[:, None], centered, 0) * inverse[:, None]
        return cls(units.astype(np.float32), np.where(good, means, 0), np.where(good, lengths, 0))


def best_matches(members: Panels, views: Singles, each: int) -> tuple[Indices, Indices, Floats]:
    """The members that correlate best with each view.

    Parameters
    ----------
    members : Panels
        Of rows of float32.
    views : ndarray of shape (n_views, n_rows), float32
    each : int
        Members a view.

    Returns
    -------
    views, members : ndarray of shape (n,), int64
    correlations : ndarray of shape (n,)
    """
    at_once = max(1, CHUNK // max(members.count, 1))
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
    """Columns of the largest entries of each row, shape (n_rows, each), the largest first; the table is overwritten.

    Of equal entries the first ones: a partition of the table would take others on another processor.
    """
    each = min(each, table.shape[1])
    found = np.empty((len(table), each), np.int64)
    rows = np.arange(len(table))
    for place in range(each):
        found[:, place] = np.argmax(table, axis=1)
        table[rows, found[:, place]] = -1
    return found


def best_pairs(units: Singles, view: Singles, gram: Singles, most: int) -> tuple[Indices, Indices, Floats]:
    """Pairs of members that explain a view best together, each member with its best partner.

    Parameters
    ----------
    units : ndarray of shape (n, n_rows), float32
    view : ndarray of shape (n_rows,), float32
    gram : ndarray of shape (n, n)
        Correlations of the members.
    most : int

    Returns
    -------
    first, second : ndarray of shape (n_pairs,), int64
    shares : ndarray of shape (n_pairs,)
        Share of the view's variance that is left.

    Notes
    -----
    For two regressors, ``1 - R2 = (1 - a^2 - b^2 - r^2 + 2 a b r) / (1 - r^2)`` with their correlations a, b with the
    view and r with each other. Pairs that are nearly parallel are left out.
    """
    own = dot(units, view)
    found: list[tuple[Indices, Indices, Floats]] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    block = max(1, CHUNK // 4 // max(len(units), 1))
    for start in range(0, len(units), block):
        a, r = own[start : start + block, None], gram[start : start + block]
        apart = 1 - r * r
        left = (apart - a * a - own * own + 2 * a * own * r) / np.maximum(apart, 1e-3)
        left[apart < 1e-3] = 1
        partner = np.argmin(left, axis=1)
        rows = np.arange(len(partner))
        found.append((rows + start, partner, left[rows, partner].astype(np.float64)))
    i, j, left = (np.concatenate(column) for column in zip(*found, strict=True))
    _, once = np.unique(np.minimum(i, j) * len(units) + np.maximum(i, j), return_index=True)
    i, j, left = i[once], j[once], left[once]
    order = np.argsort(left, kind="stable")[:most]
    return i[order], j[order], left[order]


def best_triples(units: Singles, view: Singles, most: int) -> tuple[Indices, Floats]:
    """Triples of members that explain a view best together, of all there are.

    Parameters
    ----------
    units : ndarray of shape (n, n_rows), float32
        A few hundred at most: the time grows with the cube of their number.
    view : ndarray of shape (n_rows,), float32
    most : int

    Returns
    -------
    triples : ndarray of shape (n_triples, 3), int64
        For each member the best triple in which it comes first; the best `most` of these.
    left : ndarray of shape (n_triples,)
        Share of the view's variance that is left.

    Notes
    -----
    With the first member projected out of the view and of the others, what two more explain has a closed form.
    """
    wide = units.astype(np.float64)
    gram, own = inner(wide, wide), dot(wide, view.astype(np.float64))
    triples, left = [], []
    for first in range(len(units) - 2):
        rest = slice(first + 1, None)
        along = gram[rest, first]
        lengths = 1 - along * along
        a = own[rest] - own[first] * along
        r = gram[rest, rest] - along[:, None] * along
        determinant = lengths[:, None] * lengths - r * r
        explained = (a * a)[:, None] * lengths + (a * a) * lengths[:, None] - 2 * a[:, None] * a * r
        flat = determinant < 1e-4
        explained[flat] = 0
        explained /= np.where(flat, 1, determinant)
        second, third = divmod(int(np.argmax(explained)), len(a))
        triples.append((first, first + 1 + min(second, third), first + 1 + max(second, third)))
        left.append(1 - own[first] ** 2 - explained[second, third])
    found, shares = np.array(triples, np.int64).reshape(-1, 3), np.array(left)
    order = np.argsort(shares, kind="stable")[:most]
    return found[order], shares[order]


def projector(columns: Sequence[Floats], weights: Floats) -> Floats:
    """An orthonormal basis of the span of 1 and log|column|, times the square roots of weights; (n_basis, n_rows)."""
    ones = np.ones(len(weights))
    logs = [log(np.abs(column)) for column in columns]
    found = Regression.of(np.stack([ones, *logs]) * np.sqrt(weights), 1e-9)
    return found.basis[found.kept]


def beyond_monomials(values: Floats, basis: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """What of log|values| no monomial explains, each scaled to length 1, and its length.

    Rows that are zero or non-finite anywhere, or monomials themselves, become 0 and have the length 0.
    """
    with np.errstate(all="ignore"):
        logs = log(np.abs(values)) * np.sqrt(weights)
        total = np.sqrt(dot(logs, logs))
        rest = logs - inner(inner(logs, basis), basis.T)
        lengths = np.sqrt(dot(rest, rest))
        good = np.isfinite(lengths) & (lengths > 1e-7 * total)
        rest = np.where(good[:, None], rest / np.where(good, lengths, 1)[:, None], 0)
    return rest, np.where(good, lengths, 0.0)
