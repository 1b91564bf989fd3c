"""Quotients of two sums of members, from the linear equation chain(y) = numerator - chain(y) * divisor.

Rational forms are quotients of polynomials of all coordinates, in one regression for each pair of degrees. It takes all
terms at once and drops those that the rows do not need. So long quotients are found whose parts do not look promising:
a quotient of five features has too many terms for a search that adds one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from shine.base.typing import Floats, Indices, Singles
from shine.compiler.arrays import Regression, combined, inner, least_squares
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable
from shine.search.seeding.fits.correlations import Normalized, best_pairs, best_triples
from shine.search.seeding.fits.elimination import significant
from shine.search.seeding.fits.forward_selection import Dictionary, Sums, replaced, with_another_term
from shine.search.seeding.screen.estimates import COST_OF_TERM, Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.skeletons import SumSkeleton
from shine.search.seeding.screen.target_views import View, homogeneous

DEGREES = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2))
"""Degrees of the numerator and the divisor: the terms of lower ones are among those of higher ones, and the quotient is
unique only where the degrees are as low as they can be."""

SPARE_ROWS = 20
"""Rows beyond the number of terms: fewer would not tell a law from a polynomial that meets every row."""

FEWEST_COORDINATES = 2
"""Quotients of polynomials of one coordinate come close to any smooth function: they would look like laws."""

MOST_TERMS = 12
"""Most terms of a quotient: more make a formula longer than anybody wants."""


def quotients_of_sums(screen: Screen, above: int, below: int, simplest: int, kept: int) -> Iterator[Estimate]:
    """chain(y) = (sum of members) / (1 + sum of members)

    Tries two members of all, or three of the simplest, and the best of these with one more.

    Parameters
    ----------
    screen : Screen
    above, below : int
        Members that the numerator and the divisor are made of.
    simplest : int
        Members of each of the two that are tried in all triples.
    kept : int
        The best pairs and triples of each view.
    """
    # Members distinct in sums: the difference of two divisors that differ by a constant would explain the view.
    numerators, divisors = screen.distinct_in_sums[:above], screen.distinct_in_sums[:below]
    simple = np.concatenate(
        [np.arange(len(numerators))[:simplest], len(numerators) + np.arange(len(divisors))[:simplest]]
    )
    # The simplest members stay the same while the bank grows: their triples are searched once.
    new_triples = len(simple) != sum(min(screen.distinct_before, most, simplest) for most in (above, below))
    for view in screen.simple_views:
        if not homogeneous(view.chain):
            continue
        equation = _Equation.of(screen, view, numerators, divisors)
        units, dictionary = equation.units, Dictionary(equation.units)
        own = Normalized.of(equation.values[None], screen.weights).units
        first, second, unexplained = best_pairs(units, own[0], inner(units, units), kept)
        found = [Sums(np.zeros(len(first), np.int64), np.column_stack([first, second]), unexplained)]
        found.append(replaced(dictionary, own, with_another_term(dictionary, own, found[0])))
        if new_triples:
            three, unexplained = best_triples(units[simple], own[0], kept)
            found.append(Sums(np.zeros(len(three), np.int64), simple[three], unexplained))
        found.append(replaced(dictionary, own, with_another_term(dictionary, own, found[-1])))
        for sums in found:
            yield from equation.estimates(screen, sums)


@dataclass(frozen=True, eq=False)
class _Equation:
    """The linear equation of a view.

    Parameters
    ----------
    view : View
    values : ndarray of shape (n_rows,)
        Values of the view.
    numerators, divisors : ndarray
        Members of the bank.
    columns : ndarray of shape (n_numerators + n_divisors, n_rows)
        Terms of the view: the numerators, and -view times each divisor.
    units : ndarray of the same shape, float32
        The columns normalized.
    """

    view: View
    values: Floats
    numerators: Indices
    divisors: Indices
    columns: Floats
    units: Singles

    @classmethod
    def of(cls, screen: Screen, view: View, numerators: Indices, divisors: Indices) -> _Equation:
        """The equation of a view with these members."""
        values = view.of(screen.target)
        # Centered divisors: a nearly constant one times the view would be nearly the view, and explain it.
        centered = screen.values[divisors] - screen.normalized.means[divisors][:, None]
        columns = np.concatenate([screen.values[numerators], -values * centered])
        return cls(view, values, numerators, divisors, columns, Normalized.of(columns, screen.weights).units)

    def estimates(self, screen: Screen, sums: Sums) -> Iterator[Estimate]:
        """The quotients that sums of the columns stand for, if they have a numerator and a divisor."""
        n = len(self.numerators)
        for row, share in zip(sums.chosen, self._unexplained(screen, sums.chosen).tolist(), strict=True):
            up = sorted({int(self.numerators[i]) for i in row if i < n})
            down = sorted({int(self.divisors[i - n]) for i in row if i >= n})
            if up and down:
                size = int(screen.sizes[up].sum() + screen.sizes[down].sum()) + COST_OF_TERM * len(row)
                yield Estimate(share, size, partial(screen.sum_skeleton, "quotient of sums", self.view, up, down))

    def _unexplained(self, screen: Screen, chosen: Indices) -> Floats:
        """Share of the target's variance that quotients leave unexplained."""
        root = np.sqrt(screen.weights)
        rows = len(self.values)
        design = np.concatenate([np.ones((len(chosen), 1, rows)), self.columns[chosen]], axis=1)
        solution = least_squares(design * root, np.broadcast_to(self.values * root, (len(chosen), rows)))
        above = np.concatenate([np.ones((len(chosen), 1), bool), chosen < len(self.numerators)], axis=1)
        with np.errstate(all="ignore"):
            numerator = combined(np.where(above, solution, 0.0), design)
            divisor = 1 - combined(np.where(above, 0.0, solution), design) / self.values
            return screen.unexplained(self.view.target(numerator / divisor))


def rational_forms(screen: Screen, standard_errors: float) -> Iterator[Estimate]:
    """chain(y) = P / Q, with polynomials P and Q of all coordinates, of degrees up to 3 and 2

    Parameters
    ----------
    screen : Screen
    standard_errors : float
        Terms are kept if their coefficients are this many standard errors from zero.
    """
    count = len(screen.coordinates.nodes)
    if count < FEWEST_COORDINATES:
        return
    views = [view for view in screen.simple_views if homogeneous(view.chain)]
    for above, below in DEGREES:
        if comb(count + above, above) + comb(count + below, below) + SPARE_ROWS > len(screen.weights):
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
    if not len(up) or not len(down) or len(up) + len(down) > MOST_TERMS:
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
