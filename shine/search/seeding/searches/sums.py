"""Sums of two members, of all pairs, and of a third with the best of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shine.compiler.arrays import gram_matrix
from shine.search.seeding.fits.correlations import Normalized, best_pairs
from shine.search.seeding.fits.forward_selection import Dictionary, Sums, replaced, with_another_term
from shine.search.seeding.screen.estimates import Estimate, estimates_of_sums
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import values_of


def sums_of_two(screen: Screen, most: int, pairs: int) -> Iterator[Estimate]:
    """chain(y) = a*g1 + b*g2 + c, and with a third member

    Parameters
    ----------
    screen : Screen
    most : int
        Members that are tried in all pairs.
    pairs : int
        Best pairs of each view, which are estimated and get a third member.
    """
    members = screen.distinct_in_sums[:most]
    units = screen.normalized.units[members]
    gram, dictionary = gram_matrix(units), Dictionary(units)
    views = screen.simple_views
    values = values_of(views, screen.target)
    normal = Normalized.of(values, screen.weights)
    for k in range(len(views)):
        first, second, _ = best_pairs(units, normal.units[k], gram, pairs)
        two = Sums(np.full(len(first), k), np.column_stack([first, second]), np.zeros(len(first)))
        three = replaced(dictionary, normal.units, with_another_term(dictionary, normal.units, two))
        yield from estimates_of_sums(screen, "sum of 2", views, values, members, two)
        yield from estimates_of_sums(screen, "sum of 3", views, values, members, three)
