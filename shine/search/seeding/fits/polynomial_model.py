"""A polynomial fitted to rows, for its gradient: being a regression, it averages noise out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.compiler import arrays
from shine.compiler.arrays import combined, dot, solved


@dataclass(frozen=True, eq=False)
class PolynomialModel:
    """A polynomial fitted to a response.

    Parameters
    ----------
    explained : float
        Share of the response's variance.
    fitted : ndarray of shape (n_rows,)
    gradient : ndarray of shape (n_variables, n_rows)
    inner : ndarray of shape (n_rows,), bool
        Rows away from the edge of the data; at the edge, gradients of polynomials are wrong.
    """

    explained: float
    fitted: Floats
    gradient: Floats
    inner: Mask

    @classmethod
    def of_each(cls, values: Floats, responses: Floats, weights: Floats) -> list[PolynomialModel]:
        """Fit each response by a polynomial of the highest degree for which there are enough rows.

        Parameters
        ----------
        values : ndarray of shape (n_variables, n_rows)
        responses : ndarray of shape (n_responses, n_rows)
        weights : ndarray of shape (n_rows,)
        """
        d, n = values.shape
        weights = weights / weights.sum()
        means = dot(values, weights)
        spreads = np.sqrt(dot((values - means[:, None]) ** 2, weights))
        spreads = np.where(spreads > 0, spreads, 1)
        units = (values - means[:, None]) / spreads[:, None]
        polynomial = _Terms.of(d, int(n / 6))  # rows that each term of the polynomial needs
        terms = polynomial.values(units)
        scales = np.sqrt(dot(terms * terms, weights))
        scales = np.where(scales > 0, scales, 1)
        scaled = terms / scales[:, None]
        weighed = scaled * weights
        # Added to the diagonal of the normal equations, whose terms have the mean square 1.
        solutions = solved(arrays.inner(weighed, scaled), arrays.inner(responses, weighed), 1e-8)
        # Standard deviations from the mean, in every variable, up to which the gradient is trusted.
        inner = np.asarray((np.abs(units) < 1.7).all(axis=0))
        if inner.sum() < min(50, n):  # with fewer trusted rows, which are too few to show a symmetry, all rows are used
            inner = np.ones(n, bool)
        found = []
        for response, own in zip(responses, solutions, strict=True):
            fitted = combined(own, scaled)
            derivatives = polynomial.derivatives(own / scales)
            gradient = np.array([combined(each, terms) for each in derivatives]) / spreads[:, None]
            spread = dot((response - dot(response, weights)) ** 2, weights)
            explained = 1 - float(dot((response - fitted) ** 2, weights) / spread) if spread > 0 else 0.0
            found.append(cls(explained, fitted, gradient, inner))
        return found


@dataclass(frozen=True, eq=False)
class _Terms:
    """The terms of a polynomial: the first is 1, every other is an earlier one times a variable.

    Parameters
    ----------
    steps : tuple of (int, int)
        The earlier term and the variable, for each term after the first.
    exponents : ndarray of shape (n_terms, n_variables), int64
    lowered : ndarray of shape (n_terms, n_variables), int64
        The term whose exponent of a variable is lower by one; 0 where the term lacks the variable.
    """

    steps: tuple[tuple[int, int], ...]
    exponents: Indices
    lowered: Indices

    @classmethod
    @cache
    def of(cls, variables: int, most: int) -> _Terms:
        """All terms up to the highest degree, at least 1, for which there are at most `most` of them."""
        factors: list[tuple[int, ...]] = [()]
        for degree in range(1, 7):  # of the polynomial
            # Sequences of variables that may be enumerated for the terms of one degree.
            enumerable = variables**degree < 10**6
            more = list(combinations_with_replacement(range(variables), degree)) if enumerable else None
            if more is None or (degree > 1 and len(factors) + len(more) > most):
                break
            factors = [*factors, *more]
        places = {term: place for place, term in enumerate(factors)}
        exponents = np.array([[term.count(i) for i in range(variables)] for term in factors])
        lowered = np.zeros_like(exponents)
        for place, term in enumerate(factors):
            for variable in set(term):
                at = term.index(variable)
                lowered[place, variable] = places[term[:at] + term[at + 1 :]]
        return cls(tuple((places[term[:-1]], term[-1]) for term in factors[1:]), exponents, lowered)

    def values(self, variables: Floats) -> Floats:
        """Values of the terms, shape (n_terms, n_rows)."""
        values = np.empty((1 + len(self.steps), variables.shape[1]))
        values[0] = 1
        for place, (earlier, variable) in enumerate(self.steps, start=1):
            np.multiply(values[earlier], variables[variable], out=values[place])
        return values

    def derivatives(self, coefficients: Floats) -> Floats:
        """Coefficients of the derivative by each variable, shape (n_variables, n_terms)."""
        moved = (coefficients[:, None] * self.exponents).T
        return np.array([
            np.bincount(places, own, minlength=len(coefficients))
            for places, own in zip(self.lowered.T, moved, strict=True)
        ])  # fmt: skip
