"""Sums of three and four products of functions and monomials, from a bank of such products."""

from __future__ import annotations

from collections.abc import Iterator

from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.searches.sums_of_three import sums_of_three


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
