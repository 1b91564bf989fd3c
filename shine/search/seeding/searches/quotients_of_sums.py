"""Quotients of two sums of members, from the linear equation chain(y) = numerator - chain(y) * divisor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from shine.base.typing import Floats, Indices, Singles
from shine.compiler.arrays import inner
from shine.compiler.arrays.functions import combined, least_squares
from shine.search.seeding.fits.correlations import Normalized, best_pairs, best_triples
from shine.search.seeding.fits.forward_selection import Dictionary, Sums, replaced, with_another_term
from shine.search.seeding.screen.estimates import COST_OF_TERM, Estimate
from shine.search.seeding.screen.screen import Screen
from shine.search.seeding.screen.target_views import View, homogeneous


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
