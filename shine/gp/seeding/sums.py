"""Sparse sums: a few members of a large dictionary that explain views together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.arrays import Panels, dot
from shine.gp.regression import Regression
from shine.gp.seeding.screening import best_matches
from shine.typing import Floats, Indices, Singles

NEARLY_PARALLEL = 1e-4
"""Squared sine of the angle to what is chosen already, below which a member is not chosen."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Chosen members of several regressions in step.

    Parameters
    ----------
    views : ndarray of shape (n_sums,), int64
        Which view each sum explains.
    chosen : ndarray of shape (n_sums, n_terms), int64
        Members, in the order they were chosen.
    left : ndarray of shape (n_sums,)
        Share of the view's variance that is left.
    """

    views: Indices
    chosen: Indices
    left: Floats

    def take(self, which: Indices) -> Sums:
        """Some of the sums."""
        return Sums(self.views[which], self.chosen[which], self.left[which])


class Dictionary:
    """Members that sums are made of, laid out once for all sums.

    Parameters
    ----------
    units : ndarray of shape (n_members, n_rows), float32
        Rows of length 1, centered; or of zeros, which are never chosen.
    """

    def __init__(self, units: Singles) -> None:
        self.units = units
        self.panels = Panels(units)
        self.lengths = dot(units, units)


def first_terms(members: Dictionary, views: Singles, beams: int) -> Sums:
    """For each view the members that correlate best with it, each a sum of one term."""
    which, first, correlations = best_matches(members.panels, views, beams)
    return Sums(which, first[:, None], 1 - correlations**2)


def with_another_term(members: Dictionary, views: Singles, sums: Sums) -> Sums:
    """Sums with one term more each.

    Parameters
    ----------
    members : Dictionary
    views : ndarray of shape (n_views, n_rows), float32
        Rows of length 1, centered.
    sums : Sums

    Notes
    -----
    Orthogonal least squares (Chen, Billings and Luo 1989): the member chosen is the one after whose inclusion the least
    is left, not the one that correlates best with what is left.
    """
    residuals, bases = _explained(members, views[sums.views], sums.chosen)
    return _measured(members, views, sums.views, np.column_stack([sums.chosen, _next(members, residuals, bases)]))


def replaced(members: Dictionary, views: Singles, sums: Sums, sweeps: int = 1) -> Sums:
    """Sums after each term in turn was dropped and the best one taken in its place.

    What forward selection took first, before the rest was known, gets a second look.
    """
    chosen = sums.chosen.copy()
    for _ in range(sweeps):
        for place in range(chosen.shape[1]):
            residuals, bases = _explained(members, views[sums.views], np.delete(chosen, place, axis=1))
            chosen[:, place] = _next(members, residuals, bases)
    return _measured(members, views, sums.views, chosen)


def _measured(members: Dictionary, views: Singles, which: Indices, chosen: Indices) -> Sums:
    residuals, _ = _explained(members, views[which], chosen)
    return Sums(which, chosen, dot(residuals, residuals))


def _explained(members: Dictionary, views: Singles, chosen: Indices) -> tuple[Floats, Floats]:
    """What members leave of each view, and orthonormal bases of these members, shape (n_sums, n_terms, n_rows)."""
    regression = Regression.of(members.units[chosen].astype(np.float64))
    return regression.rest(views.astype(np.float64)), regression.basis


def _next(members: Dictionary, residuals: Floats, bases: Floats) -> Indices:
    """For each sum the member after whose inclusion the least is left."""
    at_once = max(1, (1 << 23) // max(members.panels.count, 1))
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(residuals), at_once):
        now = slice(start, start + at_once)
        gain = members.panels.inner(residuals[now].astype(np.float32))
        gain *= gain
        apart = np.repeat(members.lengths[None], len(gain), axis=0)
        for place in range(bases.shape[1]):
            along = members.panels.inner(bases[now, place].astype(np.float32))
            along *= along
            apart -= along
        gain[apart < NEARLY_PARALLEL] = -1
        gain /= np.maximum(apart, NEARLY_PARALLEL)
        found.append(np.argmax(gain, axis=1))
    return np.concatenate(found)
