"""Functions with constants inside, of tabulated families."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from shine.compiler.arrays import Panels
from shine.search.seeding.bank.function_families import FAMILIES, WIDER_FAMILIES
from shine.search.seeding.fits.correlations import Normalized, fitted_lines
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.screen import Screen, divided_views
from shine.search.seeding.screen.skeletons import RefinedSkeleton
from shine.search.seeding.screen.tabulated_functions import Table, arguments_of
from shine.search.seeding.screen.target_views import View, values_of


def functions_with_constants(screen: Screen, arguments: int, simplest: int, divisors: int) -> Iterator[Estimate]:
    """chain(y) = a*u(g; c) + b, and y = M * (a*u(g; c) + b), for a table of functions u and constants c

    Parameters
    ----------
    screen : Screen
    arguments : int
        Cheapest members that are tried as g.
    simplest : int
        Cheapest members that are tried as g in functions with two constants.
    divisors : int
        Likely monomials M.
    """
    views = [View(chain) for chain in screen.chains] + [v for v in divided_views(screen, divisors) if v.divisor]
    members = arguments_of(screen, arguments)
    yield from _of_families(screen, views, Table.of(screen, FAMILIES, members))
    yield from _of_families(screen, views[:1], Table.of(screen, WIDER_FAMILIES, members[:simplest]))


def _of_families(screen: Screen, views: list[View], table: Table) -> Iterator[Estimate]:
    """For each view and each function of each argument, the best constants of the grid."""
    if not table.groups:
        return
    normal = Normalized.of(values_of(views, screen.target), screen.weights)
    members = table.normalized(screen.weights)
    correlations = Panels(members.units).inner(normal.units)
    chosen = np.stack(list(table.best_of_groups(np.abs(correlations))), axis=1)
    for k, view in enumerate(views):
        rows = chosen[k]
        which = np.full(len(rows), k)
        fitted = fitted_lines(normal, members, table.values, which, rows, correlations[k, rows].astype(np.float64))
        shares = screen.unexplained(view.target(fitted))
        # Nodes that a step of a view takes besides its own: about the slope of its argument.
        extra = 2 * len(view.chain) + len(view.divisor or ())
        for row, share in zip(rows.tolist(), shares.tolist(), strict=True):
            yield Estimate(
                share, extra + table.size(screen, row), partial(_skeleton_of_family, screen, view, table, row)
            )


def _skeleton_of_family(screen: Screen, view: View, table: Table, row: int) -> RefinedSkeleton:
    """A view as an affine function of a row of the table."""
    start = screen.sum_of_formulas("function with constants", view.chain, (table.nodes(screen, row),), view.divisor)
    return RefinedSkeleton(start)
