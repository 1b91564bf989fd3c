"""A likely factor times a power of a product plus or minus 1: y = g1 * (c * M * g2^k ± 1)^(1/p), for any monomial M."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from shine.compiler.arrays import Panels, exp
from shine.search.seeding.fits.correlations import best_matches
from shine.search.seeding.fits.monomial_projection import beyond_monomials
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_divisors import divided_views
from shine.search.seeding.screen.target_views import View, shift, values_of

NONE = -1
"""Stands for no member."""


def factor_times_shifted_product(screen: Screen, divisors: int, each: int, estimated: int) -> Iterator[Estimate]:
    """(y / g1)^p ± 1 = c * M * g2^k, with g2 or without

    Parameters
    ----------
    screen : Screen
    divisors : int
        Likely g1 that are tried.
    each : int
        Members g2 tried with each view.
    estimated : int
        The best estimates that are kept.
    """
    views = [
        View((*view.chain, shift(by)), view.divisor, view.divisor_values)
        for view in divided_views(screen, divisors)
        for by in (1.0, -1.0)
    ]
    if not views:
        return
    values = values_of(views, screen.target)
    rest, lengths = beyond_monomials(values, screen.monomial_basis, screen.weights)
    which, member, correlation = best_matches(Panels(screen.logs), rest.astype(np.float32), each)
    residuals = (rest[which] - correlation[:, None] * screen.logs[member]) * lengths[which, None]
    residuals = np.concatenate([residuals, rest * lengths[:, None]])
    which = np.concatenate([which, np.arange(len(views))])
    member = np.concatenate([member, np.full(len(views), NONE)])
    with np.errstate(all="ignore"):
        fitted = values[which] * exp(-residuals / np.sqrt(screen.weights))
        predicted = np.array([views[k].target(row) for k, row in zip(which.tolist(), fitted, strict=True)])
    shares = screen.unexplained(predicted)
    for i in np.argsort(shares, kind="stable")[:estimated].tolist():
        view, m = views[which[i]], int(member[i])
        size = len(view.divisor or ()) + (0 if m == NONE else int(screen.sizes[m])) + len(screen.bases)
        factors = () if m == NONE else (m,)
        yield Estimate(
            float(shares[i]), size, partial(screen.product_skeleton, "factor times shifted product", view, factors)
        )
