"""Sums: of two members; of simple terms, from which others are eliminated; and quadratic forms of all coordinates.

The last two take all terms at once: sums of a few of them may not look promising.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import combinations

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Regression, combined, dot, gram_matrix, least_squares
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable
from shine.search.seeding.fits.correlations import Normalized, best_pairs
from shine.search.seeding.fits.elimination import (
    ENOUGH,
    Dictionary,
    Span,
    Sums,
    of_length_one,
    replaced,
    significant,
    with_another_term,
)
from shine.search.seeding.screen.estimates import COST_OF_TERM, Estimate, estimates_of_sums
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import View, values_of


def sums_of_two(screen: Screen, most: int, pairs: int) -> Iterator[Estimate]:
    """chain(y) = a*g1 + b*g2 + c, and with a third member

    Parameters
    ----------
    screen : Screen
    most : int
        Members that are tried in all pairs.
    pairs : int
        Best pairs of each view, which are estimated and get a third member.
    """
    members = screen.distinct_in_sums[:most]
    units = screen.normalized.units[members]
    gram, dictionary = gram_matrix(units), Dictionary(units)
    views = screen.simple_views
    values = values_of(views, screen.target)
    normal = Normalized.of(values, screen.weights)
    for k in range(len(views)):
        first, second, _ = best_pairs(units, normal.units[k], gram, pairs)
        two = Sums(np.full(len(first), k), np.column_stack([first, second]), np.zeros(len(first)))
        three = replaced(dictionary, normal.units, with_another_term(dictionary, normal.units, two))
        yield from estimates_of_sums(screen, "sum of 2", views, values, members, two)
        yield from estimates_of_sums(screen, "sum of 3", views, values, members, three)


FIRST, GROWTH = 20, 2
"""Terms of the first regression, and how many times as many the next has: few terms are independent on more rows."""

ROWS_A_TERM = 1.5
"""Rows that each term needs."""

MOST_EXACT, MANY = 3, 100
"""Views that terms are eliminated for, in each regression: nearly all are exact where the rows carry no more terms. Of
so many terms, only one view: eliminating them takes long."""


def sums_of_terms(screen: Screen, most: int, divisors: int, terms: int) -> Iterator[Estimate]:
    """chain(y / g) = a*g1 + b*g2 + ..., exactly

    Parameters
    ----------
    screen : Screen
        Over a bank of simple terms.
    most : int
        Members that are tried at once.
    divisors : int
        Members that are tried as g.
    terms : int
        Most terms, besides the intercept.
    """
    members = screen.order[screen.normalized.lengths[screen.order] > 0][:most]
    views = _views(screen, divisors)
    with np.errstate(all="ignore"):
        seen = np.array([view.of(screen.target) for view in views])
    usable = np.flatnonzero(np.isfinite(seen).all(axis=1))
    for root in screen.roots:
        columns = np.concatenate([np.ones((1, len(root))), screen.values[members]]) * root
        weighted = seen[usable] * root
        count, failures = FIRST, 0
        # Regressions on many terms that are exact without being a sum of a few, before larger ones are given up.
        while failures < 2:
            count = min(count, len(columns), int(len(root) / ROWS_A_TERM))
            rows = slice(None, None, max(int(len(root) / (ROWS_A_TERM * count)), 1))
            span = Span.of(columns[:count, rows])
            rest = span.rest(of_length_one(weighted[:, rows]))
            found = False
            exact = np.flatnonzero(dot(rest, rest) <= ENOUGH**2)[: MOST_EXACT if count < MANY else 1].tolist()
            for k in exact:
                needed = span.needed(weighted[k, rows], terms + 1)
                if needed is not None and len(chosen := tuple(members[i - 1] for i in needed.tolist() if i)):
                    found = True
                    yield _estimate(screen, views[usable[k]], chosen)
            failures += bool(exact) and count >= MANY
            if found or count == min(len(columns), int(len(root) / ROWS_A_TERM)):
                break
            count *= GROWTH


def _views(screen: Screen, divisors: int) -> list[View]:
    """The target and powers of it, also divided by simple members."""
    views = list(screen.simple_views)
    for g in screen.order[:divisors].tolist():
        values = screen.values[g]
        if np.abs(values).min() > 0 and screen.normalized.lengths[g] > 0:
            views.append(View((), screen.bank.nodes(g), values))
    return views


def _estimate(screen: Screen, view: View, members: tuple[int, ...]) -> Estimate:
    """A sum of members with the share of the target's variance that it leaves."""
    root = np.sqrt(screen.weights)
    design = np.concatenate([screen.values[list(members)], np.ones((1, len(root)))])
    fitted = combined(least_squares(design * root, view.of(screen.target) * root), design)
    share = float(screen.unexplained(view.target(fitted)[None])[0])
    size = len(view.divisor or ()) + int(screen.sizes[list(members)].sum()) + COST_OF_TERM * len(members)
    return Estimate(share, size, partial(screen.sum_skeleton, "sum of terms", view, members))


def quadratic_forms(screen: Screen, rows_a_term: int, standard_errors: float) -> Iterator[Estimate]:
    """chain(y) = a sum of x_i^2, x_i and c, and then also of x_i*x_j, over all coordinates x_i

    Parameters
    ----------
    screen : Screen
    rows_a_term : int
        Rows that each term needs.
    standard_errors : float
        Terms are kept if their coefficients are this many standard errors from zero.
    """
    rows = len(screen.weights)
    root = np.sqrt(screen.weights)
    for with_products in (False, True):
        terms, columns = _squares(screen, with_products)
        if len(terms) < 2 or len(terms) * rows_a_term > rows:
            return
        design = np.stack([np.ones(rows), *columns])
        regression = Regression.of(design * root)
        # Of terms that depend on each other, others may be fewer.
        span = None if regression.kept.all() else Span.of(design * root)
        for view in screen.simple_views:
            values = view.of(screen.target)
            needed = None if span is None else span.needed(values * root, len(design), standard_errors**2 / rows)
            if needed is None:
                needed = np.flatnonzero(significant(regression, values * root, standard_errors))
            kept = needed[needed > 0]
            if not len(kept):
                continue
            chosen = design[[0, *kept]]
            fitted = combined(least_squares(chosen * root, values * root), chosen)
            share = float(screen.unexplained(view.target(fitted)[None])[0])
            used = tuple(terms[i - 1] for i in kept.tolist())
            size = sum(len(term) + COST_OF_TERM for term in used)
            yield Estimate(share, size, partial(screen.sum_of_formulas, "quadratic form", view.chain, used))


def _squares(screen: Screen, with_products: bool) -> tuple[list[Nodes], list[Floats]]:
    """Coordinates, their squares and their products, as formulas and values."""
    nodes, values = screen.coordinates.nodes, screen.coordinates.values
    terms, columns = list(nodes), list(values)
    with suppress(Unwritable):
        for term, own in zip(nodes, values, strict=True):
            if ((own != own.min()) & (own != own.max())).any():  # the squares of two values lie on a line
                terms.append(screen.writer.power(term, 2.0))
                columns.append(own * own)
        for i, j in combinations(range(len(nodes)), 2) if with_products else ():
            terms.append(screen.writer.multiply(nodes[i], nodes[j]))
            columns.append(values[i] * values[j])
    return terms, columns
