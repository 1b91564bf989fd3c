"""Estimates: the finds of a search, and the choice of those worth a regression on the training rows.

Those from logarithms take views as sums of them without their monomials, and one member as a line or a power.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from shine.base.typing import Floats, Indices, Singles
from shine.compiler.arrays import Panels, combined, dot, exp, least_squares, log
from shine.search.seeding.fits.correlations import (
    Normalized,
    best_matches,
    beyond_monomials,
    fitted_lines,
    monomial_basis,
)
from shine.search.seeding.fits.elimination import Sums
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.skeletons import Skeleton
from shine.search.seeding.screen.target_views import Chain, View, slope, values_of

MOST_CHOSEN = 20
"""Most estimates of a search that are completed on the training rows: each costs a regression and a prediction."""

BEST_OF_SIZE, LARGEST_SMALL = 8, 16
"""Estimates that are chosen then of each size, and the largest of these sizes."""

ORDERS = ((1e-13, 0.02, 2), (1e-6, 0.1, 1))
"""Two orders to choose estimates by: share of variance that counts as rounding, price of a node, thirds of the places.

The first order prefers the least error; the second prefers small formulas, for noisy targets.
"""

COST_OF_TERM = 2
"""Nodes that a term of a sum takes besides its own: about a coefficient and an addition."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A formula without its constants, and how well it fits the screened rows.

    Parameters
    ----------
    unexplained : float
        Share of the target's variance that it leaves unexplained.
    size : int
        Approximate number of nodes.
    skeleton : callable
        Makes its skeleton; raises `Unwritable` if the primitive set has no functions for it.
    """

    unexplained: float
    size: int
    skeleton: Callable[[], Skeleton]


def node_price(price: float, rows: int) -> float:
    """The price of a node: the given one, or more if rows are so few that nodes fit them by chance."""
    # Twice the logarithm of the ten or so symbols that a node may be. Divided by the number of rows, it is the fall of
    # the logarithm of the error that another node brings by chance.
    return max(price, 4.6 / max(rows, 1))


def most_promising(estimates: list[Estimate], rows: int, most: int = MOST_CHOSEN) -> list[Estimate]:
    """The best estimates by each of the orders, and of each small size.

    Parameters
    ----------
    estimates : list of Estimate
    rows : int
        Rows that they were estimated on.
    most : int
        Most that the orders choose.
    """
    # Estimates that leave this share of variance unexplained, or more, are dropped.
    useful = [e for e in estimates if e.unexplained < 0.999]
    unexplained, sizes = np.array([e.unexplained for e in useful]), np.array([e.size for e in useful], np.int64)
    chosen: dict[Estimate, None] = {}
    for rounding, price, thirds in ORDERS:
        order = np.argsort(log(unexplained + rounding) + node_price(price, rows) * sizes, kind="stable")
        chosen.update(dict.fromkeys(useful[i] for i in order[: thirds * most // 3].tolist()))
    # Below this many rows, estimates of each size are chosen, whatever their errors: with few rows and noise, the law
    # is rarely the best.
    if rows < 160:
        order = np.argsort(unexplained, kind="stable")
        for size in range(1, LARGEST_SMALL + 1):
            chosen.update(dict.fromkeys(useful[i] for i in order[sizes[order] == size][:BEST_OF_SIZE].tolist()))
    return list(chosen)


def estimates_of_sums(
    screen: Screen, kind: str, views: Sequence[View], values: Floats, members: Indices, sums: Sums
) -> Iterator[Estimate]:
    """Each sum with the share of the target's variance that it leaves unexplained.

    Parameters
    ----------
    screen : Screen
    kind : str
        The kind of formula.
    views : sequence of View
    values : ndarray of shape (n_views, n_rows)
    members : ndarray
        The members of the bank that `sums.chosen` points into.
    sums : Sums
    """
    shares = unexplained_by_sums(screen, views, values, members, sums)
    for k, row, share in zip(sums.views.tolist(), sums.chosen, shares.tolist(), strict=True):
        terms = tuple(sorted(set(members[row].tolist())))
        size = len(views[k].divisor or ()) + int(screen.sizes[list(terms)].sum()) + COST_OF_TERM * len(terms)
        yield Estimate(share, size, partial(screen.sum_skeleton, kind, views[k], terms))


def unexplained_by_sums(screen: Screen, views: Sequence[View], values: Floats, members: Indices, sums: Sums) -> Floats:
    """Share of the target's variance that sums leave unexplained, by one regression each."""
    root = np.sqrt(screen.weights)
    n, k = sums.chosen.shape
    design = np.ones((n, k + 1, len(root)))
    design[:, :k] = screen.values[members[sums.chosen]]
    fitted = combined(least_squares(design * root, values[sums.views] * root), design)
    predicted = np.empty_like(fitted)
    for view in np.unique(sums.views).tolist():
        at = sums.views == view
        predicted[at] = views[view].target(fitted[at])
    return screen.unexplained(predicted)


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
