"""Coordinates: formulas g, and monomials M, such that y / M is a function of g alone.

Sort the rows by g: if y / M depends on nothing else, neighbours have similar values. This needs no model of the target,
so it sees what no polynomial shows: steep, wide and periodic functions, and few rows. Ranks stand for values, so that
units and scales do not matter; a monotone function even has the ranks of g.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import dot, power
from shine.search.seeding.bank.formula_writer import Factor, Nodes, Unwritable, Writer

EXPONENTS = ((0.0, 1.0, -1.0, 2.0, -2.0), (0.0, 1.0, -1.0))
"""Exponents of each feature: the first of these that give few enough monomials."""

AT_ONCE = 1 << 22
"""Values compared at a time, which bounds the memory."""


def one_coordinate_systems(
    features: Coordinates, target: Floats, members: Sequence[Nodes], values: Floats, writer: Writer, most: int
) -> list[Coordinates]:
    """Systems of one coordinate and a factor that seem to determine the target.

    Parameters
    ----------
    features : Coordinates
        At least two.
    target : ndarray of shape (n_rows,)
    members : sequence of Nodes
        Formulas that are tried as g, besides monomials of the features.
    values : ndarray of shape (n_members, n_rows)
    writer : Writer
    most : int
        Most systems.
    """
    # At least so many rows are compared, if there are, and fewer than twice as many.
    rows = np.arange(0, len(target), max(len(target) // 150, 1))
    if len(rows) < 30 or len(features.nodes) < 2:  # with fewer rows, a few of many candidates are smooth by chance
        return []
    # Most monomials that are tried as g and as M
    whole = [np.array(powers) for powers in _exponents(len(features.nodes), 2000)]
    monomials = [powers for powers in whole if np.count_nonzero(powers) > 1 and powers[np.flatnonzero(powers)[0]] > 0]
    factors = [np.array(powers) for powers in _exponents(len(features.nodes), 250)]
    factors = [powers for powers in factors if (features.values[powers != 0] != 0).all()]
    with np.errstate(all="ignore"):
        places = np.concatenate([_monomials(features.values[:, rows], monomials), values[:, rows]])
        scales = _monomials(features.values[:, rows], factors)
        found = _smooth_pairs(places, scales, target[rows])
    systems: list[Coordinates] = []
    for place, factor in found:
        monomial = monomials[place] if place < len(monomials) else None
        own = None if monomial is not None else place - len(monomials)
        try:
            nodes = _written(features, monomial, writer) if own is None else members[own]
        except Unwritable:
            continue
        full = _monomials(features.values, [monomial])[0] if monomial is not None else values[own]
        if not np.isfinite(full).all():
            continue
        system = features.without(range(len(features.nodes))).with_one(nodes, full)
        for i in np.flatnonzero(factors[factor]).tolist():
            system = _times(system, features.nodes[i], features.values[i], float(factors[factor][i]))
        systems.append(system)
        if len(systems) == most:
            break
    return systems


def _exponents(features: int, most: int) -> list[tuple[float, ...]]:
    """Exponents of monomials, of as many powers as there may be, the simplest first."""
    for powers in EXPONENTS:
        if prod([len(powers)] * features) <= most:
            return sorted(product(powers, repeat=features), key=lambda own: sum(abs(e) for e in own))
    return [(0.0,) * features, *(tuple(e if i == j else 0.0 for j in range(features)) for i in range(features)
            for e in (1.0, -1.0))]  # fmt: skip


def _monomials(values: Floats, exponents: Sequence[Floats]) -> Floats:
    """Values of monomials, shape (n_monomials, n_rows)."""
    found = np.ones((len(exponents), values.shape[1]))
    for i, own in enumerate(values):
        each = np.array([powers[i] for powers in exponents])
        for e in np.unique(each).tolist():
            if e:
                found[each == e] *= power(own, e)
    return found


def _written(features: Coordinates, exponents: Floats | None, writer: Writer) -> Nodes:
    """A monomial as a formula."""
    powers = [] if exponents is None else [(features.nodes[i], float(e)) for i, e in enumerate(exponents) if e]
    return writer.product(powers)


def _times(system: Coordinates, nodes: Nodes, values: Floats, exponent: float) -> Coordinates:
    """A system whose target is divided by a power of a feature."""
    return Coordinates(
        system.nodes, system.values, (*system.factors, (nodes, exponent)), system.factor * power(values, exponent)
    )


def _smooth_pairs(places: Floats, scales: Floats, target: Floats) -> Iterator[tuple[int, int]]:
    """Pairs of a place and a scale, the best first: target / scale is smooth if rows are sorted by the place."""
    usable = np.flatnonzero(np.isfinite(places).all(axis=1))
    order = np.argsort(places[usable], axis=1, kind="stable")
    views = target / scales
    ranked = [k for k in range(len(scales)) if np.isfinite(views[k]).all()]
    rough = np.full((len(usable), len(scales)), np.inf)
    for k in ranked:
        ranks = _ranks(views[k])
        for start in range(0, len(order), max(1, AT_ONCE // len(target))):
            now = slice(start, start + max(1, AT_ONCE // len(target)))
            rough[now, k] = _roughness(ranks[:, order[now]])
    while True:
        best = float(rough.min(initial=np.inf))
        # Roughness below which a view counts as a function of a coordinate: some ten periods in 150 rows are smoother.
        if not best < 3e-3:
            return
        # Candidates up to this many times as rough as the best are as good: the simplest of them is chosen.
        alike = rough <= max(30.0 * best, 1e-7)  # roughness that does not matter
        # Scales are in the order of their simplicity, and so are the monomials among the places.
        factor = int(np.argmax(alike.any(axis=0)))
        at = int(np.argmax(alike[:, factor]))
        error = _error(views[factor][order[at]], scales[factor][order[at]], target[order[at]])
        # Largest median of squared errors of y, as a share of its variance, if each value follows from its
        # neighbours': where y hardly varies, y / M is a function of M, which says nothing
        if error < 0.01:
            yield int(usable[at]), factor
            # The same order, or the opposite one: a monotone function of the same coordinate.
            rough[(order == order[at]).all(axis=1) | (order == order[at, ::-1]).all(axis=1)] = np.inf
        rough[at, factor] = np.inf


def _ranks(values: Floats) -> Floats:
    """Lowest and highest ranks of values, from 0, shape (2, n): equal values may have each of their ranks."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    # Values that differ by this share of themselves are equal.
    group = np.concatenate([[0], np.cumsum(np.diff(ordered) > 1e-12 * np.abs(ordered[1:]))])
    ends = np.cumsum(np.bincount(group))
    ranks = np.empty((2, len(values)))
    ranks[0, order] = (ends - np.bincount(group))[group]
    ranks[1, order] = ends[group] - 1
    return ranks


def _roughness(ranks: Floats) -> Floats:
    """Mean squared distance of each rank from the mean of its neighbours', as a share of that in random order.

    Parameters
    ----------
    ranks : ndarray of shape (2, n, n_rows)
        Lowest and highest ranks. Where they differ, the rank is as near to the neighbours as it may be.
    """
    count = ranks.shape[-1]
    low, high = (ranks[:, :, 2:] + ranks[:, :, :-2]) / 2
    below, above = low - ranks[1, :, 1:-1], ranks[0, :, 1:-1] - high
    distance = np.maximum(np.maximum(below, above), 0)
    return dot(distance, distance) / (count - 2) / (1.5 * (count * count - 1) / 12)


def _error(views: Floats, scales: Floats, target: Floats) -> float:
    """Median squared error of the target, from the neighbours' views, as a share of its variance; all rows sorted."""
    errors = scales[1:-1] * (views[2:] + views[:-2]) / 2 - target[1:-1]
    centered = target - np.mean(target)
    return float(np.median(errors**2) * len(target) / dot(centered, centered))


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Formulas that seem to determine the target once it is divided by a factor.

    Parameters
    ----------
    nodes : tuple of Nodes
        Each coordinate as a formula of the features.
    values : ndarray of shape (n_coordinates, n_rows)
    factors : tuple of (Nodes, float)
        Powers whose product is the factor.
    factor : ndarray of shape (n_rows,)
        Their product.
    """

    nodes: tuple[Nodes, ...]
    values: Floats
    factors: tuple[Factor, ...]
    factor: Floats

    @classmethod
    def of_features(cls, columns: Floats, chosen: Indices) -> Coordinates:
        """Some features, unchanged, and the factor 1."""
        nodes = tuple(((i + 1, 0.0),) for i in chosen.tolist())
        return cls(nodes, columns[chosen], (), np.ones(columns.shape[1]))

    def on(self, rows: Indices) -> Coordinates:
        """These coordinates on some rows."""
        return replace(self, values=self.values[:, rows], factor=self.factor[rows])

    def without(self, dropped: Sequence[int]) -> Coordinates:
        """These coordinates without some."""
        kept = [i for i in range(len(self.nodes)) if i not in dropped]
        return replace(self, nodes=tuple(self.nodes[i] for i in kept), values=self.values[kept])

    def with_one(self, nodes: Nodes, values: Floats) -> Coordinates:
        """These coordinates and one more."""
        return replace(self, nodes=(*self.nodes, nodes), values=np.vstack([self.values, values]))

    def divided_by(self, coordinate: int, exponent: float) -> Coordinates:
        """These coordinates, with a power of one of them as another factor."""
        if exponent == 0:
            return self
        return replace(
            self,
            factors=(*self.factors, (self.nodes[coordinate], exponent)),
            factor=self.factor * power(self.values[coordinate], exponent),
        )
