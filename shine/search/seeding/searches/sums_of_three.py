"""Sums of three members: all pairs of the simplest with every other; the best of these also with a fourth."""

from __future__ import annotations

from collections.abc import Iterator

from shine.search.seeding.fits.correlations import Normalized
from shine.search.seeding.fits.forward_selection import Dictionary, best_triples, with_another_term
from shine.search.seeding.screen.estimates import Estimate, estimates_of_sums
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import homogeneous, values_of


def sums_of_three(screen: Screen, simplest: int, most: int, triples: int) -> Iterator[Estimate]:
    """chain(y) = a*g1 + b*g2 + c*g3 + d, and with a fourth member; for chains that are powers, or undo exp

    Parameters
    ----------
    screen : Screen
    simplest : int
        Members that are tried in all pairs.
    most : int
        Members that each pair is tried with.
    triples : int
        Best triples of each view, which are estimated and get a fourth member.
    """
    members = screen.distinct_in_sums[:most]
    dictionary = Dictionary(screen.normalized.units[members])
    views = screen.simple_views
    values = values_of(views, screen.target)
    normal = Normalized.of(values, screen.weights)
    if min(simplest, len(members)) < 2:
        return
    for k, view in enumerate(views):
        if homogeneous(view.chain) or view.chain[0].name == "exp":
            three = best_triples(dictionary, normal.units, k, simplest, triples)
            four = with_another_term(dictionary, normal.units, three)
            yield from estimates_of_sums(screen, "sum of 3", views, values, members, three)
            yield from estimates_of_sums(screen, "sum of 4", views, values, members, four)
