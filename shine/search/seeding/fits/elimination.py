"""Exact sums: a regression on many terms at once, from which the insignificant ones are eliminated.

Without noise, double precision carries some 15 digits. If a view is a sum of terms that are independent on the rows,
the coefficients of all others are 0 to rounding: nothing has to be searched, however many terms the sum has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.compiler.arrays import Regression, combined, dot

DEPENDENT = 1e-14
"""Length, as a share of its own, below which what a term adds to simpler ones is rounding."""

RIDGE = 1e-14
"""Weight of the coefficients beside the residual: of many solutions that are equal to rounding, the smallest is the one
whose coefficients say most about which terms are needed."""

ENOUGH = 3e-13
"""Residual of an exact sum, as a share of the length of the view, uncentered: a thousand times the rounding of one
number."""

LAST_TRIED, FEW = 12, 40
"""Terms with small coefficients that are tried one by one if so few are left: many are a sum of other terms."""


@dataclass(frozen=True, eq=False)
class Span:
    """Span of terms on the rows.

    Parameters
    ----------
    basis : ndarray of shape (n_basis, n_rows)
        Orthonormal.
    terms : ndarray of shape (n_terms, n_basis)
        Each term, scaled to length 1, in terms of the basis: also those that depend on others to rounding.
    """

    basis: Floats
    terms: Floats

    @classmethod
    def of(cls, columns: Floats) -> Span:
        """The span of columns, shape (n_columns, n_rows)."""
        regression = Regression.of(of_length_one(columns), DEPENDENT)
        kept = regression.kept
        return cls(regression.basis[kept], np.ascontiguousarray((regression.triangle[kept] * regression.scale).T))

    def rest(self, views: Floats) -> Floats:
        """Residuals of views beside the span, shape (n_views, n_rows); projected twice, to be right to rounding."""
        for _ in range(2):
            for vector in self.basis:
                views = views - dot(views, vector)[:, None] * vector
        return views

    def needed(self, view: Floats, most: int, more: float = 0.0) -> Indices | None:
        """The terms that a view needs, if it is a sum of at most `most` of them to rounding.

        Parameters
        ----------
        view : ndarray of shape (n_rows,)
        most : int
        more : float
            Share by which the squared residual may be larger than that of all terms, though it is beyond rounding.
        """
        view = of_length_one(view[None])[0]
        rest = self.rest(view[None])[0]
        square = float(dot(rest, rest))
        left = max(ENOUGH**2 - square, more * square)
        if not left > 0:
            return None
        along = dot(self.basis, view)
        places = self._fewest(along, left)
        if places is None:
            places = self._eliminated(along, left)
        return places if len(places) <= most else None

    def _fewest(self, along: Floats, enough: float) -> Indices | None:
        """Places of the fewest terms that make up the view if some depend on others; None if these are not few.

        Elimination ends where it needs each term that is left, and another choice may have fewer of them.
        """
        count = len(self.terms)
        for size in range(1, count if count > len(along) else 0):
            # Most choices of so many terms that are tried, each with a small regression: a tenth of a second.
            if math.comb(count, size) > 30_000:
                break
            choices = np.array(list(combinations(range(count), size)))
            rests = Regression.of(self.terms[choices], DEPENDENT).rest(along)
            exact = np.flatnonzero(dot(rests, rests) <= enough)
            if len(exact):
                # The terms are sorted, the simple ones first.
                found: Indices = choices[exact[np.argmin(choices[exact].sum(axis=1))]]
                return found
        return None

    def _eliminated(self, along: Floats, enough: float) -> Indices:
        """Places of the terms that are left while the squared residual is at most `enough`."""
        kept = np.arange(len(self.terms))
        sizes, left = self._fitted(kept, along)
        while len(kept) > 1 and left <= enough:
            order = np.argsort(sizes, kind="stable")
            # Share of the terms that go at a time; fewer if the sum needs one of them.
            count = max(int(1 / 6 * len(kept)), 1)
            singles = order[1 : LAST_TRIED if len(kept) <= FEW else 1, None]
            halves = [order[: count >> i] for i in range(count.bit_length())]
            for dropped in (*halves, *singles):
                fewer = np.delete(kept, dropped)
                found, left = self._fitted(fewer, along)
                if left <= enough:
                    kept, sizes = fewer, found
                    break
        return kept

    def _fitted(self, kept: Indices, along: Floats) -> tuple[Floats, float]:
        """Sizes of the coefficients of these terms, and the squared residual."""
        terms = self.terms[kept]
        if len(kept) > len(along):
            coefficients = _smallest_solution(terms, along)
        else:
            design = np.concatenate([terms, RIDGE * np.eye(len(kept))], axis=1)
            coefficients = Regression.of(design, 0.0).coefficients(np.concatenate([along, np.zeros(len(kept))]))
        rest = along - combined(coefficients, terms)
        return np.abs(coefficients), float(dot(rest, rest))


def _smallest_solution(terms: Floats, along: Floats) -> Floats:
    """The same coefficients of more terms than the basis has: the shortest that make up the view, with the residual."""
    across = Regression.of(np.concatenate([terms.T, RIDGE * np.eye(len(along))], axis=1), 0.0)
    shares = np.zeros(len(along))
    for j in range(len(along)):
        known = float(dot(across.triangle[:j, j], shares[:j])) if j else 0.0
        shares[j] = (along[j] / across.scale[j] - known) / across.triangle[j, j]
    return combined(shares, across.basis)[: len(terms)]


def of_length_one(rows: Floats) -> Floats:
    """Rows scaled to length 1, whatever their scale; zeros where a row is not finite, or zero."""
    with np.errstate(all="ignore"):
        rows = rows / np.abs(rows).max(axis=1, initial=0.0)[:, None]
        scaled = rows / np.sqrt(dot(rows, rows))[:, None]
    finite: Mask = np.logical_and.reduce(np.isfinite(scaled), axis=1)
    return np.where(finite[:, None], scaled, 0.0)


def significant(regression: Regression, values: Floats, standard_errors: float) -> Mask:
    """Whether each coefficient is this many standard errors away from zero, shape (n_columns,).

    Parameters
    ----------
    regression : Regression
    values : ndarray of shape (n_rows,)
        What it explains.
    standard_errors : float
    """
    rest = regression.rest(values)
    # The squares of very large values overflow: then nothing is significant.
    with np.errstate(over="ignore", invalid="ignore"):
        residual_variance = float(dot(rest, rest)) / max(len(values) - len(regression.scale), 1)
        # Residual variance, as a share of the mean square, that rounding alone can cause.
        noise = max(residual_variance, 1e-28 * float(dot(values, values)) / len(values))
        errors = np.sqrt(noise * regression.variances)
        found: Mask = np.abs(regression.coefficients(values)) > standard_errors * errors
    return found
