"""Products of powers: a monomial, alone or times powers of one or two members, also of the target plus or minus 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from shine.arrays import Panels, dot, exp, inner
from shine.gp.seeding.correlations import best_matches, best_pairs
from shine.gp.seeding.estimates import Estimate
from shine.gp.seeding.monomial_projection import beyond_monomials
from shine.gp.seeding.screen import Screen
from shine.gp.seeding.target_views import View, values_of
from shine.typing import Floats, Singles

PARALLEL = 1e-6
"""Least squared sine of the angle of two members; a smaller one is replaced by this."""


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
    views = _Logarithms.of(screen)
    explained = np.flatnonzero(views.lengths == 0)
    if len(explained):
        view = views.views[explained[0]]
        yield Estimate(0.0, len(screen.bases), partial(screen.product_skeleton, "monomial", view, ()))
        return
    yield from _monomials(screen, views)
    yield from _with_one_member(screen, views, each)
    yield from _with_two_members(screen, views, pairs_of, pairs)


@dataclass(frozen=True, eq=False)
class _Logarithms:
    """Views, and the part of their logarithms that no monomial explains.

    Parameters
    ----------
    views : list of View
    values : ndarray of shape (n_views, n_rows)
    rest : ndarray of shape (n_views, n_rows)
        That part, scaled to length 1.
    lengths : ndarray of shape (n_views,)
        Its length before; 0 if a monomial explains the view.
    """

    views: list[View]
    values: Floats
    rest: Floats
    lengths: Floats

    @classmethod
    def of(cls, screen: Screen) -> _Logarithms:
        """The views in which products are looked for."""
        views = [View(chain) for chain in screen.product_chains]
        values = values_of(views, screen.target)
        return cls(views, values, *beyond_monomials(values, screen.monomial_basis, screen.weights))

    def unexplained(self, screen: Screen, k: int, residuals: Floats) -> Floats:
        """Share of the target's variance, from residuals of a view's logarithm, shape (n, n_rows)."""
        with np.errstate(all="ignore"):
            fitted = self.values[k] * exp(-residuals / np.sqrt(screen.weights))
        return screen.unexplained(self.views[k].target(fitted))


def _monomials(screen: Screen, logarithms: _Logarithms) -> Iterator[Estimate]:
    """chain(y) = c * M"""
    size = 2 * len(screen.bases)
    for k, view in enumerate(logarithms.views):
        residuals = logarithms.rest[k] * logarithms.lengths[k]
        share = float(logarithms.unexplained(screen, k, residuals[None])[0])
        yield Estimate(share, size, partial(screen.product_skeleton, "monomial", view, ()))


def _with_one_member(screen: Screen, logarithms: _Logarithms, each: int) -> Iterator[Estimate]:
    """chain(y) = c * M * g^k"""
    rest = logarithms.rest
    which, member, correlation = best_matches(Panels(screen.logs), rest.astype(np.float32), each)
    residuals = rest[which] - correlation[:, None] * screen.logs[member]
    for k, view in enumerate(logarithms.views):
        at = np.flatnonzero(which == k)
        shares = logarithms.unexplained(screen, k, residuals[at] * logarithms.lengths[k])
        for m, share in zip(member[at].tolist(), shares.tolist(), strict=True):
            yield Estimate(share, int(screen.sizes[m]), partial(screen.product_skeleton, "product", view, (m,)))


def _with_two_members(screen: Screen, logarithms: _Logarithms, of: int, most: int) -> Iterator[Estimate]:
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
        residuals = _residuals_of_pairs(units[k], logs[first], logs[second])
        shares = logarithms.unexplained(screen, k, residuals * logarithms.lengths[k])
        for i, j, share in zip(members[first].tolist(), members[second].tolist(), shares.tolist(), strict=True):
            size = int(screen.sizes[i] + screen.sizes[j])
            yield Estimate(share, size, partial(screen.product_skeleton, "product of two", view, (i, j)))


def _residuals_of_pairs(view: Singles, first: Singles, second: Singles) -> Floats:
    """Residuals of a view in regressions on pairs of rows of length 1, shape (n, n_rows)."""
    a, b = dot(first, view).astype(np.float64), dot(second, view).astype(np.float64)
    r = dot(first, second).astype(np.float64)
    apart = np.maximum(1 - r * r, PARALLEL)
    return view - ((a - b * r) / apart)[:, None] * first - ((b - a * r) / apart)[:, None] * second
