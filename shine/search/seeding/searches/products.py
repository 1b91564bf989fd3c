"""Products of powers: a monomial, alone or times powers of members, also with constants in these; and functions
with constants inside, of tabulated families."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from shine.base.typing import Floats, Indices, Singles
from shine.compiler.arrays import Panels, dot, gram_matrix, inner
from shine.search.seeding.bank.formula_writer import Nodes, constant
from shine.search.seeding.bank.function_families import EXPONENTIAL, FACTORS, FAMILIES, WIDER_FAMILIES, rate
from shine.search.seeding.fits.correlations import Normalized, best_pairs, beyond_monomials, fitted_lines
from shine.search.seeding.screen.estimates import Estimate, Logarithms, powers, residuals_of_pairs
from shine.search.seeding.screen.screen import Screen, divided_views
from shine.search.seeding.screen.skeletons import RefinedSkeleton
from shine.search.seeding.screen.tabulated_functions import Table, arguments_of, best_of_pairs
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


KIND = "product with constants"
"""The kind of the formulas."""

POWERS = (1.0, -1.0)
"""Powers of a factor that are tried besides those from a regression."""


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
    views = Logarithms.of(screen)
    explained = np.flatnonzero(views.lengths == 0)
    if len(explained):
        view = views.views[explained[0]]
        yield Estimate(0.0, len(screen.bases), partial(screen.product_skeleton, "monomial", view, ()))
        return
    yield from _monomials(screen, views)
    yield from powers(screen, "product", views, each)
    yield from _with_two_members(screen, views, pairs_of, pairs)


def _monomials(screen: Screen, logarithms: Logarithms) -> Iterator[Estimate]:
    """chain(y) = c * M"""
    size = 2 * len(screen.bases)
    for k, view in enumerate(logarithms.views):
        residuals = logarithms.rest[k] * logarithms.lengths[k]
        share = float(logarithms.unexplained(screen, k, residuals[None])[0])
        yield Estimate(share, size, partial(screen.product_skeleton, "monomial", view, ()))


def _with_two_members(screen: Screen, logarithms: Logarithms, of: int, most: int) -> Iterator[Estimate]:
    """chain(y) = c * M * g1^k1 * g2^k2, after chains of one step that may hide products"""
    members = screen.distinct_in_products[:of]
    if len(members) < 2:
        return
    logs, units = screen.logs[members], logarithms.rest.astype(np.float32)
    gram = gram_matrix(logs)
    for k, view in enumerate(logarithms.views):
        if len(view.chain) > 1 or (view.chain and not view.chain[0].homogeneous and view.chain[0].name != "shift"):
            continue
        first, second, _ = best_pairs(logs, units[k], gram, most)
        residuals = residuals_of_pairs(units[k], logs[first], logs[second])
        shares = logarithms.unexplained(screen, k, residuals * logarithms.lengths[k])
        for i, j, share in zip(members[first].tolist(), members[second].tolist(), shares.tolist(), strict=True):
            size = int(screen.sizes[i] + screen.sizes[j])
            yield Estimate(share, size, partial(screen.product_skeleton, "product of two", view, (i, j)))


def products_with_constants(screen: Screen, arguments: int, pairs_of: int, pairs: int) -> Iterator[Estimate]:
    """chain(y) = c * M * u(g; d)^k, and y = c * M * exp(k1*g1) * u(g2; d)^k2

    Parameters
    ----------
    screen : Screen
    arguments : int
        Cheapest members that are tried as g.
    pairs_of : int
        Factors that are tried in all pairs.
    pairs : int
        Best pairs, which are estimated.
    """
    found = Logarithms.of(screen, lambda chain: not chain or (len(chain) == 1 and chain[0].name == "exp"))
    members = arguments_of(screen, arguments)
    for views in (found, *(Logarithms.weighted(screen, view) for view in found.views)):
        factors = _Factors.of(screen, members, views)
        if factors.nodes:
            yield from _single(screen, views, factors)
            yield from _of_fixed_power(screen, views, factors)
            yield from _pairs(screen, views, factors, pairs_of, pairs)


@dataclass(frozen=True, eq=False)
class _Factors:
    """Factors with constants inside, and the part of their logarithms that no monomial explains.

    Parameters
    ----------
    nodes : tuple of callable
        Makes the formula of each.
    sizes : ndarray of shape (n,)
    groups : tuple of slice
        Factors that differ in a constant only.
    rest : ndarray of shape (n, n_rows)
    logs : ndarray of shape (n, n_rows), float32
        The same, scaled to length 1.
    """

    nodes: tuple[partial[Nodes], ...]
    sizes: Indices
    groups: tuple[slice, ...]
    rest: Floats
    logs: Singles

    @classmethod
    def of(cls, screen: Screen, arguments: Indices, views: Logarithms) -> _Factors:
        """Exponentials of members, whose rate is an exponent, and the functions of a table."""
        table = Table.of(screen, FACTORS, arguments)
        exponentials = [m for m in arguments.tolist() if screen.writer.has("exp")]
        own = [EXPONENTIAL.values(screen.values[m], np.array([[rate(screen.values[m])]])) for m in exponentials]
        nodes = [partial(_exponential, screen, m) for m in exponentials]
        nodes += [partial(table.nodes, screen, row) for row in range(len(table.values))]
        count = len(exponentials)
        sizes = [4 + int(screen.sizes[m]) for m in exponentials]  # nodes that an exponential takes besides its argument
        sizes += [g.family.size + int(screen.sizes[g.argument]) for g in table.groups for _ in range(len(g.constants))]
        groups = [slice(i, i + 1) for i in range(count)]
        groups += [slice(count + g.rows.start, count + g.rows.stop) for g in table.groups]
        rest, lengths = beyond_monomials(np.concatenate([*own, table.values]), views.basis, views.weights)
        return cls(
            tuple(nodes), np.array(sizes, np.int64), tuple(groups), rest * lengths[:, None], rest.astype(np.float32)
        )


def _exponential(screen: Screen, member: int) -> Nodes:
    """The exponential of a member; its exponent in a product makes up for the rate."""
    own = constant(rate(screen.values[member]))
    return screen.writer.call("exp", screen.writer.multiply(own, screen.bank.nodes(member)))


def _single(screen: Screen, views: Logarithms, factors: _Factors) -> Iterator[Estimate]:
    """chain(y) = c * M * factor^k"""
    correlations = Panels(factors.logs).inner(views.rest.astype(np.float32))
    rows = np.stack([g.start + np.argmax(np.abs(correlations[:, g]), axis=1) for g in factors.groups], axis=1)
    for k, chosen in enumerate(rows):
        along = correlations[k, chosen].astype(np.float64)
        shares = views.unexplained(
            screen, k, (views.rest[k] - along[:, None] * factors.logs[chosen]) * views.lengths[k]
        )
        for i, share in zip(chosen.tolist(), shares.tolist(), strict=True):
            size = int(factors.sizes[i]) + 2 * len(screen.bases)
            yield Estimate(share, size, partial(_skeleton, screen, views, k, factors, (i,)))


def _pairs(screen: Screen, views: Logarithms, factors: _Factors, of: int, most: int) -> Iterator[Estimate]:
    """y = c * M * factor1^k1 * factor2^k2"""
    step = -(-len(factors.logs) // of)
    members = np.concatenate([np.arange(g.start, g.stop, step) for g in factors.groups])
    groups = np.repeat(np.arange(len(factors.groups)), [len(range(g.start, g.stop, step)) for g in factors.groups])
    logs = factors.logs[members]
    gram = gram_matrix(logs)
    for k in np.flatnonzero([not view.chain for view in views.views]).tolist():
        unit = views.rest[k].astype(np.float32)
        first, second, _ = best_pairs(logs, unit, gram, len(logs))
        best = best_of_pairs(first, second, groups, most)
        first, second = first[best], second[best]
        residuals = residuals_of_pairs(unit, logs[first], logs[second]) * views.lengths[k]
        shares = views.unexplained(screen, k, residuals)
        for i, j, share in zip(members[first].tolist(), members[second].tolist(), shares.tolist(), strict=True):
            size = int(factors.sizes[[i, j]].sum()) + 2 * len(screen.bases)
            yield Estimate(share, size, partial(_skeleton, screen, views, k, factors, (i, j)))


def _of_fixed_power(screen: Screen, views: Logarithms, factors: _Factors) -> Iterator[Estimate]:
    """chain(y) = c * M * factor^k with a simple k, which regression blurs where a monomial is nearly the factor"""
    rest = views.rest * views.lengths[:, None]
    along, squares = inner(factors.rest, rest), dot(factors.rest, factors.rest)
    # The factor divides the target itself, so there is no chain.
    for k, power in product(np.flatnonzero([not view.chain for view in views.views]).tolist(), POWERS):
        errors = power * (power * squares - 2 * along[:, k])
        chosen = [g.start + int(np.argmin(errors[g])) for g in factors.groups if g.stop - g.start > 1]
        residuals = rest[k] - power * factors.rest[chosen]
        shares = views.unexplained(screen, k, residuals)
        for i, share in zip(chosen, shares.tolist(), strict=True):
            size = int(factors.sizes[i]) + 2 * len(screen.bases)
            yield Estimate(share, size, partial(_divided, screen, views.views[k], factors.nodes[i], power))


def _divided(screen: Screen, view: View, factor: partial[Nodes], power: float) -> RefinedSkeleton:
    """A monomial times a power of a factor."""
    divided = View(view.chain, screen.writer.power(factor(), power))
    return RefinedSkeleton(screen.product_of_formulas(KIND, divided, ()))


def _skeleton(screen: Screen, views: Logarithms, k: int, factors: _Factors, which: tuple[int, ...]) -> RefinedSkeleton:
    """A product of powers of factors."""
    view = views.views[k]
    return RefinedSkeleton(screen.product_of_formulas(KIND, view, tuple(factors.nodes[i]() for i in which)))
