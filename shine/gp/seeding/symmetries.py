"""Symmetries of the target: features that matter only together, found from the gradient of a smooth model of it.

If y depends on x1 and x2 only through x1 - x2, its derivatives by them are opposite everywhere; through x1 * x2, the
derivatives by their logarithms are equal; and so on. A polynomial fitted to the target has nearly its gradient, and
being a regression it averages noise out. So features are merged into fewer *coordinates*, of which a bank reaches much
deeper, and factors that only multiply the target are divided out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, combinations_with_replacement

import numpy as np

from shine import arrays
from shine.arrays import dot, log, power
from shine.gp.linear import solved
from shine.gp.regression import combined
from shine.gp.seeding.writing import Factor, Nodes, Unwritable, Writer
from shine.typing import Floats, Indices, Mask

ROWS_A_TERM = 6
"""Rows a term of the polynomial needs."""

DEGREE = 6
"""Highest degree of the polynomial."""

LEAST_EXPLAINED = 0.5
"""Share of variance a polynomial must explain for its gradient to be looked at."""

INNER = 1.7
"""Standard deviations from the mean, in every coordinate, up to which a gradient is trusted."""

RIDGE = 1e-8
"""What is added to the diagonal of the polynomial's equations, whose terms have the mean square 1."""

RATIOS = (1.0, 2.0, 0.5, 3.0, 1 / 3, 1.5, 2 / 3)
"""Exponents that two merged coordinates may have relative to each other."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """What the target may be a function of, once its factor is divided out.

    Parameters
    ----------
    nodes : tuple of Nodes
        Each coordinate as a formula of the features.
    values : ndarray of shape (n_coordinates, n_rows)
    factors : tuple of (Nodes, float)
        Powers whose product multiplies the target.
    factor : ndarray of shape (n_rows,)
        That product.
    """

    nodes: tuple[Nodes, ...]
    values: Floats
    factors: tuple[Factor, ...]
    factor: Floats

    @classmethod
    def of_features(cls, columns: Floats, chosen: Indices) -> Coordinates:
        """Some features as they are."""
        nodes = tuple(((i + 1, 0.0),) for i in chosen.tolist())
        return cls(nodes, columns[chosen], (), np.ones(columns.shape[1]))

    def on(self, rows: Indices) -> Coordinates:
        """These coordinates on some rows."""
        return replace(self, values=self.values[:, rows], factor=self.factor[rows])

    def without(self, which: Sequence[int]) -> Coordinates:
        """These coordinates but for some."""
        kept = [i for i in range(len(self.nodes)) if i not in which]
        return replace(self, nodes=tuple(self.nodes[i] for i in kept), values=self.values[kept])

    def with_one(self, nodes: Nodes, values: Floats) -> Coordinates:
        """These coordinates and another."""
        return replace(self, nodes=(*self.nodes, nodes), values=np.vstack([self.values, values]))

    def divided_by(self, factor: int, exponent: float) -> Coordinates:
        """These coordinates with a power of one as another factor of the target."""
        if exponent == 0:
            return self
        return replace(
            self,
            factors=(*self.factors, (self.nodes[factor], exponent)),
            factor=self.factor * power(self.values[factor], exponent),
        )


@dataclass(frozen=True, eq=False)
class Change:
    """New coordinates, and how far the gradient is from allowing them: a share of it, squared."""

    doubt: float
    coordinates: Coordinates
    merges: bool = False


def systems(
    start: Coordinates, target: Floats, weights: Floats, writer: Writer, doubts: Sequence[float]
) -> list[Coordinates]:
    """Systems of fewer coordinates, one for each degree of doubt that still lets features merge.

    Parameters
    ----------
    start : Coordinates
        The features.
    target, weights : ndarray of shape (n_rows,)
    writer : Writer
    doubts : sequence of float
        In ascending order.

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
    """What a smooth model says of the target's derivatives by coordinates.

    Parameters
    ----------
    gradient : ndarray of shape (n_coordinates, n_inner)
    offset : ndarray of shape (n_inner,)
        What the derivative by the logarithm of a factor is a multiple of.
    inner : ndarray of shape (n_rows,), bool
        The rows where the model is trusted.
    """

    gradient: Floats
    offset: Floats
    inner: Mask


def _slopes(coordinates: Coordinates, target: Floats, weights: Floats) -> list[Slopes]:
    """The slopes of the target, and of its logarithm, by models over coordinates and over their logarithms."""
    if len(coordinates.nodes) < 2:
        return []
    reduced = target / coordinates.factor
    one_sign = bool((reduced > 0).all() or (reduced < 0).all())
    responses = np.array([reduced, log(np.abs(reduced))] if one_sign else [reduced])
    charts = _charts(coordinates.values)
    models = [Surrogate.of_each(values, responses, weights) for values in charts]
    found = []
    for logarithmic in range(len(responses)):
        for values, each in zip(charts, models, strict=True):
            model = each[logarithmic]
            if model.explained >= LEAST_EXPLAINED:
                gradient = model.gradient * _chain_rule(values, coordinates.values)
                offset = np.ones_like(model.fitted) if logarithmic else model.fitted
                found.append(Slopes(gradient[:, model.inner], offset[model.inner], model.inner))
    return found


def _charts(values: Floats) -> list[Floats]:
    """The coordinates as they are, and the logarithms of those that are positive."""
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
    gradient, offset, values = slopes.gradient, slopes.offset, coordinates.values[:, slopes.inner]
    # By the coordinate, by its logarithm, and by half its square.
    by = {"plain": gradient, "log": gradient * values, "square": gradient / np.where(values == 0, np.inf, values)}
    total = dot(by["log"], by["log"])
    for i in range(len(gradient)):
        # A factor: x * dy/dx = e * y; with e = 0, the coordinate does not matter.
        exponent, left = _share_left(by["log"][i], offset)
        snapped = round(2 * exponent) / 2
        nothing = total[i] <= 1e-3 * doubt * total.max()
        if nothing:
            yield Change(0.0, coordinates.without([i]))
        elif snapped and abs(exponent - snapped) < 0.03 and left < 0.03 * doubt:
            x = coordinates.values[i]
            if (x > 0).all() or (snapped % 1 == 0 and (x != 0).all()):
                yield Change(left, coordinates.divided_by(i, snapped).without([i]))
    for i, j in combinations(range(len(gradient)), 2):
        for kind in ("plain", "square"):
            a, b = by[kind][i], by[kind][j]
            size = dot(a, a) + dot(b, b)
            for sign in (1.0, -1.0):
                apart = float(dot(a - sign * b, a - sign * b) / size) if size > 0 else 1.0
                if apart < doubt:
                    yield from _merged(coordinates, i, j, kind, sign, 0.0, apart, writer)
        yield from _powers(coordinates, i, j, by["log"][i], by["log"][j], offset, doubt, writer)


def _powers(
    coordinates: Coordinates, i: int, j: int, a: Floats, b: Floats, offset: Floats, doubt: float, writer: Writer
) -> Iterator[Change]:
    """Merging x_i and x_j into a product of powers, where they may also be factors of the target."""
    for free in (False, True):
        if free:
            along = offset / np.sqrt(dot(offset, offset))
            a0, b0 = a - dot(a, along) * along, b - dot(b, along) * along
        else:
            a0, b0 = a, b
        aa, bb, ab = dot(a0, a0), dot(b0, b0), dot(a0, b0)
        if not min(aa, bb) > 1e-4 * max(dot(a, a), dot(b, b)) or not np.isfinite([aa, bb]).all():
            continue
        left = 1 - ab * ab / (aa * bb)
        ratio = np.sign(ab) * np.sqrt(aa / bb)
        snapped = min(RATIOS, key=lambda r: max(abs(ratio) / r, r / abs(ratio)))
        if left > doubt * (0.1 if free else 1.0) or max(abs(ratio) / snapped, snapped / abs(ratio)) > 1.1:
            continue
        exponent = 0.0
        if free:
            e, _ = _share_left(a - np.sign(ratio) * snapped * b, offset)
            exponent = round(2 * e) / 2
            if abs(e - exponent) > 0.1:
                continue
        yield from _merged(coordinates, i, j, "log", float(np.sign(ratio)) * snapped, exponent, float(left), writer)


def _merged(
    coordinates: Coordinates, i: int, j: int, kind: str, ratio: float, exponent: float, doubt: float, writer: Writer
) -> Iterator[Change]:
    """One coordinate for two; `exponent` is that of x_i as a factor of the target."""
    x, y = coordinates.values[i], coordinates.values[j]
    a, b = coordinates.nodes[i], coordinates.nodes[j]
    try:
        if kind == "log":
            # Whole exponents where there are some: x^2 * y rather than x * y^(1/2).
            scale = next(s for s in (1, 2, 3) if abs(s * ratio - round(s * ratio)) < 1e-9)
            p, q = float(round(scale * ratio)), float(scale)
            with np.errstate(all="ignore"):
                nodes, values = writer.product([(a, p), (b, q)]), power(x, p) * power(y, q)
        elif kind == "square":
            a2, b2 = writer.power(a, 2.0), writer.power(b, 2.0)
            nodes, values = (
                (writer.add(a2, b2), x * x + y * y) if ratio > 0 else (writer.subtract(a2, b2), x * x - y * y)
            )
        else:
            nodes, values = (writer.add(a, b), x + y) if ratio > 0 else (writer.subtract(a, b), x - y)
    except Unwritable:
        return
    if np.isfinite(values).all() and np.ptp(values) > 0 and not (exponent % 1 and (x < 0).any()):
        if exponent and (x == 0).any():
            return
        yield Change(doubt, coordinates.divided_by(i, exponent).without([i, j]).with_one(nodes, values), True)


def _share_left(vector: Floats, direction: Floats) -> tuple[float, float]:
    """Coefficient of a direction in a vector, and the share of the vector's square that it leaves."""
    length = float(dot(direction, direction))
    coefficient = float(dot(vector, direction)) / length if length > 0 else 0.0
    if not np.isfinite([length, coefficient]).all():
        return 0.0, 1.0
    rest, size = vector - coefficient * direction, float(dot(vector, vector))
    return coefficient, float(dot(rest, rest)) / size if size > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A polynomial fitted to rows.

    Parameters
    ----------
    explained : float
        Share of the response's variance.
    fitted : ndarray of shape (n_rows,)
    gradient : ndarray of shape (n_variables, n_rows)
    inner : ndarray of shape (n_rows,), bool
        Rows away from the edge of the data, where polynomials go astray.
    """

    explained: float
    fitted: Floats
    gradient: Floats
    inner: Mask

    @classmethod
    def of_each(cls, values: Floats, responses: Floats, weights: Floats) -> list[Surrogate]:
        """Fit each response, shape (n_responses, n_rows), by a polynomial of the highest degree that the rows are
        enough for."""
        d, n = values.shape
        weights = weights / weights.sum()
        means = dot(values, weights)
        spreads = np.sqrt(dot((values - means[:, None]) ** 2, weights))
        spreads = np.where(spreads > 0, spreads, 1)
        units = (values - means[:, None]) / spreads[:, None]
        polynomial = _Polynomial.of(d, int(n / ROWS_A_TERM))
        terms = polynomial.terms(units)
        scales = np.sqrt(dot(terms * terms, weights))
        scales = np.where(scales > 0, scales, 1)
        scaled = terms / scales[:, None]
        weighed = scaled * weights
        solutions = solved(arrays.inner(weighed, scaled), arrays.inner(responses, weighed), RIDGE)
        inner = np.asarray((np.abs(units) < INNER).all(axis=0))
        if inner.sum() < min(50, n):
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
class _Polynomial:
    """The terms of a polynomial, each of which is an earlier one times a variable; the first is 1.

    Parameters
    ----------
    steps : tuple of (int, int)
        The earlier term and the variable, for each term but the first.
    exponents, lowered : ndarray of shape (n_terms, n_variables), int64
        Exponents of each term; which term it is with one less of a variable, 0 where it has none of it.
    """

    steps: tuple[tuple[int, int], ...]
    exponents: Indices
    lowered: Indices

    @classmethod
    @cache
    def of(cls, variables: int, most: int) -> _Polynomial:
        """That of the highest degree with few enough terms."""
        factors: list[tuple[int, ...]] = [()]
        for degree in range(1, DEGREE + 1):
            more = list(combinations_with_replacement(range(variables), degree)) if variables**degree < 10**6 else None
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

    def terms(self, variables: Floats) -> Floats:
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
