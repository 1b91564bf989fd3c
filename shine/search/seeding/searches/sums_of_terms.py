"""Exact sums of any number of simple terms: one regression on all of them, and elimination."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import dot
from shine.compiler.arrays.functions import combined, least_squares
from shine.search.seeding.bank.formula_writer import Nodes
from shine.search.seeding.fits.elimination import ENOUGH, Span, of_length_one
from shine.search.seeding.screen.estimates import COST_OF_TERM, Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import View

FIRST, GROWTH = 20, 2
"""Terms of the first regression, and how many times as many the next has: few terms are independent on more rows."""

ROWS_A_TERM = 2
"""Rows that each term needs."""

MOST_EXACT = 3
"""Views that terms are eliminated for, in each regression: nearly all are exact where the rows carry no more terms."""


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
        count = FIRST
        while True:
            count = min(count, len(columns), len(root) // ROWS_A_TERM)
            rows = slice(None, None, max(len(root) // (ROWS_A_TERM * count), 1))
            span = Span.of(columns[:count, rows])
            rest = span.rest(of_length_one(weighted[:, rows]))
            found = False
            for k in np.flatnonzero(dot(rest, rest) <= ENOUGH**2)[:MOST_EXACT].tolist():
                needed = span.needed(weighted[k, rows], terms + 1)
                if needed is not None and len(chosen := tuple(members[i - 1] for i in needed.tolist() if i)):
                    found = True
                    yield _estimate(screen, views[usable[k]], chosen)
            if found or count == min(len(columns), len(root) // ROWS_A_TERM):
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
