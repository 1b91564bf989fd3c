"""Sparse sums: a few members of a large dictionary that explain views together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shine.arrays import Panels, dot
from shine.gp.seeding.screening import best_matches

Short = NDArray[np.float32]
Indices = NDArray[np.int64]

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
    left: NDArray[np.float64]

    def take(self, which: Indices) -> Sums:
        """Some of the sums."""
        return Sums(self.views[which], self.chosen[which], self.left[which])


def first_terms(members: Short, views: Short, beams: int) -> Sums:
    """For each view the members that correlate best with it, each a sum of one term."""
    which, first, correlations = best_matches(members, views, beams)
    return Sums(which, first[:, None], 1 - correlations**2)


def with_another_term(members: Short, views: Short, sums: Sums) -> Sums:
    """Sums with one term more each.

    Parameters
    ----------
    members : ndarray of shape (n_members, n_rows), float32
        Rows of length 1, centered.
    views : ndarray of shape (n_views, n_rows), float32
        Likewise.
    sums : Sums

    Notes
    -----
    Orthogonal least squares (Chen, Billings and Luo 1989): the member chosen is the one after whose inclusion the least
    is left, not the one that correlates best with what is left.
    """
    residuals, bases = _orthogonal(members, views[sums.views], sums.chosen)
    chosen = np.column_stack([sums.chosen, _next(members, residuals, bases)])
    residuals, _ = _orthogonal(members, views[sums.views], chosen)
    return Sums(sums.views, chosen, _squares(residuals))


def replaced(members: Short, views: Short, sums: Sums, sweeps: int = 1) -> Sums:
    """Sums after each term in turn was dropped and the best one taken in its place.

    What forward selection took first, before the rest was known, gets a second look.
    """
    chosen = sums.chosen.copy()
    for _ in range(sweeps):
        for place in range(chosen.shape[1]):
            others = np.delete(chosen, place, axis=1)
            residuals, bases = _orthogonal(members, views[sums.views], others)
            chosen[:, place] = _next(members, residuals, bases)
    residuals, _ = _orthogonal(members, views[sums.views], chosen)
    return Sums(sums.views, chosen, _squares(residuals))


def _squares(residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    return dot(residuals, residuals)


def _orthogonal(members: Short, views: Short, chosen: Indices) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """What of each view its members leave, and orthonormal bases of these members, one array a member."""
    residuals = views.astype(np.float64)
    bases: list[NDArray[np.float64]] = []
    for place in range(chosen.shape[1]):
        base = members[chosen[:, place]].astype(np.float64)
        # Twice is enough to be orthogonal to rounding (Kahan; Parlett 1980).
        for _ in range(2):
            for other in bases:
                base -= dot(base, other)[:, None] * other
        length = np.sqrt(dot(base, base))
        base /= np.where(length > 0, length, 1)[:, None]
        residuals -= dot(residuals, base)[:, None] * base
        bases.append(base)
    return residuals, bases


def _next(members: Short, residuals: NDArray[np.float64], bases: list[NDArray[np.float64]]) -> Indices:
    """For each sum the member after whose inclusion the least is left."""
    at_once = max(1, (1 << 23) // max(len(members), 1))
    found = [np.zeros(0, np.int64)]
    lengths, panels = dot(members, members), Panels(members)
    for start in range(0, len(residuals), at_once):
        now = slice(start, start + at_once)
        gain = panels.inner(residuals[now].astype(np.float32))
        gain *= gain
        apart = np.repeat(lengths[None], len(gain), axis=0)
        for base in bases:
            along = panels.inner(base[now].astype(np.float32))
            along *= along
            apart -= along
        gain[apart < NEARLY_PARALLEL] = -1
        gain /= np.maximum(apart, NEARLY_PARALLEL)
        found.append(np.argmax(gain, axis=1))
    return np.concatenate(found)
