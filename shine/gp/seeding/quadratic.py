"""Quadratic forms: a view of the target as squares, products and multiples of the coordinates, in one regression."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import combinations

import numpy as np

from shine.arrays import dot
from shine.gp.regression import Regression, combined, least_squares
from shine.gp.seeding import views
from shine.gp.seeding.screen import Estimate, Screen
from shine.gp.seeding.writing import Nodes, Unwritable
from shine.typing import Floats, Mask

ROWS_A_TERM = 3
"""Rows a term needs."""

SIGNIFICANT = 3.0
"""Standard errors that a coefficient must be away from zero."""


def quadratic(screen: Screen) -> Iterator[Estimate]:
    """chain(y) = a sum of x_i^2, x_i and x_i*x_j, for all coordinates x_i; without products, and with them

    A sum of many terms at once: what begins with a few of them need not look promising.
    """
    rows = len(screen.weights)
    root = np.sqrt(screen.weights)
    for with_products in (False, True):
        terms, columns = _terms(screen, with_products)
        if len(terms) < 2 or len(terms) * ROWS_A_TERM > rows:
            return
        design = np.stack([np.ones(rows), *columns])
        regression = Regression.of(design * root)
        for chain in screen.chains:
            if len(chain) > 1:
                continue
            view = views.forward(chain, screen.target)
            kept = np.flatnonzero(_significant(regression, view * root)[1:])
            if not len(kept):
                continue
            chosen = design[[0, *(1 + kept)]]
            fitted = combined(least_squares(chosen * root, view * root), chosen)
            left = float(screen.left(views.inverse(chain, fitted)[None])[0])
            used = tuple(terms[i] for i in kept.tolist())
            size = sum(len(term) + 2 for term in used)
            yield Estimate(left, size, partial(screen.sum_of, "quadratic", chain, used))


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


def _significant(regression: Regression, view: Floats) -> Mask:
    """Which coefficients of a regression are not zero, for all that one can tell."""
    rest = regression.rest(view)
    # A view of very large numbers has squares beyond them: then nothing is significant.
    with np.errstate(over="ignore", invalid="ignore"):
        left = float(dot(rest, rest)) / max(len(view) - len(regression.scale), 1)
        # Nothing is known better than to rounding.
        noise = max(left, 1e-28 * float(dot(view, view)) / len(view))
        significant: Mask = np.abs(regression.coefficients(view)) > SIGNIFICANT * np.sqrt(noise * regression.variances)
    return significant
