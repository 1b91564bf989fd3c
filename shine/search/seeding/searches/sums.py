"""Sums of two or three members, and one more: all pairs, or the best triples; also of products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shine.compiler.arrays import inner
from shine.search.seeding.fits.correlations import Normalized, best_pairs
from shine.search.seeding.fits.forward_selection import Dictionary, Sums, best_triples, replaced, with_another_term
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
    gram, dictionary = inner(units, units), Dictionary(units)
    views = screen.simple_views
    values = values_of(views, screen.target)
    normal = Normalized.of(values, screen.weights)
    for k in range(len(views)):
        first, second, _ = best_pairs(units, normal.units[k], gram, pairs)
        two = Sums(np.full(len(first), k), np.column_stack([first, second]), np.zeros(len(first)))
        three = replaced(dictionary, normal.units, with_another_term(dictionary, normal.units, two))
        yield from estimates_of_sums(screen, "sum of 2", views, values, members, two)
        yield from estimates_of_sums(screen, "sum of 3", views, values, members, three)


def sums_of_products(screen: Screen, simplest: int, most: int, triples: int) -> Iterator[Estimate]:
    """chain(y) = a*g1 + b*g2 + c*g3 + d, and with a fourth member, as `sums_of_three`: a*b*cos(c - d) is a member

    Parameters
    ----------
    screen : Screen
        Over a bank of products.
    simplest, most, triples : int
        See `sums_of_three`.
    """
    yield from sums_of_three(screen, simplest, most, triples)
