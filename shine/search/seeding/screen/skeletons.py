"""Skeletons: formulas without their constants, which a regression on the training rows completes.

The regression is of a view on a sum of terms, or on a quotient of two sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from shine.base.typing import Floats, Mask
from shine.compiler.arrays import Regression, dot, log, power
from shine.search.seeding.bank.formula_writer import Factor, Nodes, Unwritable, Writer
from shine.search.seeding.screen import target_views
from shine.search.seeding.screen.target_views import Chain

NO_CONSTANT = 1e-12
"""Constant of a divisor, as a share of the divisor's mean, that is rounding. It stands for 0, so that the constant can
be scaled to 1."""


def quotient_of_sums(
    above: Sequence[Floats], below: Sequence[Floats], view: Floats, weights: Floats, with_intercept: bool
) -> Floats | None:
    """Coefficients for which ``(sum of terms + intercept) / (1 + sum of divisors)`` explains a view.

    Parameters
    ----------
    above, below : sequence of ndarray of shape (n_rows,)
        The terms and the divisors.
    view, weights : ndarray of shape (n_rows,)
    with_intercept : bool

    Returns
    -------
    ndarray of shape (n_terms + 1 + n_divisors,), or None
        Coefficients of the terms, the intercept (0 without one), and coefficients of the divisors; None if there is
        no solution in finite numbers.

    Notes
    -----
    With divisors, the linear equation ``view = sum - view * divisors`` is weighted by the inverse of the divisor found
    before, so that in the end the errors of the view are small (Sanathanan and Koerner 1963). Meanwhile the divisors
    are centered: if one is nearly constant, ``view * divisor`` is nearly the view itself and would explain it.
    """
    n, divisor = len(above), np.ones_like(view)
    ones = [np.ones_like(view)] if with_intercept else []
    means = np.array([np.mean(v) for v in below])
    centered = [v - mean for v, mean in zip(below, means, strict=True)]
    design = np.stack([*above, *ones, *(-view * v for v in centered)])
    if not np.isfinite(design).all() or not np.isfinite(view).all():
        return None
    found = np.zeros(n + 1 + len(below))
    # Regressions of a quotient, each weighted by the divisor found before: more hardly change it.
    for _ in range(4 if below else 1):
        root = np.sqrt(weights) / np.abs(divisor)
        regression = Regression.of(design * root)
        if not np.isfinite(root).all() or not regression.kept.any():
            return None
        solution = regression.coefficients(view * root)
        found[:n], found[n + 1 :] = solution[:n], solution[len(solution) - len(below) :] if below else []
        found[n] = solution[n] if with_intercept else 0.0
        divisor = sum((c * v for c, v in zip(found[n + 1 :], centered, strict=True)), np.ones_like(view))
    rest = 1 - float(dot(found[n + 1 :], means))
    found /= rest if abs(rest) > NO_CONSTANT else NO_CONSTANT
    return found if np.isfinite(found).all() else None


def squared_error(
    coefficients: Floats, above: Sequence[Floats], below: Sequence[Floats], view: Floats, weights: Floats
) -> float:
    """Weighted mean of the squared errors that a quotient of sums makes."""
    n = len(above)
    numerator = sum((c * v for c, v in zip(coefficients[:n], above, strict=True)), np.full_like(view, coefficients[n]))
    denominator = sum((c * v for c, v in zip(coefficients[n + 1 :], below, strict=True)), np.ones_like(view))
    return float((weights * (numerator / denominator - view) ** 2).sum() / weights.sum())


def variance(view: Floats, weights: Floats) -> float:
    """Weighted variance of a view."""
    mean = (weights * view).sum() / weights.sum()
    return float((weights * (view - mean) ** 2).sum() / weights.sum())


NEGLIGIBLE = 1e-8
"""Standard deviation of a term, as a share of the whole sum's, below which it is left out."""

ROUNDING = 1e-26
"""Squared error, as a share of the variance, that is rounding."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that constants are fitted on.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows)
    target, weights : ndarray of shape (n_rows,)
        The weights add up to 1.
    """

    columns: Floats
    target: Floats
    weights: Floats


@dataclass(frozen=True)
class SumSkeleton:
    """``chain(y / multiplier) = (sum of terms + intercept) / (1 + sum of divisors)``, with unknown coefficients.

    Parameters
    ----------
    kind : str
        The kind of formula, as the search that found it names it.
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
        """The formula with its constants, with and without an intercept; only without if that is as good.

        The regression minimizes errors of the view. Their weights make them errors of the target, to first order.
        """
        factor = np.ones_like(rows.target) if self.multiplier is None else values[self.multiplier]
        scaled = rows.target / factor
        view = target_views.forward(self.chain, scaled)
        weights = rows.weights * (factor / target_views.slope(self.chain, scaled)) ** 2
        above = [values[term] for term in self.terms]
        below = [values[term] for term in self.divisors]
        forms = []
        for with_intercept in (True, False):
            coefficients = quotient_of_sums(above, below, view, weights, with_intercept)
            if coefficients is None:
                continue
            forms.append((squared_error(coefficients, above, below, view, weights), coefficients))
        if not forms:
            return []
        spread = variance(view, weights)
        (with_one, _), (without, _) = forms[0], forms[-1]
        # An intercept must lower the squared error by this share, divided by the number of rows: less is noise.
        if without <= with_one * (1 + 6.0 / len(view)) + ROUNDING * spread:
            forms = forms[-1:]
        return [self._written(c, above, below, writer, linear_scaling, spread) for _, c in forms]

    def _written(
        self,
        coefficients: Floats,
        above: Sequence[Floats],
        below: Sequence[Floats],
        writer: Writer,
        linear_scaling: bool,
        spread: float,
    ) -> Nodes:
        """The formula with these coefficients, without negligible terms."""
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
        shifted = linear_scaling and not self.divisors and self._adds_nothing(own, above)
        leads = np.ones(1)
        if linear_scaling and target_views.homogeneous(self.chain):
            leads = _leads(own) if self.chain else _leads(own) * np.sign(own[np.flatnonzero(own)[0]])
        scaled = [np.array([*own, 0.0 if shifted else intercept]) / lead for lead in leads.tolist()]
        # Division by a tiny coefficient can overflow.
        scaled = [form for form in scaled if np.isfinite(form).all() and np.isfinite(under).all()]
        forms = [
            partial(writer.linear, self.terms, form[:n].tolist(), float(form[n]), shifted=shifted) for form in scaled
        ]
        numerator = writer.shortest(*forms)
        if under.any():
            numerator = writer.divide(numerator, writer.linear(self.divisors, under.tolist(), one))
        result = target_views.write(self.chain, writer, numerator)
        return result if self.multiplier is None else writer.multiply(self.multiplier, result)

    def _adds_nothing(self, coefficients: Floats, above: Sequence[Floats]) -> bool:
        """Whether linear scaling makes an intercept superfluous: it adds one, or a factor for that of an exponent."""
        if not self.chain:
            return self.multiplier is None
        total = sum((c * v for c, v in zip(coefficients, above, strict=True)), np.zeros(1))
        # Largest exponent of an exponential that is written without the intercept that keeps it small.
        return self.chain[0].name == "exp" and len(self.chain) == 1 and bool(np.abs(total).max() < 300.0)


@dataclass(frozen=True)
class ProductSkeleton:
    """``chain(y / multiplier) = constant * product of powers of factors and bases``, with unknown exponents.

    Parameters
    ----------
    kind : str
        The kind of formula, as the search that found it names it.
    chain : Chain
    multiplier : Nodes, optional
    factors : tuple of Nodes
    bases : tuple of Nodes
        Formulas whose powers make the monomial.
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
        """The formula with its exponents, found by a regression of logarithms.

        Exponents are rounded to halves; to halves, thirds or quarters; and also kept as found, if the set can write
        them. Those of exponentials are never rounded.
        """
        factor = np.ones_like(rows.target) if self.multiplier is None else values[self.multiplier]
        scaled = rows.target / factor
        view = target_views.forward(self.chain, scaled)
        own = [values[nodes] for nodes in (*self.factors, *self.bases)]
        columns = [log(np.abs(v)) for v in own]
        with np.errstate(all="ignore"):
            weights = rows.weights * (view * factor / target_views.slope(self.chain, scaled)) ** 2
        found = quotient_of_sums(columns, [], log(np.abs(view)), weights, True)
        if found is None:
            return []
        forms = self._exponents(found[:-1], self._significant(columns, view, weights), writer)
        written = []
        for form in dict(zip((tuple(form.tolist()) for form in forms), forms, strict=True)).values():
            try:
                written.append(self._written(form, own, view, weights, writer, linear_scaling))
            except Unwritable:
                continue
        return list(dict.fromkeys(written))

    def _exponents(self, found: Floats, significant: Mask, writer: Writer) -> list[Floats]:
        """Rounded exponents, to halves and to simple fractions, and those found, without what may be chance."""
        continuous = np.array([writer.is_exponential(nodes) for nodes in (*self.factors, *self.bases)], bool)
        halves, thirds, quarters = (np.round(n * found) / n for n in (2, 3, 4))
        simple = halves
        for other in (thirds, quarters):
            # A less simple fraction must be closer to an exponent by this factor to replace a simpler one.
            simple = np.where(np.abs(other - found) < 0.7 * np.abs(simple - found), other, simple)
        forms = [np.where(continuous, found, form) for form in (halves, simple)]
        return [*forms, np.where(significant, found, 0.0), np.where(significant | continuous, forms[1], 0.0)]

    def _significant(self, columns: Sequence[Floats], view: Floats, weights: Floats) -> Mask:
        """Whether each exponent is some standard errors away from zero."""
        root = np.sqrt(weights)
        logs = log(np.abs(view)) * root
        regression = Regression.of(np.stack([*columns, np.ones_like(view)]) * root)
        rest = regression.rest(logs)
        errors = np.sqrt(dot(rest, rest) * regression.variances / max(len(view) - len(columns) - 1, 1))
        # An exponent that is fewer standard errors from zero may be chance.
        significant: Mask = np.abs(regression.coefficients(logs)) > 2.0 * errors
        return significant[:-1]

    def _written(
        self,
        exponents: Floats,
        own: Sequence[Floats],
        view: Floats,
        weights: Floats,
        writer: Writer,
        linear_scaling: bool,
    ) -> Nodes:
        """The formula with these exponents and the constant that fits best."""
        factors: list[Factor] = []
        product = np.ones_like(view)
        for nodes, values, exponent in zip((*self.factors, *self.bases), own, exponents.tolist(), strict=True):
            if exponent % 1 and (values < 0).all():
                nodes, values = writer.negate(nodes), -values
            factors.append((nodes, exponent))
            product = product * power(values, exponent)
        coefficient = 1.0
        if not linear_scaling or not target_views.homogeneous(self.chain):
            # For small errors, the relative error of a product is the error of its logarithm.
            use = weights / np.maximum(view**2, np.finfo(np.float64).tiny)
            coefficient = float((use * view * product).sum() / (use * product**2).sum())
        elif (view * product < 0).all():
            coefficient = -1.0 if self.chain else 1.0
        if not np.isfinite(coefficient):
            raise Unwritable
        result = target_views.write(self.chain, writer, writer.product(factors, coefficient))
        return result if self.multiplier is None else writer.multiply(self.multiplier, result)


@dataclass(frozen=True)
class RefinedSkeleton:
    """A skeleton whose formulas have constants inside that are only near the right ones."""

    start: SumSkeleton | ProductSkeleton

    @property
    def kind(self) -> str:
        """The kind of formula."""
        return self.start.kind

    @property
    def parts(self) -> tuple[Nodes, ...]:
        """Formulas whose values the regression needs."""
        return self.start.parts

    def complete(self, rows: Rows, values: Mapping[Nodes, Floats], writer: Writer, linear_scaling: bool) -> list[Nodes]:
        """The formulas that the fits of the constants begin with."""
        return self.start.complete(rows, values, writer, linear_scaling)


Skeleton = SumSkeleton | ProductSkeleton | RefinedSkeleton


def _leads(coefficients: Floats) -> Floats:
    """Absolute values that coefficients may be divided by, to scale one to 1: the first, and the most frequent ones."""
    sizes = np.abs(coefficients[np.flatnonzero(coefficients)])
    alike = np.abs(sizes - sizes[:, None]) <= NEGLIGIBLE * sizes
    first = alike.argmax(axis=1)
    frequent = sorted(set(first.tolist()), key=lambda i: (-int(np.count_nonzero(first == i)), i))
    # Most coefficients, besides the first, that are tried as the one scaled to 1.
    return sizes[sorted({0, *frequent[:2]})]


def _divisor(coefficients: Floats, values: Sequence[Floats]) -> tuple[float, Floats]:
    """The constant and the coefficients of a divisor without negligible terms.

    The constant is 1. If it is negligible itself, it is 0, and the largest coefficient is scaled to 1.
    """
    sizes = np.array([abs(c) * np.sqrt(np.mean(v * v)) for c, v in zip(coefficients, values, strict=True)])
    largest = float(sizes.max(initial=1.0))
    coefficients = np.where(sizes > NEGLIGIBLE * largest, coefficients, 0)
    if largest * NEGLIGIBLE < 1:
        return 1.0, coefficients
    return 0.0, coefficients / np.abs(coefficients).max()
