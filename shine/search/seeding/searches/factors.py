"""Affine functions of members; a member as a factor of one, or of a sum; and quotients of polynomials.

Later searches try the members by which division helped most as divisors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import Panels, Regression, power
from shine.lang.forms.primitives import CONSTANT
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable
from shine.search.seeding.fits.correlations import Normalized, best_matches, fitted_lines
from shine.search.seeding.fits.elimination import Dictionary, first_terms, replaced, significant, with_another_term
from shine.search.seeding.screen.estimates import COST_OF_TERM, Estimate, estimates_of_sums, lines, unexplained_by_sums
from shine.search.seeding.screen.screen import POWERS, Screen, divided_views, has_power, power_chain
from shine.search.seeding.screen.skeletons import SumSkeleton
from shine.search.seeding.screen.target_views import View, homogeneous, values_of

DEGREES = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2))
"""Degrees of the numerator and the divisor: the terms of lower ones are among those of higher ones, and the quotient is
unique only where the degrees are as low as they can be."""


def rational_forms(screen: Screen, standard_errors: float) -> Iterator[Estimate]:
    """chain(y) = P / Q, with polynomials P and Q of all coordinates, of degrees up to 3 and 2

    Parameters
    ----------
    screen : Screen
    standard_errors : float
        Terms are kept if their coefficients are this many standard errors from zero.
    """
    count = len(screen.coordinates.nodes)
    # Quotients of polynomials of one coordinate come close to any smooth function: they would look like laws.
    if count < 2:
        return
    views = [view for view in screen.simple_views if homogeneous(view.chain)]
    for above, below in DEGREES:
        # Rows beyond the number of terms: fewer would not tell a law from a polynomial that meets every row.
        if comb(count + above, above) + comb(count + below, below) + 20 > len(screen.weights):
            continue
        numerator, divisor = (_Polynomial.of(screen, degree) for degree in (above, below))
        for view in views:
            yield from _estimate(screen, view, numerator, divisor, standard_errors)


@dataclass(frozen=True, eq=False)
class _Polynomial:
    """The terms of a polynomial of the coordinates, without the constant.

    Parameters
    ----------
    nodes : tuple of Nodes
    values : ndarray of shape (n_terms, n_rows)
    """

    nodes: tuple[Nodes, ...]
    values: Floats

    @classmethod
    def of(cls, screen: Screen, degree: int) -> _Polynomial:
        """All terms up to a degree that can be written."""
        coordinates = screen.coordinates
        nodes, values = [], []
        for count in range(1, degree + 1):
            for which in combinations_with_replacement(range(len(coordinates.nodes)), count):
                factors = [(coordinates.nodes[i], float(which.count(i))) for i in dict.fromkeys(which)]
                try:
                    nodes.append(screen.writer.product(factors))
                except Unwritable:
                    continue
                values.append(np.multiply.reduce(coordinates.values[list(which)], axis=0))
        return cls(tuple(nodes), np.array(values).reshape(len(nodes), len(screen.weights)))


def _estimate(
    screen: Screen, view: View, numerator: _Polynomial, divisor: _Polynomial, standard_errors: float
) -> Iterator[Estimate]:
    """The quotient without the terms that the rows do not need, from the equation view = P - view * (Q - 1)."""
    values, root = view.of(screen.target), np.sqrt(screen.weights)
    # Centered divisors: the constant of Q may then be 0, as in 1 / (a + b).
    centered = divisor.values - np.mean(divisor.values, axis=1)[:, None]
    columns = np.concatenate([np.ones((1, len(root))), numerator.values, -values * centered]) * root
    if not np.isfinite(columns).all():
        return
    needed = significant(Regression.of(columns), values * root, standard_errors)
    needed[0] = True
    regression = Regression.of(columns[needed])
    solution = np.zeros(len(columns))
    solution[needed] = regression.coefficients(values * root)
    first = 1 + len(numerator.nodes)
    up, down = np.flatnonzero(needed[1:first]), np.flatnonzero(needed[first:])
    # Most terms of a quotient: more make a formula longer than anybody wants.
    if not len(up) or not len(down) or len(up) + len(down) > 12:
        return
    with np.errstate(all="ignore"):
        above = np.add.reduce(solution[1:first, None] * numerator.values, axis=0) + solution[0]
        below = np.add.reduce(solution[first:, None] * centered, axis=0) + 1
        share = float(screen.unexplained(view.target(above / below)[None])[0])
    terms, divisors = [numerator.nodes[i] for i in up.tolist()], [divisor.nodes[i] for i in down.tolist()]
    size = sum(len(term) + COST_OF_TERM for term in (*terms, *divisors))
    yield Estimate(share, size, partial(_skeleton, screen, view, tuple(terms), tuple(divisors)))


def _skeleton(screen: Screen, view: View, terms: tuple[Nodes, ...], divisors: tuple[Nodes, ...]) -> SumSkeleton:
    """A view as a quotient of sums."""
    return screen.sum_of_formulas("rational form", view.chain, terms, divisors=divisors)


NONE = -1
"""Stands for no member."""


def factor_times_affine(screen: Screen, divisors: int, others: int, each: int, estimated: int) -> Iterator[Estimate]:
    """(y / g1)^p = a*g2 + b

    Parameters
    ----------
    screen : Screen
    divisors, others : int
        Smallest members that are tried as g1 and as g2.
    each : int
        Best g2 that are estimated for each g1.
    estimated : int
        Best estimates that are kept for each power p.
    """
    usable_divisors, others_chosen = _usable_divisors(screen, divisors), screen.order[:others]
    panels = Panels(screen.normalized.units[others_chosen])
    best: dict[int, float] = {}
    for exponent in POWERS:
        if not has_power(screen.writer, np.ones(1), exponent):
            continue
        factors, quotients, raised = _raised_quotients(screen, usable_divisors, exponent)
        normal = Normalized.of(raised, screen.weights)
        which, member, correlation = best_matches(panels, normal.units, each)
        member = others_chosen[member]
        fitted = fitted_lines(normal, screen.normalized, screen.values, which, member, correlation)
        with np.errstate(all="ignore"):
            sign = np.where(quotients[which, :1] < 0, -1, 1)
            roots = 1 / fitted if exponent == -1 else power(fitted, 1 / exponent) * sign
            shares = screen.unexplained(screen.values[factors[which]] * roots)
        for i in np.argsort(shares, kind="stable")[:estimated].tolist():
            share, g, m = float(shares[i]), int(factors[which[i]]), int(member[i])
            best[g] = min(best.get(g, 1.0), share)
            chain = power_chain(exponent, -1.0 if quotients[which[i], 0] < 0 else 1.0)
            view = View(chain, screen.bank.nodes(g), screen.values[g])
            size = int(screen.sizes[g] + screen.sizes[m])
            yield Estimate(share, size, partial(screen.sum_skeleton, "factor times affine", view, (m,)))
    screen.best_divisors = sorted((share, g) for g, share in best.items())


def _usable_divisors(screen: Screen, most: int) -> Indices:
    """The smallest members that are not constant and have no zeros."""
    smallest = screen.order[: 2 * most]
    usable = (np.abs(screen.values[smallest]).min(axis=1) > 0) & (screen.bank.codes[smallest] != CONSTANT)
    return smallest[usable][:most]


def _raised_quotients(screen: Screen, divisors: Indices, exponent: float) -> tuple[Indices, Floats, Floats]:
    """Divisors, the target divided by each, and these quotients raised to a power, if it can be undone."""
    with np.errstate(all="ignore"):
        quotients = screen.target / screen.values[divisors]
        raised = power(quotients, exponent)
    one_sign = (quotients > 0).all(axis=1) | (quotients < 0).all(axis=1)
    valid = np.isfinite(raised).all(axis=1) & (one_sign if exponent % 2 == 0 else True)
    return divisors[valid], quotients[valid], raised[valid]


def affine(screen: Screen, each: int) -> Iterator[Estimate]:
    """chain(y) = a*g + b, by the `each` members that correlate best with chain(y)"""
    yield from lines(screen, "affine", [View(chain) for chain in screen.chains], each)


def factor_times_sum(screen: Screen, most: int, divisors: int, terms: int) -> Iterator[Estimate]:
    """chain(y / g1) = a*g2 + b*g3 + ... + c, with any chain and no g1, or with likely g1 and powers

    Parameters
    ----------
    screen : Screen
    most : int
        Members that sums are made of.
    divisors : int
        Likely g1 that are tried.
    terms : int
        Most terms.
    """
    members = screen.order[:most]
    units = screen.normalized.units[members]
    usable = np.flatnonzero((units != 0).any(axis=1))
    members, dictionary = members[usable], Dictionary(units[usable])
    views = [*screen.simple_views, *divided_views(screen, divisors)]
    if not views:
        return
    values = values_of(views, screen.target)
    normal = Normalized.of(values, screen.weights)
    found = first_terms(dictionary, normal.units, 3)  # members that sums begin with, for each view
    for _ in range(terms - 1):
        found = with_another_term(dictionary, normal.units, found)
        shares = unexplained_by_sums(screen, views, values, members, found)
        kept = found.take(_kept(shares, found.views))
        # Times that each term of a kept sum is replaced by the best one.
        for sums in (kept, replaced(dictionary, normal.units, kept, 2)):
            yield from estimates_of_sums(screen, "factor times sum", views, values, members, sums)


def _kept(shares: Floats, views: Indices) -> Indices:
    """The best sum of each view, and the best of all."""
    order = np.argsort(shares, kind="stable")
    _, firsts = np.unique(views[order], return_index=True)
    # Sums that are kept after each term, besides the best of each view.
    return np.unique(np.concatenate([order[firsts], order[:24]]))
