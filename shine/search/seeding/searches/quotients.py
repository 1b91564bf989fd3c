"""Quotients of polynomials of all coordinates, in one regression for each pair of degrees.

It takes all terms of the linear equation chain(y) = numerator - chain(y) * divisor at once, and drops those that the
rows do not need. So long quotients are found whose parts do not look promising: a quotient of five features has too
many terms for a search that adds one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import Regression
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable
from shine.search.seeding.fits.elimination import significant
from shine.search.seeding.screen.estimates import COST_OF_TERM, Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.skeletons import SumSkeleton
from shine.search.seeding.screen.target_views import View, homogeneous

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
