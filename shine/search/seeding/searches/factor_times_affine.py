"""A small member times a power of an affine function of another: y = g1 * (a*g2 + b)^(1/p).

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
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_divisors import POWERS, has_power, power_chain
from shine.search.seeding.screen.target_views import View


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
