"""Quadratic forms of all coordinates: squares, products and multiples of them, in one regression.

It takes all terms at once: sums of a few of them may not look promising.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import combinations

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Regression, combined, least_squares
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable
from shine.search.seeding.fits.elimination import significant
from shine.search.seeding.screen.estimates import COST_OF_TERM, Estimate
from shine.search.seeding.screen.screen import Screen


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
        terms, columns = _terms(screen, with_products)
        if len(terms) < 2 or len(terms) * rows_a_term > rows:
            return
        design = np.stack([np.ones(rows), *columns])
        regression = Regression.of(design * root)
        for view in screen.simple_views:
            values = view.of(screen.target)
            kept = np.flatnonzero(significant(regression, values * root, standard_errors)[1:])
            if not len(kept):
                continue
            chosen = design[[0, *(1 + kept)]]
            fitted = combined(least_squares(chosen * root, values * root), chosen)
            share = float(screen.unexplained(view.target(fitted)[None])[0])
            used = tuple(terms[i] for i in kept.tolist())
            size = sum(len(term) + COST_OF_TERM for term in used)
            yield Estimate(share, size, partial(screen.sum_of_formulas, "quadratic form", view.chain, used))


def _terms(screen: Screen, with_products: bool) -> tuple[list[Nodes], list[Floats]]:
    """Coordinates, their squares and their products, as formulas and values."""
    nodes, values = screen.coordinates.nodes, screen.coordinates.values
    terms, columns = list(nodes), list(values)
    with suppress(Unwritable):
        for term, own in zip(nodes, values, strict=True):
            terms.append(screen.writer.power(term, 2.0))
            columns.append(own * own)
        for i, j in combinations(range(len(nodes)), 2) if with_products else ():
            terms.append(screen.writer.multiply(nodes[i], nodes[j]))
            columns.append(values[i] * values[j])
    return terms, columns
