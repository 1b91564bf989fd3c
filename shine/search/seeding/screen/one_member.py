"""Estimates with one member: a view as a line of it, or as a monomial times a power of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from shine.compiler.arrays import Panels
from shine.search.seeding.fits.correlations import Normalized, best_matches, fitted_lines
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.logarithms import Logarithms
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import View, values_of


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
