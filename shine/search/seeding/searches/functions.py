"""Functions with unknown constants inside, and functions of quotients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Panels
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable
from shine.search.seeding.bank.function_families import FAMILIES, WIDER_FAMILIES
from shine.search.seeding.fits.correlations import Normalized, fitted_lines
from shine.search.seeding.screen.estimates import Estimate
from shine.search.seeding.screen.logarithms import Logarithms, lines, powers
from shine.search.seeding.screen.screen import Screen, divided_views, likely_divisors
from shine.search.seeding.screen.skeletons import RefinedSkeleton
from shine.search.seeding.screen.tabulated_functions import Table, arguments_of
from shine.search.seeding.screen.target_views import View, function_chains, nested_chains, values_of

COST_OF_VIEW = 2
"""Nodes that a step of a view takes besides its own: about the slope of its argument."""

KIND = "function of quotient"
"""The kind of the formulas."""


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
    yield from _estimates(screen, views, Table.of(screen, FAMILIES, members))
    yield from _estimates(screen, views[:1], Table.of(screen, WIDER_FAMILIES, members[:simplest]))


def _estimates(screen: Screen, views: list[View], table: Table) -> Iterator[Estimate]:
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
        extra = COST_OF_VIEW * len(view.chain) + len(view.divisor or ())
        for row, share in zip(rows.tolist(), shares.tolist(), strict=True):
            yield Estimate(share, extra + table.size(screen, row), partial(_skeleton, screen, view, table, row))


def _skeleton(screen: Screen, view: View, table: Table, row: int) -> RefinedSkeleton:
    """A view as an affine function of a row of the table."""
    start = screen.sum_of_formulas("function with constants", view.chain, (table.nodes(screen, row),), view.divisor)
    return RefinedSkeleton(start)


def functions_of_quotients(screen: Screen, divisors: int, each: int) -> Iterator[Estimate]:
    """f(y / g1) = a*g2 + b, and = c * M * g2^k; also f1(f2(y)), for functions f with an inverse

    Parameters
    ----------
    screen : Screen
    divisors : int
        Likely g1 that are tried, besides the coordinates and their inverses.
    each : int
        Members g2 that are estimated for each view.
    """
    views = [View(chain) for chain in nested_chains(screen.target, screen.writer)]
    for nodes, values in {**_coordinates(screen), **likely_divisors(screen, divisors)}.items():
        with np.errstate(all="ignore"):
            divided = screen.target / values
        if np.isfinite(divided).all():
            views += [View(chain, nodes, values) for chain in function_chains(divided, screen.writer)]
    yield from lines(screen, KIND, views, each)
    yield from powers(screen, KIND, Logarithms.of_views(screen, views), each)


def _coordinates(screen: Screen) -> dict[Nodes, Floats]:
    """Coordinates without zeros, and their inverses."""
    found: dict[Nodes, Floats] = {}
    for nodes, values in zip(screen.coordinates.nodes, screen.coordinates.values, strict=True):
        if (values != 0).all():
            found[nodes] = values
            with suppress(Unwritable):
                found[screen.writer.power(nodes, -1.0)] = 1 / values
    return found
