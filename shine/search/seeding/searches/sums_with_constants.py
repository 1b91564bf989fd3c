"""Sums of two functions with unknown constants inside, or of one and a member."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from shine.compiler.arrays import inner
from shine.compiler.arrays.functions import combined, least_squares
from shine.search.seeding.bank.formula_writer import Nodes
from shine.search.seeding.bank.function_families import STEEP
from shine.search.seeding.fits.correlations import Normalized, best_pairs
from shine.search.seeding.screen.estimates import COST_OF_TERM, Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.skeletons import RefinedSkeleton
from shine.search.seeding.screen.tabulated_functions import Table, arguments_of, best_of_pairs
from shine.search.seeding.screen.target_views import View


def sums_with_constants(screen: Screen, arguments: int, most: int, members: int, pairs: int) -> Iterator[Estimate]:
    """chain(y) = a*u1(g1; c1) + b*u2 + d, with another such function or a member of the bank as u2

    Parameters
    ----------
    screen : Screen
    arguments : int
        Cheapest members that are tried as g1.
    most : int
        Most functions, over all arguments and constants, that are tried in all pairs.
    members : int
        Cheapest members that are tried as u2.
    pairs : int
        Best pairs of each view, which are estimated.
    """
    table = Table.of(screen, STEEP, arguments_of(screen, arguments))
    rows = np.arange(0, len(table.values), max(-(-len(table.values) // most), 1))
    plain = screen.distinct_in_sums[:members]
    values = np.concatenate([table.values[rows], screen.values[plain]])
    functions = [partial(table.nodes, screen, row) for row in rows.tolist()]
    functions += [partial(screen.bank.nodes, member) for member in plain.tolist()]
    sizes = [*(table.size(screen, row) for row in rows.tolist()), *screen.sizes[plain].tolist()]
    own = [k for k, group in enumerate(table.groups) for _ in range(len(group.constants))]
    groups = np.concatenate([np.array(own, np.int64)[rows], len(own) + np.arange(len(plain))])
    normal = Normalized.of(values, screen.weights)
    usable = np.flatnonzero(normal.lengths > 0)
    units = normal.units[usable]
    gram, root = inner(units, units), np.sqrt(screen.weights)
    for view in screen.simple_views:
        seen = view.of(screen.target)
        unit = Normalized.of(seen[None], screen.weights).units[0]
        first, second, _ = best_pairs(units, unit, gram, len(units))
        best = best_of_pairs(usable[first], usable[second], groups, pairs)
        first, second = first[best], second[best]
        chosen = usable[np.column_stack([first, second])]
        design = np.ones((len(chosen), 3, len(root)))
        design[:, :2] = values[chosen]
        fitted = combined(least_squares(design * root, seen * root), design)
        shares = screen.unexplained(view.target(fitted))
        for pair, share in zip(chosen.tolist(), shares.tolist(), strict=True):
            makers = [functions[i] for i in pair]
            size = sum(int(sizes[i]) + COST_OF_TERM for i in pair)
            yield Estimate(share, size, partial(_skeleton, screen, view, makers))


def _skeleton(screen: Screen, view: View, makers: list[partial[Nodes]]) -> RefinedSkeleton:
    """A view as the sum of two terms."""
    terms = tuple(make() for make in makers)
    return RefinedSkeleton(screen.sum_of_formulas("sum with constants", view.chain, terms))
