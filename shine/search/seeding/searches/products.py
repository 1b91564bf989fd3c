"""Products of powers: a monomial, alone or times powers of one or two members, also of the target plus or minus 1."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from shine.compiler.arrays import inner
from shine.search.seeding.fits.correlations import best_pairs
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.logarithms import Logarithms, residuals_of_pairs
from shine.search.seeding.screen.one_member import powers
from shine.search.seeding.screen.screen import Screen


def products(screen: Screen, each: int, pairs_of: int, pairs: int) -> Iterator[Estimate]:
    """chain(y) = c * M * g1^k1 * g2^k2, for any monomial M, with no, one or two members

    Parameters
    ----------
    screen : Screen
    each : int
        Members tried with each view.
    pairs_of : int
        Members that are tried in all pairs.
    pairs : int
        Best pairs of each view, which are estimated.
    """
    views = Logarithms.of(screen)
    explained = np.flatnonzero(views.lengths == 0)
    if len(explained):
        view = views.views[explained[0]]
        yield Estimate(0.0, len(screen.bases), partial(screen.product_skeleton, "monomial", view, ()))
        return
    yield from _monomials(screen, views)
    yield from powers(screen, "product", views, each)
    yield from _with_two_members(screen, views, pairs_of, pairs)


def _monomials(screen: Screen, logarithms: Logarithms) -> Iterator[Estimate]:
    """chain(y) = c * M"""
    size = 2 * len(screen.bases)
    for k, view in enumerate(logarithms.views):
        residuals = logarithms.rest[k] * logarithms.lengths[k]
        share = float(logarithms.unexplained(screen, k, residuals[None])[0])
        yield Estimate(share, size, partial(screen.product_skeleton, "monomial", view, ()))


def _with_two_members(screen: Screen, logarithms: Logarithms, of: int, most: int) -> Iterator[Estimate]:
    """chain(y) = c * M * g1^k1 * g2^k2, after chains of one step that may hide products"""
    members = screen.distinct_in_products[:of]
    if len(members) < 2:
        return
    logs, units = screen.logs[members], logarithms.rest.astype(np.float32)
    gram = inner(logs, logs)
    for k, view in enumerate(logarithms.views):
        if len(view.chain) > 1 or (view.chain and not view.chain[0].homogeneous and view.chain[0].name != "shift"):
            continue
        first, second, _ = best_pairs(logs, units[k], gram, most)
        residuals = residuals_of_pairs(units[k], logs[first], logs[second])
        shares = logarithms.unexplained(screen, k, residuals * logarithms.lengths[k])
        for i, j, share in zip(members[first].tolist(), members[second].tolist(), shares.tolist(), strict=True):
            size = int(screen.sizes[i] + screen.sizes[j])
            yield Estimate(share, size, partial(screen.product_skeleton, "product of two", view, (i, j)))
