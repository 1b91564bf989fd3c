"""Forward selection: sums of a few members of a large dictionary, grown term by term, that explain views."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shine.base.typing import Floats, Indices, Singles
from shine.compiler.arrays import Panels, Regression, dot
from shine.search.seeding.fits.correlations import best_matches

NEARLY_PARALLEL = 1e-4
"""Squared sine of an angle below which single precision cannot tell how much a member adds to the chosen ones."""

AT_ONCE = 1 << 23
"""Correlations held at a time, which bounds the memory."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums with the same number of members each, one sum in each row.

    Parameters
    ----------
    views : ndarray of shape (n_sums,), int64
        The view that each sum explains.
    chosen : ndarray of shape (n_sums, n_terms), int64
        Members, in the order they were chosen.
    unexplained : ndarray of shape (n_sums,)
        Share of the view's variance.
    """

    views: Indices
    chosen: Indices
    unexplained: Floats

    def take(self, which: Indices) -> Sums:
        """Some of the sums."""
        return Sums(self.views[which], self.chosen[which], self.unexplained[which])


class Dictionary:
    """Members that sums may consist of, laid out once for all sums.

    Parameters
    ----------
    units : ndarray of shape (n_members, n_rows), float32 or float64
        Rows of length 1, centered; rows of zeros are never chosen.
    parallel : float
        Squared sine of the angle between a member and the span of the chosen ones, below which it is not chosen.
    """

    def __init__(self, units: Singles | Floats, parallel: float = NEARLY_PARALLEL) -> None:
        self.units, self.parallel = units, parallel
        self.panels = Panels(units)
        self.lengths = dot(units, units)


def first_terms(members: Dictionary, views: Singles, beams: int) -> Sums:
    """Sums of one term: for each view the `beams` members that correlate best with it."""
    which, first, correlations = best_matches(members.panels, views, beams)
    return Sums(which, first[:, None], 1 - correlations**2)


def with_another_term(members: Dictionary, views: Singles | Floats, sums: Sums) -> Sums:
    """Each sum with another term.

    Parameters
    ----------
    members : Dictionary
    views : ndarray of shape (n_views, n_rows), float32 or float64
        Rows of length 1, centered.
    sums : Sums

    Notes
    -----
    Orthogonal least squares (Chen, Billings and Luo 1989): the member with which the sum explains most is chosen.
    Another may correlate better with the residual.
    """
    following = _best_next(members, views[sums.views], sums.chosen)
    return _measured(members, views, sums.views, np.column_stack([sums.chosen, following]))


def replaced(members: Dictionary, views: Singles | Floats, sums: Sums, sweeps: int = 1) -> Sums:
    """Sums after each term in turn is replaced by the best one, given the others.

    Forward selection chose the first terms before it knew the others.
    """
    chosen = sums.chosen.copy()
    for _ in range(sweeps):
        for place in range(chosen.shape[1]):
            chosen[:, place] = _best_next(members, views[sums.views], np.delete(chosen, place, axis=1))
    return _measured(members, views, sums.views, chosen)


def _measured(members: Dictionary, views: Singles | Floats, which: Indices, chosen: Indices) -> Sums:
    """Sums of chosen members, with the share of variance that they leave unexplained."""
    residuals, _ = _residuals(members, views[which], chosen)
    return Sums(which, chosen, dot(residuals, residuals))


def _residuals(members: Dictionary, views: Singles | Floats, chosen: Indices) -> tuple[Floats, Floats]:
    """Residuals of each view, and orthonormal bases of its members, shape (n_sums, n_terms, n_rows)."""
    regression = Regression.of(members.units[chosen].astype(np.float64))
    return regression.rest(views.astype(np.float64)), regression.basis


def _best_next(members: Dictionary, views: Singles | Floats, chosen: Indices) -> Indices:
    """For each sum of chosen members that with which it explains most of its view."""
    residuals, bases = _residuals(members, views, chosen)
    at_once = max(1, AT_ONCE // max(members.panels.count, 1))
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(residuals), at_once):
        now = slice(start, start + at_once)
        gain = members.panels.inner(residuals[now])
        gain *= gain
        apart = np.repeat(members.lengths[None], len(gain), axis=0)
        for place in range(bases.shape[1]):
            # Sums that begin with the same members share the directions of these.
            _, first, each = np.unique(chosen[now, : place + 1], axis=0, return_index=True, return_inverse=True)
            along = members.panels.inner(bases[now, place][first])
            along *= along
            apart -= along[each.reshape(-1)]
        gain[apart < members.parallel] = -1
        gain /= np.maximum(apart, members.parallel)
        found.append(np.argmax(gain, axis=1))
    return np.concatenate(found)
