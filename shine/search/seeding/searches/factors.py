"""Affine functions of members, and a member as a factor: of an affine function, a shifted product, or a sum.

Later searches try the members by which division helped most as divisors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import Panels, power
from shine.lang.forms.primitives import CONSTANT
from shine.search.seeding.fits.correlations import Normalized, best_matches, fitted_lines
from shine.search.seeding.fits.forward_selection import Dictionary, first_terms, replaced, with_another_term
from shine.search.seeding.screen.estimates import Estimate, estimates_of_sums, unexplained_by_sums
from shine.search.seeding.screen.logarithms import lines
from shine.search.seeding.screen.screen import POWERS, Screen, divided_views, has_power, power_chain
from shine.search.seeding.screen.target_views import View, values_of

NONE = -1
"""Stands for no member."""


def factor_times_affine(screen: Screen, divisors: int, others: int, each: int, estimated: int) -> Iterator[Estimate]:
    """(y / g1)^p = a*g2 + b

    Parameters
    ----------
    screen : Screen
    divisors, others : int
        Smallest members that are tried as g1 and as g2.
    each : int
        Best g2 that are estimated for each g1.
    estimated : int
        Best estimates that are kept for each power p.
    """
    usable_divisors, others_chosen = _usable_divisors(screen, divisors), screen.order[:others]
    panels = Panels(screen.normalized.units[others_chosen])
    best: dict[int, float] = {}
    for exponent in POWERS:
        if not has_power(screen.writer, np.ones(1), exponent):
            continue
        factors, quotients, raised = _raised_quotients(screen, usable_divisors, exponent)
        normal = Normalized.of(raised, screen.weights)
        which, member, correlation = best_matches(panels, normal.units, each)
        member = others_chosen[member]
        fitted = fitted_lines(normal, screen.normalized, screen.values, which, member, correlation)
        with np.errstate(all="ignore"):
            sign = np.where(quotients[which, :1] < 0, -1, 1)
            roots = 1 / fitted if exponent == -1 else power(fitted, 1 / exponent) * sign
            shares = screen.unexplained(screen.values[factors[which]] * roots)
        for i in np.argsort(shares, kind="stable")[:estimated].tolist():
            share, g, m = float(shares[i]), int(factors[which[i]]), int(member[i])
            best[g] = min(best.get(g, 1.0), share)
            chain = power_chain(exponent, -1.0 if quotients[which[i], 0] < 0 else 1.0)
            view = View(chain, screen.bank.nodes(g), screen.values[g])
            size = int(screen.sizes[g] + screen.sizes[m])
            yield Estimate(share, size, partial(screen.sum_skeleton, "factor times affine", view, (m,)))
    screen.best_divisors = sorted((share, g) for g, share in best.items())


def _usable_divisors(screen: Screen, most: int) -> Indices:
    """The smallest members that are not constant and have no zeros."""
    smallest = screen.order[: 2 * most]
    usable = (np.abs(screen.values[smallest]).min(axis=1) > 0) & (screen.bank.codes[smallest] != CONSTANT)
    return smallest[usable][:most]


def _raised_quotients(screen: Screen, divisors: Indices, exponent: float) -> tuple[Indices, Floats, Floats]:
    """Divisors, the target divided by each, and these quotients raised to a power, if it can be undone."""
    with np.errstate(all="ignore"):
        quotients = screen.target / screen.values[divisors]
        raised = power(quotients, exponent)
    one_sign = (quotients > 0).all(axis=1) | (quotients < 0).all(axis=1)
    valid = np.isfinite(raised).all(axis=1) & (one_sign if exponent % 2 == 0 else True)
    return divisors[valid], quotients[valid], raised[valid]


def affine(screen: Screen, each: int) -> Iterator[Estimate]:
    """chain(y) = a*g + b, by the `each` members that correlate best with chain(y)"""
    yield from lines(screen, "affine", [View(chain) for chain in screen.chains], each)


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
    found = first_terms(dictionary, normal.units, 3)  # members that sums begin with, for each view
    for _ in range(terms - 1):
        found = with_another_term(dictionary, normal.units, found)
        shares = unexplained_by_sums(screen, views, values, members, found)
        kept = found.take(_kept(shares, found.views))
        # Times that each term of a kept sum is replaced by the best one.
        for sums in (kept, replaced(dictionary, normal.units, kept, 2)):
            yield from estimates_of_sums(screen, "factor times sum", views, values, members, sums)


def _kept(shares: Floats, views: Indices) -> Indices:
    """The best sum of each view, and the best of all."""
    order = np.argsort(shares, kind="stable")
    _, firsts = np.unique(views[order], return_index=True)
    # Sums that are kept after each term, besides the best of each view.
    return np.unique(np.concatenate([order[firsts], order[:24]]))
