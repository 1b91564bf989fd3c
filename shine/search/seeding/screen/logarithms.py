"""Estimates from logarithms: views as sums of them without their monomials, and one member as a line or a power."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from shine.base.typing import Floats, Singles
from shine.compiler.arrays import Panels, dot, exp
from shine.search.seeding.fits.correlations import (
    Normalized,
    best_matches,
    beyond_monomials,
    fitted_lines,
    monomial_basis,
)
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import Chain, View, slope, values_of


def _any(chain: Chain) -> bool:
    return True


@dataclass(frozen=True, eq=False)
class Logarithms:
    """Views, and the part of their logarithms that no monomial explains.

    Parameters
    ----------
    views : list of View
    values : ndarray of shape (n_views, n_rows)
    rest : ndarray of shape (n_views, n_rows)
        That part, scaled to length 1.
    lengths : ndarray of shape (n_views,)
        Its length before; 0 if a monomial explains the view.
    basis : ndarray of shape (n_basis, n_rows)
        The monomials that are projected out.
    weights : ndarray of shape (n_rows,)
    """

    views: list[View]
    values: Floats
    rest: Floats
    lengths: Floats
    basis: Floats
    weights: Floats

    @classmethod
    def of(cls, screen: Screen, wanted: Callable[[Chain], bool] = _any) -> Logarithms:
        """The views in which products are looked for, of the wanted ones; all rows with the screen's weights."""
        return cls.of_views(screen, [View(chain) for chain in screen.product_chains if wanted(chain)])

    @classmethod
    def of_views(cls, screen: Screen, views: list[View]) -> Logarithms:
        """Some views; all rows with the screen's weights."""
        return cls._of(screen, views, screen.monomial_basis, screen.weights)

    @classmethod
    def weighted(cls, screen: Screen, view: View) -> Logarithms:
        """One view with such weights that errors of its logarithm count as errors of the target."""
        seen = view.of(screen.target)
        weights = screen.weights * (screen.coordinates.factor * seen / slope(view.chain, screen.target)) ** 2
        weights = np.where(np.isfinite(weights), weights, 0.0)
        # Least weight of a row, as a share of the mean: rows without weight could have any value.
        weights = np.maximum(weights / weights.sum(), 1e-6 / len(weights))
        return cls._of(screen, [view], monomial_basis(screen.base_values, weights), weights)

    @classmethod
    def _of(cls, screen: Screen, views: list[View], basis: Floats, weights: Floats) -> Logarithms:
        """Views with monomials projected out."""
        values = values_of(views, screen.target)
        rest, lengths = beyond_monomials(values, basis, weights)
        return cls(views, values, rest, lengths, basis, weights)

    def unexplained(self, screen: Screen, k: int, residuals: Floats) -> Floats:
        """Share of the target's variance, from residuals of a view's logarithm, shape (n, n_rows)."""
        with np.errstate(all="ignore"):
            fitted = self.values[k] * exp(-residuals / np.sqrt(self.weights))
        return screen.unexplained(self.views[k].target(fitted))


def residuals_of_pairs(view: Singles, first: Singles, second: Singles) -> Floats:
    """Residuals of a view in regressions on pairs of rows of length 1, shape (n, n_rows)."""
    a, b = dot(first, view).astype(np.float64), dot(second, view).astype(np.float64)
    r = dot(first, second).astype(np.float64)
    # Least squared sine of the angle of two members; a smaller one is replaced by this.
    apart = np.maximum(1 - r * r, 1e-6)
    return view - ((a - b * r) / apart)[:, None] * first - ((b - a * r) / apart)[:, None] * second


def lines(screen: Screen, kind: str, views: Sequence[View], each: int) -> Iterator[Estimate]:
    """view = a*g + b, by the `each` members that correlate best with a view"""
    if not views:
        return
    normal = Normalized.of(values_of(views, screen.target), screen.weights)
    which, member, correlation = best_matches(Panels(screen.normalized.units), normal.units, each)
    fitted = fitted_lines(normal, screen.normalized, screen.values, which, member, correlation)
    for k, view in enumerate(views):
        at = np.flatnonzero(which == k)
        shares = screen.unexplained(view.target(fitted[at]))
        for m, share in zip(member[at].tolist(), shares.tolist(), strict=True):
            size = len(view.divisor or ()) + int(screen.sizes[m])
            yield Estimate(share, size, partial(screen.sum_skeleton, kind, view, (m,)))


def powers(screen: Screen, kind: str, logarithms: Logarithms, each: int) -> Iterator[Estimate]:
    """view = c * M * g^k, by the `each` members whose logarithms correlate best with that of a view"""
    rest = logarithms.rest
    which, member, correlation = best_matches(Panels(screen.logs), rest.astype(np.float32), each)
    residuals = rest[which] - correlation[:, None] * screen.logs[member]
    for k, view in enumerate(logarithms.views):
        at = np.flatnonzero(which == k)
        shares = logarithms.unexplained(screen, k, residuals[at] * logarithms.lengths[k])
        for m, share in zip(member[at].tolist(), shares.tolist(), strict=True):
            size = len(view.divisor or ()) + int(screen.sizes[m])
            yield Estimate(share, size, partial(screen.product_skeleton, kind, view, (m,)))
