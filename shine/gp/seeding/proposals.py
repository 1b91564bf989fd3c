"""Proposals: formulas known up to constants, which a linear regression completes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from shine.arrays import dot, log, power
from shine.gp.regression import Regression
from shine.gp.seeding import views
from shine.gp.seeding.views import Chain
from shine.gp.seeding.writing import Factor, Nodes, Unwritable, Writer
from shine.typing import Floats

NEGLIGIBLE = 1e-8
"""Share of the spread of the whole below which a term is left out."""

MOST_LEADS = 2
"""Coefficients that are tried as the one which is written as 1."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What proposals are completed on.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows)
    target, weights : ndarray of shape (n_rows,)
        Weights add up to 1.
    """

    columns: Floats
    target: Floats
    weights: Floats


@dataclass(frozen=True)
class Linear:
    """``chain(y / multiplier) = (sum of terms + intercept) / (1 + sum of divisors)``.

    Parameters
    ----------
    kind : str
        The search that proposes it.
    chain : Chain
    multiplier : Nodes, optional
    terms, divisors : tuple of Nodes
    """

    kind: str
    chain: Chain
    multiplier: Nodes | None
    terms: tuple[Nodes, ...]
    divisors: tuple[Nodes, ...] = ()

    @property
    def parts(self) -> tuple[Nodes, ...]:
        """Formulas whose values the regression needs."""
        return (*self.terms, *self.divisors, *(() if self.multiplier is None else (self.multiplier,)))

    def complete(self, rows: Rows, values: Mapping[Nodes, Floats], writer: Writer, linear_scaling: bool) -> list[Nodes]:
        """The formula with its constants, or several that differ in what is left out of it.

        The regression minimizes errors of the view, weighted by how much of them arrives at the target.
        """
        factor = np.ones_like(rows.target) if self.multiplier is None else values[self.multiplier]
        scaled = rows.target / factor
        view = views.forward(self.chain, scaled)
        weights = rows.weights * (factor / views.slope(self.chain, scaled)) ** 2
        above = [values[term] for term in self.terms]
        below = [values[term] for term in self.divisors]
        forms = []
        for with_intercept in (True, False):
            coefficients = _regression(above, below, view, weights, with_intercept)
            if coefficients is None:
                continue
            errors = _error(coefficients, above, below, view, weights)
            forms.append((errors, coefficients))
        if not forms:
            return []
        # An intercept that explains nothing is noise.
        keep = (
            [forms[-1]] if forms[-1][0] <= forms[0][0] * (1 + 6 / len(view)) + 1e-26 * _spread(view, weights) else forms
        )
        spread = _spread(view, weights)
        return [self._written(c, above, below, writer, linear_scaling, spread) for _, c in keep]

    def _written(
        self,
        coefficients: Floats,
        above: Sequence[Floats],
        below: Sequence[Floats],
        writer: Writer,
        linear_scaling: bool,
        spread: float,
    ) -> Nodes:
        n = len(self.terms)
        one, under = _divisor(coefficients[n + 1 :], below)
        if not one:
            coefficients = coefficients / np.abs(coefficients[n + 1 :]).max()
        own, intercept = coefficients[:n].copy(), float(coefficients[n])
        for i, values in enumerate(above):
            if abs(own[i]) * np.std(values) <= NEGLIGIBLE * np.sqrt(spread):
                own[i] = 0.0
        if abs(intercept) <= NEGLIGIBLE * np.sqrt(spread):
            intercept = 0.0
        if not own.any():
            raise Unwritable
        # Linear scaling then adds whatever constant there is.
        shifted = linear_scaling and not self.chain and self.multiplier is None and not self.divisors
        leads = np.ones(1)
        if linear_scaling and views.homogeneous(self.chain):
            leads = _leads(own) if self.chain else _leads(own) * np.sign(own[np.flatnonzero(own)[0]])
        scaled = [np.array([*own, 0.0 if shifted else intercept]) / lead for lead in leads.tolist()]
        # Dividing by a tiny coefficient can overflow.
        scaled = [form for form in scaled if np.isfinite(form).all() and np.isfinite(under).all()]
        forms = [
            partial(writer.linear, self.terms, form[:n].tolist(), float(form[n]), shifted=shifted) for form in scaled
        ]
        numerator = writer.shortest(*forms)
        if under.any():
            numerator = writer.divide(numerator, writer.linear(self.divisors, under.tolist(), one))
        result = views.write(self.chain, writer, numerator)
        return result if self.multiplier is None else _times(writer, self.multiplier, result)


@dataclass(frozen=True)
class Product:
    """``chain(y / multiplier) = constant * product of powers of factors and features``.

    Parameters
    ----------
    kind : str
        The search that proposes it.
    chain : Chain
    multiplier : Nodes, optional
    factors : tuple of Nodes
    bases : tuple of Nodes
        What the monomial is made of.
    """

    kind: str
    chain: Chain
    multiplier: Nodes | None
    factors: tuple[Nodes, ...]
    bases: tuple[Nodes, ...]

    @property
    def parts(self) -> tuple[Nodes, ...]:
        """Formulas whose values the regression needs."""
        return (*self.factors, *self.bases, *(() if self.multiplier is None else (self.multiplier,)))

    def complete(self, rows: Rows, values: Mapping[Nodes, Floats], writer: Writer, linear_scaling: bool) -> list[Nodes]:
        """The formula with its exponents, found by regression of logarithms and rounded to halves, or to sixths where
        the set has a function for them; also with exponents as they are, if it has `pow`."""
        factor = np.ones_like(rows.target) if self.multiplier is None else values[self.multiplier]
        scaled = rows.target / factor
        view = views.forward(self.chain, scaled)
        own = [values[nodes] for nodes in (*self.factors, *self.bases)]
        columns = [log(np.abs(v)) for v in own]
        with np.errstate(all="ignore"):
            weights = rows.weights * (view * factor / views.slope(self.chain, scaled)) ** 2
        found = _regression(columns, [], log(np.abs(view)), weights, True)
        if found is None:
            return []
        exponents = found[:-1]
        forms = [np.round(2 * exponents) / 2]
        if writer.has("pow") or writer.has("cbrt"):
            thirds = np.round(3 * exponents) / 3
            forms.append(np.where(np.abs(thirds - exponents) < np.abs(forms[0] - exponents), thirds, forms[0]))
        if writer.has("pow"):
            forms.append(exponents)
        written = []
        for form in forms:
            try:
                written.append(self._written(form, own, view, weights, writer, linear_scaling))
            except Unwritable:
                continue
        return list(dict.fromkeys(written))

    def _written(
        self,
        exponents: Floats,
        own: Sequence[Floats],
        view: Floats,
        weights: Floats,
        writer: Writer,
        linear_scaling: bool,
    ) -> Nodes:
        factors: list[Factor] = []
        product = np.ones_like(view)
        for nodes, values, exponent in zip((*self.factors, *self.bases), own, exponents.tolist(), strict=True):
            if exponent % 1 and (values < 0).all():
                nodes, values = writer.negate(nodes), -values
            factors.append((nodes, exponent))
            product = product * power(values, exponent)
        coefficient = 1.0
        if not linear_scaling or not views.homogeneous(self.chain):
            # Near the view itself, relative errors of a product are errors of its logarithm.
            use = weights / np.maximum(view**2, np.finfo(np.float64).tiny)
            coefficient = float((use * view * product).sum() / (use * product**2).sum())
        elif (view * product < 0).all():
            coefficient = -1.0 if self.chain else 1.0
        if not np.isfinite(coefficient):
            raise Unwritable
        result = views.write(self.chain, writer, writer.product(factors, coefficient))
        return result if self.multiplier is None else _times(writer, self.multiplier, result)


Proposal = Linear | Product


def _times(writer: Writer, multiplier: Nodes, other: Nodes) -> Nodes:
    return writer.multiply(multiplier, other)


def _leads(coefficients: Floats) -> Floats:
    """Sizes of coefficients by which the others may be divided: the first one, and the most frequent ones."""
    sizes = np.abs(coefficients[np.flatnonzero(coefficients)])
    alike = np.abs(sizes - sizes[:, None]) <= NEGLIGIBLE * sizes
    first = alike.argmax(axis=1)
    frequent = sorted(set(first.tolist()), key=lambda i: (-int(np.count_nonzero(first == i)), i))
    return sizes[sorted({0, *frequent[:MOST_LEADS]})]


def _divisor(coefficients: Floats, values: Sequence[Floats]) -> tuple[float, Floats]:
    """The constant of a divisor and its coefficients, without what is negligible; the constant is 1 or that."""
    sizes = np.array([abs(c) * np.sqrt(np.mean(v * v)) for c, v in zip(coefficients, values, strict=True)])
    largest = float(sizes.max(initial=1.0))
    coefficients = np.where(sizes > NEGLIGIBLE * largest, coefficients, 0)
    if largest * NEGLIGIBLE < 1:
        return 1.0, coefficients
    return 0.0, coefficients / np.abs(coefficients).max()


def _spread(view: Floats, weights: Floats) -> float:
    mean = (weights * view).sum() / weights.sum()
    return float((weights * (view - mean) ** 2).sum() / weights.sum())


def _error(
    coefficients: Floats, above: Sequence[Floats], below: Sequence[Floats], view: Floats, weights: Floats
) -> float:
    n = len(above)
    numerator = sum((c * v for c, v in zip(coefficients[:n], above, strict=True)), np.full_like(view, coefficients[n]))
    denominator = sum((c * v for c, v in zip(coefficients[n + 1 :], below, strict=True)), np.ones_like(view))
    return float((weights * (numerator / denominator - view) ** 2).sum() / weights.sum())


def _regression(
    above: Sequence[Floats], below: Sequence[Floats], view: Floats, weights: Floats, with_intercept: bool
) -> Floats | None:
    """Coefficients of the terms, the intercept, and the coefficients of the divisors; None if there are none.

    With divisors the linear equation ``view = sum - view * divisors`` is weighted by the inverse of the divisor found
    before, so that in the end it is errors of the view that are small (Sanathanan and Koerner 1963). The divisors count
    from their means meanwhile: the view times one that hardly varies would explain the view.
    """
    n, divisor = len(above), np.ones_like(view)
    ones = [np.ones_like(view)] if with_intercept else []
    means = np.array([np.mean(v) for v in below])
    centered = [v - mean for v, mean in zip(below, means, strict=True)]
    design = np.stack([*above, *ones, *(-view * v for v in centered)])
    if not np.isfinite(design).all() or not np.isfinite(view).all():
        return None
    found = np.zeros(n + 1 + len(below))
    for _ in range(4 if below else 1):
        root = np.sqrt(weights) / np.abs(divisor)
        regression = Regression.of(design * root)
        if not np.isfinite(root).all() or not regression.kept.any():
            return None
        solution = regression.coefficients(view * root)
        found[:n], found[n + 1 :] = solution[:n], solution[len(solution) - len(below) :] if below else []
        found[n] = solution[n] if with_intercept else 0.0
        divisor = sum((c * v for c, v in zip(found[n + 1 :], centered, strict=True)), np.ones_like(view))
    found /= 1 - float(dot(found[n + 1 :], means))
    return found if np.isfinite(found).all() else None
