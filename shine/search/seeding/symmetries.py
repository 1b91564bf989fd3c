"""Symmetries of the target: features that matter only together, found from the gradient of a polynomial fitted to it.

If y depends on x1 and x2 only through x1 - x2, its derivatives by them are opposite everywhere; if only through
x1 * x2, the derivatives by their logarithms are equal; and so on. So features are merged into fewer coordinates, over
which a bank reaches much deeper, and factors of the target are divided out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, combinations_with_replacement

import numpy as np

from shine.base.typing import Floats, Indices, Mask
from shine.compiler import arrays
from shine.compiler.arrays import combined, dot, log, power, solved
from shine.search.seeding.bank.coordinates import Coordinates
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable, Writer


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


FACTOR_EXPONENT = 0.03
"""Distance of a factor's exponent from a multiple of 1/2, below which it counts as that."""

FACTOR_DOUBT = 0.03
"""Doubt allowed for a factor, as a share of the doubt allowed for a merge: dividing wrongly spoils all that follows."""

RATIOS = (1.0, 2.0, 0.5, 3.0, 1 / 3, 1.5, 2 / 3)
"""Exponents that two merged coordinates may have relative to each other."""


@dataclass(frozen=True, eq=False)
class Change:
    """New coordinates, and the squared distance of the gradient from allowing them, as a share of its square."""

    doubt: float
    coordinates: Coordinates
    merges: bool = False


def systems(
    start: Coordinates, target: Floats, weights: Floats, writer: Writer, doubts: Sequence[float]
) -> list[Coordinates]:
    """Systems of fewer coordinates, at least one for each degree of doubt that lets more features merge.

    Parameters
    ----------
    start : Coordinates
        The features.
    target, weights : ndarray of shape (n_rows,)
    writer : Writer
    doubts : sequence of float
        Allowed doubts of a merge, ascending.

    Returns
    -------
    list of Coordinates
        The fewest coordinates first, then those they were merged from.
    """
    found: list[Coordinates] = []
    current, slopes = start, _slopes(start, target, weights)
    for doubt in doubts:
        while len(current.nodes) > 1:
            allowed = (change for each in slopes for change in _allowed(current, each, writer, doubt))
            changes = sorted(allowed, key=lambda c: (c.merges, c.doubt))
            if not changes or changes[0].doubt > doubt:
                break
            if changes[0].merges and current is not start:
                found.append(current)
            current = changes[0].coordinates
            slopes = _slopes(current, target, weights)
        if current is not start and current not in found:
            found.append(current)
    return found[::-1]


@dataclass(frozen=True, eq=False)
class Slopes:
    """Derivatives of the target, or of its logarithm, by the coordinates, from a polynomial.

    Parameters
    ----------
    gradient : ndarray of shape (n_coordinates, n_inner)
    offset : ndarray of shape (n_inner,)
        The derivative by the logarithm of a factor is a multiple of this.
    inner : ndarray of shape (n_rows,), bool
        Rows where the gradient is trusted.
    """

    gradient: Floats
    offset: Floats
    inner: Mask


def _slopes(coordinates: Coordinates, target: Floats, weights: Floats) -> list[Slopes]:
    """Slopes of the target and of its logarithm, by polynomials of the coordinates and of their logarithms."""
    if len(coordinates.nodes) < 2:
        return []
    reduced = target / coordinates.factor
    one_sign = bool((reduced > 0).all() or (reduced < 0).all())
    responses = np.array([reduced, log(np.abs(reduced))] if one_sign else [reduced])
    charts = _charts(coordinates.values)
    models = [PolynomialModel.of_each(values, responses, weights) for values in charts]
    found = []
    for logarithmic in range(len(responses)):
        for values, each in zip(charts, models, strict=True):
            model = each[logarithmic]
            if model.explained >= 0.5:  # share of variance that a polynomial must explain before its gradient is used
                gradient = model.gradient * _chain_rule(values, coordinates.values)
                offset = np.ones_like(model.fitted) if logarithmic else model.fitted
                found.append(Slopes(gradient[:, model.inner], offset[model.inner], model.inner))
    return found


def _charts(values: Floats) -> list[Floats]:
    """The coordinates unchanged, and with the positive ones replaced by their logarithms."""
    positive = np.asarray((values > 0).all(axis=1))
    if not positive.any():
        return [values]
    return [values, np.where(positive[:, None], log(np.where(values > 0, values, 1)), values)]


def _chain_rule(chart: Floats, values: Floats) -> Floats:
    """Derivatives of a chart by the coordinates."""
    same = (chart == values).all(axis=1)
    return np.where(same[:, None], 1.0, 1 / np.where(values == 0, 1, values))


def _allowed(coordinates: Coordinates, slopes: Slopes, writer: Writer, doubt: float) -> Iterator[Change]:
    """Changes of coordinates that slopes allow."""
    gradient, values = slopes.gradient, coordinates.values[:, slopes.inner]
    by_log = gradient * values
    # Derivatives by half the square of each coordinate.
    by_square = gradient / np.where(values == 0, np.inf, values)
    yield from _dropped_or_divided(coordinates, by_log, slopes.offset, doubt)
    for i, j in combinations(range(len(gradient)), 2):
        pair = _Pair(coordinates, i, j, writer)
        for merge, by in ((_sum, gradient), (_sum_of_squares, by_square)):
            a, b = by[i], by[j]
            size = dot(a, a) + dot(b, b)
            for sign in (1.0, -1.0):
                distance = float(dot(a - sign * b, a - sign * b) / size) if size > 0 else 1.0
                if distance < doubt:
                    yield from pair.merged(merge, sign, 0.0, distance)
        yield from _products(pair, by_log[i], by_log[j], slopes.offset, doubt)


def _dropped_or_divided(coordinates: Coordinates, by_log: Floats, offset: Floats, doubt: float) -> Iterator[Change]:
    """Coordinates without one that does not matter, or that is a factor: ``x * dy/dx = e * y``."""
    total = dot(by_log, by_log)
    for i, x in enumerate(coordinates.values):
        exponent, left = share_left(by_log[i], offset)
        rounded = round(2 * exponent) / 2
        # A coordinate is dropped if its squared derivative, as a share of the largest, is at most this times the doubt.
        if total[i] <= 1e-3 * doubt * total.max():
            yield Change(0.0, coordinates.without([i]))
        elif rounded and abs(exponent - rounded) < FACTOR_EXPONENT and left < FACTOR_DOUBT * doubt:
            has_power = (x > 0).all() or (rounded % 1 == 0 and (x != 0).all())
            if has_power:
                yield Change(left, coordinates.divided_by(i, rounded).without([i]))


def _products(pair: _Pair, a: Floats, b: Floats, offset: Floats, doubt: float) -> Iterator[Change]:
    """Two coordinates merged into a product of powers; then again, with both also allowed as factors of the target.

    `a` and `b` are the derivatives by their logarithms.
    """
    for free in (False, True):
        if free:
            along = offset / np.sqrt(dot(offset, offset))
            a0, b0 = a - dot(a, along) * along, b - dot(b, along) * along
        else:
            a0, b0 = a, b
        aa, bb, ab = dot(a0, a0), dot(b0, b0), dot(a0, b0)
        # Squared derivative by each merged coordinate, as a share of the larger, that factors of the target must leave.
        if not min(aa, bb) > 1e-4 * max(dot(a, a), dot(b, b)) or not np.isfinite([aa, bb]).all():
            continue
        left = 1 - ab * ab / (aa * bb)
        ratio = np.sign(ab) * np.sqrt(aa / bb)
        rounded = min(RATIOS, key=lambda r: max(abs(ratio) / r, r / abs(ratio)))
        error = max(abs(ratio) / rounded, rounded / abs(ratio))
        # Doubt allowed if both coordinates may also be factors, as a share of the usual doubt: more freedom fits more.
        # Largest quotient of a ratio of exponents and the nearest of `RATIOS`, which replaces it
        if left > doubt * (0.1 if free else 1.0) or error > 1.1:
            continue
        exponent = 0.0
        if free:
            e, _ = share_left(a - np.sign(ratio) * rounded * b, offset)
            exponent = round(2 * e) / 2
            # The same as `FACTOR_EXPONENT`, for a factor that is found together with a merge
            if abs(e - exponent) > 0.1:
                continue
        yield from pair.merged(_product, float(np.sign(ratio)) * rounded, exponent, float(left))


Merge = Callable[[Writer, Nodes, Nodes, Floats, Floats, float], tuple[Nodes, Floats]]
"""Makes one coordinate of two: the formula and the values, given those of the two and a ratio."""


def _sum(writer: Writer, a: Nodes, b: Nodes, x: Floats, y: Floats, ratio: float) -> tuple[Nodes, Floats]:
    """x + y or x - y"""
    return (writer.add(a, b), x + y) if ratio > 0 else (writer.subtract(a, b), x - y)


def _sum_of_squares(writer: Writer, a: Nodes, b: Nodes, x: Floats, y: Floats, ratio: float) -> tuple[Nodes, Floats]:
    """x^2 + y^2 or x^2 - y^2"""
    return _sum(writer, writer.power(a, 2.0), writer.power(b, 2.0), x * x, y * y, ratio)


def _product(writer: Writer, a: Nodes, b: Nodes, x: Floats, y: Floats, ratio: float) -> tuple[Nodes, Floats]:
    """x^ratio * y, raised to the power that makes both exponents whole: x^2 * y^3 for 2/3."""
    # Distance from a whole number that counts as rounding.
    scale = next(s for s in (1, 2, 3) if abs(s * ratio - round(s * ratio)) < 1e-9)
    p, q = float(round(scale * ratio)), float(scale)
    with np.errstate(all="ignore"):
        return writer.product([(a, p), (b, q)]), power(x, p) * power(y, q)


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two coordinates, i and j, that may become one."""

    coordinates: Coordinates
    i: int
    j: int
    writer: Writer

    def merged(self, merge: Merge, ratio: float, exponent: float, doubt: float) -> Iterator[Change]:
        """One coordinate for x_i and x_j; the target is also divided by x_i to a power, if that is not 0."""
        coordinates, i, j = self.coordinates, self.i, self.j
        x, y = coordinates.values[i], coordinates.values[j]
        try:
            nodes, values = merge(self.writer, coordinates.nodes[i], coordinates.nodes[j], x, y, ratio)
        except Unwritable:
            return
        if np.isfinite(values).all() and np.ptp(values) > 0 and not (exponent % 1 and (x < 0).any()):
            if exponent and (x == 0).any():
                return
            yield Change(doubt, coordinates.divided_by(i, exponent).without([i, j]).with_one(nodes, values), True)


def share_left(vector: Floats, direction: Floats) -> tuple[float, float]:
    """Coefficient of a direction in a vector, and the share of the vector's square that is not along it.

    0 and 1 if a number is not finite.
    """
    length = float(dot(direction, direction))
    coefficient = float(dot(vector, direction)) / length if length > 0 else 0.0
    if not np.isfinite([length, coefficient]).all():
        return 0.0, 1.0
    rest, size = vector - coefficient * direction, float(dot(vector, vector))
    return coefficient, float(dot(rest, rest)) / size if size > 0 else 0.0
