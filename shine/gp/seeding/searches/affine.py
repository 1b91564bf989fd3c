"""A member times a slope plus an intercept, after any chain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from shine.arrays import Panels
from shine.gp.seeding.correlations import Normalized, best_matches, fitted_lines
from shine.gp.seeding.estimates import Estimate
from shine.gp.seeding.screen import Screen
from shine.gp.seeding.target_views import View, values_of


def affine(screen: Screen, each: int) -> Iterator[Estimate]:
    """chain(y) = a*g + b, by the `each` members that correlate best with chain(y)"""
    views = [View(chain) for chain in screen.chains]
    normal = Normalized.of(values_of(views, screen.target), screen.weights)
    which, member, correlation = best_matches(Panels(screen.normalized.units), normal.units, each)
    fitted = fitted_lines(normal, screen.normalized, screen.values, which, member, correlation)
    for k, view in enumerate(views):
        at = np.flatnonzero(which == k)
        shares = screen.unexplained(view.target(fitted[at]))
        for m, share in zip(member[at].tolist(), shares.tolist(), strict=True):
            yield Estimate(share, int(screen.sizes[m]), partial(screen.sum_skeleton, "affine", view, (m,)))
