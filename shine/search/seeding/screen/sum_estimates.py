"""Estimates of sums of members: how much of the target each leaves unexplained, in whichever view it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays.functions import combined, least_squares
from shine.search.seeding.fits.forward_selection import Sums
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import View

COST_OF_TERM = 2
"""Nodes that a term of a sum takes besides its own: about a coefficient and an addition."""


def estimates_of_sums(
    screen: Screen, kind: str, views: Sequence[View], values: Floats, members: Indices, sums: Sums
) -> Iterator[Estimate]:
    """Each sum with the share of the target's variance that it leaves unexplained.

    Parameters
    ----------
    screen : Screen
    kind : str
        The kind of formula.
    views : sequence of View
    values : ndarray of shape (n_views, n_rows)
    members : ndarray
        The members of the bank that `sums.chosen` points into.
    sums : Sums
    """
    shares = unexplained_by_sums(screen, views, values, members, sums)
    for k, row, share in zip(sums.views.tolist(), sums.chosen, shares.tolist(), strict=True):
        terms = tuple(sorted(set(members[row].tolist())))
        size = len(views[k].divisor or ()) + int(screen.sizes[list(terms)].sum()) + COST_OF_TERM * len(terms)
        yield Estimate(share, size, partial(screen.sum_skeleton, kind, views[k], terms))


def unexplained_by_sums(screen: Screen, views: Sequence[View], values: Floats, members: Indices, sums: Sums) -> Floats:
    """Share of the target's variance that sums leave unexplained, by one regression each."""
    root = np.sqrt(screen.weights)
    n, k = sums.chosen.shape
    design = np.ones((n, k + 1, len(root)))
    design[:, :k] = screen.values[members[sums.chosen]]
    fitted = combined(least_squares(design * root, values[sums.views] * root), design)
    predicted = np.empty_like(fitted)
    for view in np.unique(sums.views).tolist():
        at = sums.views == view
        predicted[at] = views[view].target(fitted[at])
    return screen.unexplained(predicted)
