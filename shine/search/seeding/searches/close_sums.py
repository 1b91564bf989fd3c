"""Sums of three and four members that look alike, in double precision.

Over a narrow range all smooth functions look like lines and parabolas: what tells the terms of a sum from others is
beyond single precision, in which the other searches for sums compare.
"""

from __future__ import annotations

from collections.abc import Iterator

from shine.search.seeding.fits.correlations import units_of
from shine.search.seeding.fits.forward_selection import Dictionary, best_triples, replaced, with_another_term
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.sum_estimates import estimates_of_sums
from shine.search.seeding.screen.target_divisors import divided_views
from shine.search.seeding.screen.target_views import homogeneous, values_of

PARALLEL = 1e-10
"""Squared sine of an angle below which double precision cannot tell how much a member adds to others."""

LEAST_EXPLAINED = 0.99
"""Share of a view's variance that the best sum of three must explain: otherwise terms do not look alike, and the other
searches see as much."""


def close_sums(screen: Screen, simplest: int, most: int, kept: int, divisors: int) -> Iterator[Estimate]:
    """chain(y) = a*g1 + b*g2 + c*g3 + d, and with a fourth member; also for y / M

    Parameters
    ----------
    screen : Screen
    simplest : int
        Members that are tried in all pairs.
    most : int
        Members that each pair is tried with.
    kept : int
        Best sums of each view, which are estimated and get a fourth member.
    divisors : int
        Likely monomials M.
    """
    members = screen.distinct_in_sums[:most]
    dictionary = Dictionary(units_of(screen.values[members], screen.weights)[0], PARALLEL)
    if min(simplest, len(members)) < 2:
        return
    views = [v for v in screen.simple_views if homogeneous(v.chain) or v.chain[0].name == "exp"]
    views += [v for v in divided_views(screen, divisors) if not v.chain]
    values = values_of(views, screen.target)
    units, _, _ = units_of(values, screen.weights)
    for k in range(len(views)):
        three = best_triples(dictionary, units, k, simplest, kept)
        if not three.unexplained[0] < 1 - LEAST_EXPLAINED:
            continue
        four = replaced(dictionary, units, with_another_term(dictionary, units, three))
        for sums in (three, four):
            yield from estimates_of_sums(screen, "close sum", views, values, members, sums)
