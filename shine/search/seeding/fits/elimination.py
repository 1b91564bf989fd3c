"""The terms of sums: selected one after the other, or eliminated from a regression on many at once.

Forward selection grows sums of a few members of a large dictionary that explain views. Elimination is for exact sums.

Without noise, double precision carries some 15 digits. If a view is a sum of terms that are independent on the rows,
the coefficients of all others are 0 to rounding: nothing has to be searched, however many terms the sum has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from shine.base.typing import Floats, Indices, Mask, Singles
from shine.compiler.arrays import Panels, Regression, combined, dot
from shine.search.seeding.fits.correlations import best_matches

NEARLY_PARALLEL = 1e-4
"""Squared sine of an angle below which single precision cannot tell how much a member adds to the chosen ones."""

AT_ONCE = 1 << 23
"""Correlations held at a time, which bounds the memory."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums with the same number of members each, one sum in each row.

    Parameters
    ----------
    views : ndarray of shape (n_sums,), int64
        The view that each sum explains.
    chosen : ndarray of shape (n_sums, n_terms), int64
        Members, in the order they were chosen.
    unexplained : ndarray of shape (n_sums,)
        Share of the view's variance.
    """

    views: Indices
    chosen: Indices
    unexplained: Floats

    def take(self, which: Indices) -> Sums:
        """Some of the sums."""
        return Sums(self.views[which], self.chosen[which], self.unexplained[which])


class Dictionary:
    """Members that sums may consist of, laid out once for all sums.

    Parameters
    ----------
    units : ndarray of shape (n_members, n_rows), float32 or float64
        Rows of length 1, centered; rows of zeros are never chosen.
    parallel : float
        Squared sine of the angle between a member and the span of the chosen ones, below which it is not chosen.
    """

    def __init__(self, units: Singles | Floats, parallel: float = NEARLY_PARALLEL) -> None:
        self.units, self.parallel = units, parallel
        self.panels = Panels(units)
        self.lengths = dot(units, units)


def first_terms(members: Dictionary, views: Singles, beams: int) -> Sums:
    """Sums of one term: for each view the `beams` members that correlate best with it."""
    which, first, correlations = best_matches(members.panels, views, beams)
    return Sums(which, first[:, None], 1 - correlations**2)


def with_another_term(members: Dictionary, views: Singles | Floats, sums: Sums) -> Sums:
    """Each sum with another term.

    Parameters
    ----------
    members : Dictionary
    views : ndarray of shape (n_views, n_rows), float32 or float64
        Rows of length 1, centered.
    sums : Sums

    Notes
    -----
    Orthogonal least squares (Chen, Billings and Luo 1989): the member with which the sum explains most is chosen.
    Another may correlate better with the residual.
    """
    following = _best_next(members, views[sums.views], sums.chosen)
    return _measured(members, views, sums.views, np.column_stack([sums.chosen, following]))


def replaced(members: Dictionary, views: Singles | Floats, sums: Sums, sweeps: int = 1) -> Sums:
    """Sums after each term in turn is replaced by the best one, given the others.

    Forward selection chose the first terms before it knew the others.
    """
    chosen = sums.chosen.copy()
    for _ in range(sweeps):
        for place in range(chosen.shape[1]):
            chosen[:, place] = _best_next(members, views[sums.views], np.delete(chosen, place, axis=1))
    return _measured(members, views, sums.views, chosen)


def _measured(members: Dictionary, views: Singles | Floats, which: Indices, chosen: Indices) -> Sums:
    """Sums of chosen members, with the share of variance that they leave unexplained."""
    residuals, _ = _residuals(members, views[which], chosen)
    return Sums(which, chosen, dot(residuals, residuals))


def _residuals(members: Dictionary, views: Singles | Floats, chosen: Indices) -> tuple[Floats, Floats]:
    """Residuals of each view, and orthonormal bases of its members, shape (n_sums, n_terms, n_rows)."""
    regression = Regression.of(members.units[chosen].astype(np.float64))
    return regression.rest(views.astype(np.float64)), regression.basis


def _best_next(members: Dictionary, views: Singles | Floats, chosen: Indices) -> Indices:
    """For each sum of chosen members that with which it explains most of its view."""
    residuals, bases = _residuals(members, views, chosen)
    at_once = max(1, AT_ONCE // max(members.panels.count, 1))
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(residuals), at_once):
        now = slice(start, start + at_once)
        gain = members.panels.inner(residuals[now])
        gain *= gain
        apart = np.repeat(members.lengths[None], len(gain), axis=0)
        for place in range(bases.shape[1]):
            # Sums that begin with the same members share the directions of these.
            _, first, each = np.unique(chosen[now, : place + 1], axis=0, return_index=True, return_inverse=True)
            along = members.panels.inner(bases[now, place][first])
            along *= along
            apart -= along[each.reshape(-1)]
        gain[apart < members.parallel] = -1
        gain /= np.maximum(apart, members.parallel)
        found.append(np.argmax(gain, axis=1))
    return np.concatenate(found)


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
        # Most choices of so many terms that are tried, each with a small regression: up to two tenths of a second for a
        # law, and a hundredth for each of the many views that are none.
        places = self._fewest(along, left, 30_000 if square <= ENOUGH**2 else 3_000)
        if places is None:
            places = self._eliminated(along, left)
        return places if len(places) <= most else None

    def _fewest(self, along: Floats, enough: float, most: int) -> Indices | None:
        """Places of the fewest terms that make up the view if some depend on others; None if these are not few.

        Elimination ends where it needs each term that is left, and another choice may have fewer of them.
        """
        count = len(self.terms)
        for size in range(1, count if count > len(along) else 0):
            if math.comb(count, size) > most:
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
