"""A likely factor times a sum of a few members, by forward selection."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shine.base.typing import Floats, Indices
from shine.search.seeding.fits.correlations import Normalized
from shine.search.seeding.fits.forward_selection import Dictionary, first_terms, replaced, with_another_term
from shine.search.seeding.screen.estimates import Estimate, estimates_of_sums, unexplained_by_sums
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_divisors import divided_views
from shine.search.seeding.screen.target_views import values_of

BEAMS = 3
"""Members that sums begin with, for each view."""

KEPT = 24
"""Sums that are kept after each term, besides the best of each view."""

SWEEPS = 2
"""Times that each term of a kept sum is replaced by the best one."""


def factor_times_sum(screen: Screen, most: int, divisors: int, terms: int) -> Iterator[Estimate]:
    """chain(y / g1) = a*g2 + b*g3 + ... + c, with any chain and no g1, or with likely g1 and powers

    Parameters
    ----------
    screen : Screen
    most : int
        Members that sums are made of.
    divisors : int
        Likely g1 that are tried.
    terms : int
        Most terms.
    """
    members = screen.order[:most]
    units = screen.normalized.units[members]
    usable = np.flatnonzero((units != 0).any(axis=1))
    members, dictionary = members[usable], Dictionary(units[usable])
    views = [*screen.simple_views, *divided_views(screen, divisors)]
    if not views:
        return
    values = values_of(views, screen.target)
    normal = Normalized.of(values, screen.weights)
    found = first_terms(dictionary, normal.units, BEAMS)
    for _ in range(terms - 1):
        found = with_another_term(dictionary, normal.units, found)
        shares = unexplained_by_sums(screen, views, values, members, found)
        kept = found.take(_kept(shares, found.views))
        for sums in (kept, replaced(dictionary, normal.units, kept, SWEEPS)):
            yield from estimates_of_sums(screen, "factor times sum", views, values, members, sums)


def _kept(shares: Floats, views: Indices) -> Indices:
    """The best sum of each view, and the best of all."""
    order = np.argsort(shares, kind="stable")
    _, firsts = np.unique(views[order], return_index=True)
    return np.unique(np.concatenate([order[firsts], order[:KEPT]]))
