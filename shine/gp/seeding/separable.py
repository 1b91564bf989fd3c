"""Separable targets: a view of the target as a sum of functions of one coordinate each, all of which may be deep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shine.arrays import dot
from shine.gp.regression import Regression, combined
from shine.gp.seeding import views
from shine.gp.seeding.combining import estimates_of_sums, undivided
from shine.gp.seeding.screen import Estimate, Screen
from shine.gp.seeding.screening import Normalized
from shine.gp.seeding.sums import Dictionary, Sums, replaced, with_another_term
from shine.typing import Floats

KNOTS = 12
"""Most knots of the broken line that stands for a function of a coordinate."""

ROWS_A_KNOT = 4
"""Rows a knot needs."""

LEAST_EXPLAINED = 0.8
"""Share of a view's variance that broken lines must explain."""

PROMISING = 24
"""Sums of two terms that are kept."""


def separable(screen: Screen, candidates: int) -> Iterator[Estimate]:
    """chain(y) = f1(x1) + f2(x2) + ..., by the members that are most like broken lines fitted to chain(y)

    An additive model (Hastie and Tibshirani 1986) tells roughly what each function looks like. Of the members that look
    like it, each then gets its best partner among all that depend on one coordinate.
    """
    members = screen.alone
    leaves = screen.members.alone[members]
    coordinates = np.unique(leaves)
    if len(coordinates) < 2:
        return
    dictionary = Dictionary(screen.normalized.units[members])
    looks = undivided(screen)
    seen = views.through([chain for _, chain, _ in looks], screen.target)
    normal = Normalized.of(seen, screen.weights)
    bases = [_broken_lines(screen.members.values[leaf], len(coordinates)) for leaf in coordinates.tolist()]
    for k, view in enumerate(seen):
        shapes = _additive_model(bases, view, screen.weights)
        if shapes is None:
            continue
        alike = np.abs(dictionary.panels.inner(Normalized.of(shapes, screen.weights).units))
        chosen = np.concatenate([
            own[np.argsort(-likeness[own], kind="stable")[:candidates]]
            for likeness, own in zip(alike, (np.flatnonzero(leaves == leaf) for leaf in coordinates), strict=True)
        ])  # fmt: skip
        found = Sums(np.full(len(chosen), k), chosen[:, None], np.ones(len(chosen)))
        for terms in range(2, len(coordinates) + 1):
            found = with_another_term(dictionary, normal.units, found)
            found = found.take(np.argsort(found.left, kind="stable")[:PROMISING])
            if terms > 2:
                found = replaced(dictionary, normal.units, found, 2)
            yield from estimates_of_sums(screen, "separable", looks, seen, members, found)


def _broken_lines(values: Floats, coordinates: int) -> Floats:
    """Hat functions over quantiles of a coordinate, shape (n_knots, n_rows)."""
    knots = min(KNOTS, len(values) // (ROWS_A_KNOT * coordinates))
    places = np.unique(np.quantile(values, np.linspace(0, 1, max(knots, 2))))
    return np.stack([np.interp(values, places, unit) for unit in np.eye(len(places))])


def _additive_model(bases: list[Floats], view: Floats, weights: Floats) -> Floats | None:
    """The function of each coordinate at the rows, (n_coordinates, n_rows); None if they explain too little."""
    root = np.sqrt(weights)
    # The constant is in every basis: any of the solutions is as good as another.
    regression = Regression.of(np.concatenate(bases) * root, 1e-9)
    centered = (view - dot(weights, view)) * root
    rest = regression.rest(centered)
    if not dot(rest, rest) <= (1 - LEAST_EXPLAINED) * dot(centered, centered):
        return None
    coefficients = regression.coefficients(centered)
    ends = np.cumsum([0, *(len(basis) for basis in bases)])
    return np.array([combined(coefficients[ends[i] : ends[i + 1]], basis) for i, basis in enumerate(bases)])
