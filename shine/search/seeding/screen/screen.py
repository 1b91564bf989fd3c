"""The screen, which every search looks at: the target and a bank on the screened rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

import numpy as np

from shine.base.lazy import cached_property
from shine.base.typing import Floats, Indices, Singles
from shine.compiler.arrays import Regression, dot, log, power
from shine.search.seeding.bank.coordinates import Coordinates
from shine.search.seeding.bank.expression_bank import ExpressionBank
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable, Writer
from shine.search.seeding.fits.correlations import Normalized, beyond_monomials, monomial_basis
from shine.search.seeding.fits.target_errors import TargetErrors, together
from shine.search.seeding.screen import target_views
from shine.search.seeding.screen.skeletons import ProductSkeleton, SumSkeleton
from shine.search.seeding.screen.target_views import PROBE, Chain, View

HASH_STEP = np.int64(0x1E3779B97F4A7C15)
"""Multiples of this large odd number are the multipliers of a hash."""


class Screen:
    """The target and a bank on the screened rows, with facts about them that several searches need.

    Parameters
    ----------
    bank : ExpressionBank
    coordinates : Coordinates
        The leaves of the bank, and the factor of the target, on the screened rows.
    bases : sequence of (Nodes, ndarray of shape (n_rows,))
        Formulas whose powers are the factors of monomials; without zeros.
    target, weights : ndarray of shape (n_rows,)
        The weights add up to 1.
    writer : Writer

    Attributes
    ----------
    arguments : tuple
        What the screen was made of, besides the bank.
    target : ndarray of shape (n_rows,)
        Divided by the factor of the coordinates.
    chains : list of Chain
        Ways to see the target.
    product_chains : list of Chain
        Chains after which searches look for products.
    values, sizes : ndarray of shape (n_members, ...)
        Values and nodes of the members.
    order : ndarray of shape (n_members,)
        The members, the cheapest first.
    normalized : Normalized
        The members' values.
    logs, log_lengths : ndarray of shape (n_members, n_rows) and (n_members,)
        The part of the members' logarithms that no monomial explains.
    best_divisors : list of (float, int), optional
        Share of variance left unexplained after division of the target by a member, and that member; the best first.
        None until `factor_times_affine` has looked at these members.
    """

    def __init__(
        self,
        bank: ExpressionBank,
        coordinates: Coordinates,
        bases: Sequence[tuple[Nodes, Floats]],
        target: Floats,
        weights: Floats,
        writer: Writer,
    ) -> None:
        self.bank, self.coordinates, self.weights, self.writer = bank, coordinates, weights, writer
        self.arguments = coordinates, bases, target, weights, writer
        self.target = target / coordinates.factor
        self.chains = target_views.chains(self.target, writer)
        self.product_chains = target_views.product_chains(self.target, writer)
        self.bases = tuple(nodes for nodes, _ in bases)
        self.base_values = [values for _, values in bases]
        self.monomial_basis = monomial_basis(self.base_values, weights)
        self._errors = TargetErrors.of(target, weights)
        self._take_in()

    def refresh(self) -> None:
        """Take in the new members of the bank."""
        for cached in ("distinct_in_products", "distinct_in_sums"):
            self.__dict__.pop(cached, None)
        self._take_in()

    def _take_in(self) -> None:
        self.best_divisors: list[tuple[float, int]] | None = None
        self._slice()
        self.order = np.argsort(self.bank.costs[: self.bank.count], kind="stable")
        self.normalized = Normalized.of(self.values, self.weights)
        rest, lengths = beyond_monomials(self.values, self.monomial_basis, self.weights)
        self.logs, self.log_lengths = rest.astype(np.float32), lengths

    def _slice(self) -> None:
        count = self.bank.count
        self.values = self.bank.values[:count]
        self.sizes = self.bank.sizes[:count]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("values", "sizes")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._slice()  # views of the bank's arrays, which travel once

    @property
    def roots(self) -> list[Floats]:
        """Square roots of the weights of rows, for each kind of error: absolute, and relative for a wide target."""
        return [np.sqrt(weights) for weights in self._errors.weights]

    @property
    def merged(self) -> bool:
        """Whether coordinates are merged features: many are sums or products of these, and of them are many systems."""
        return bool(self.coordinates.factors) or any(len(nodes) > 1 for nodes in self.coordinates.nodes)

    @property
    def simple_views(self) -> list[View]:
        """The target through chains of at most one step."""
        return [View(chain) for chain in self.chains if len(chain) < 2]

    @cached_property
    def distinct_in_products(self) -> Indices:
        """The members; only the cheapest of those that are monomials times powers of each other."""
        return self._first_of_each(self.order[self.log_lengths[self.order] > 0], self.logs)

    @cached_property
    def distinct_in_sums(self) -> Indices:
        """The members; only the cheapest of those that are affine functions of each other."""
        return self._first_of_each(self.order[self.normalized.lengths[self.order] > 0], self.normalized.units)

    @staticmethod
    def _first_of_each(order: Indices, units: Singles) -> Indices:
        """Members in this order; only the first of those whose rows are equal or opposite after rounding."""
        rows = units[order]
        # Rows are multiplied by the sign of the largest of this many first values: opposite rows become equal.
        sign = np.sign(rows[np.arange(len(rows)), np.argmax(np.abs(rows[:, :8]), axis=1)])
        with np.errstate(over="ignore"):
            multipliers = np.arange(1, rows.shape[1] + 1, dtype=np.int64) * HASH_STEP | 1
        # Values of rows of length 1 are rounded to multiples of the inverse of this, then compared.
        rounded = np.rint(rows * sign[:, None] * 2e4).astype(np.int64)
        _, first = np.unique(rounded @ multipliers, return_index=True)
        return order[np.sort(first)]

    def unexplained(self, predictions: Floats) -> Floats:
        """Share of the target's variance that each prediction, times the factor, leaves unexplained by its best line.

        For a wide target, the geometric mean of that and of the same share for relative errors.

        Parameters
        ----------
        predictions : ndarray of shape (n, n_rows)
            Predictions of the target divided by the factor.

        Returns
        -------
        ndarray of shape (n,)
            1 where a number is not finite.
        """
        with np.errstate(all="ignore"):
            return together(self._errors.unexplained(predictions * self.coordinates.factor))

    def sum_skeleton(self, kind: str, view: View, terms: Sequence[int], divisors: Sequence[int] = ()) -> SumSkeleton:
        """A view as a sum of members, or as a quotient of such sums."""
        above, below = (tuple(self.bank.nodes(m) for m in which) for which in (terms, divisors))
        return SumSkeleton(kind, view.chain, self._multiplier(view.divisor), above, below)

    def sum_of_formulas(
        self,
        kind: str,
        chain: Chain,
        terms: tuple[Nodes, ...],
        divisor: Nodes | None = None,
        divisors: tuple[Nodes, ...] = (),
    ) -> SumSkeleton:
        """The target, divided by a formula, after a chain as a sum of formulas, or as a quotient of such sums."""
        return SumSkeleton(kind, chain, self._multiplier(divisor), terms, divisors)

    def product_skeleton(self, kind: str, view: View, factors: Sequence[int]) -> ProductSkeleton:
        """A view as a monomial times powers of members."""
        return self.product_of_formulas(kind, view, tuple(self.bank.nodes(m) for m in factors))

    def product_of_formulas(self, kind: str, view: View, factors: tuple[Nodes, ...]) -> ProductSkeleton:
        """A view as a monomial times powers of formulas."""
        return ProductSkeleton(kind, view.chain, self._multiplier(view.divisor), factors, self.bases)

    def _multiplier(self, divisor: Nodes | None) -> Nodes | None:
        """The factor of the target times the divisor of a view; None for 1."""
        factors = [*self.coordinates.factors, *(() if divisor is None else ((divisor, 1.0),))]
        return self.writer.product(factors) if factors else None


POWERS = (1.0, -1.0, 2.0, -2.0)
"""Powers of the divided target that are searched."""

Monomial = tuple[tuple[int, float], ...]
"""Pairs of a base, as its place in `Screen.bases`, and its exponent."""


def has_power(writer: Writer, values: Floats, exponent: float) -> bool:
    """Whether values can be raised to a power, and the inverse power can be written."""
    if exponent == 1:
        return True
    try:
        writer.power(PROBE, 1 / exponent)
    except Unwritable:
        return False
    with np.errstate(all="ignore"):
        finite = bool(np.isfinite(power(values, exponent)).all())
    return finite and (exponent % 2 == 1 or bool((values > 0).all() or (values < 0).all()))


def power_chain(exponent: float, sign: float) -> Chain:
    """The chain that raises a target of this sign to a power."""
    return () if exponent == 1 else (target_views.power(exponent, sign),)


def divided_views(screen: Screen, most: int) -> list[View]:
    """Views of the target divided by likely divisors, and raised to the powers that are searched."""
    found = []
    for nodes, values in likely_divisors(screen, most).items():
        divided = screen.target / values
        sign = -1.0 if (divided < 0).all() else 1.0
        found += [
            View(power_chain(exponent, sign), nodes, values)
            for exponent in POWERS
            if has_power(screen.writer, divided, exponent)
        ]
    return found


def likely_divisors(screen: Screen, most: int) -> dict[Nodes, Floats]:
    """Divisors with their values: likely monomials, and the members by which division helped most so far."""
    found: dict[Nodes, Floats] = {}
    for monomial in likely_monomials(screen, most):
        values = np.prod([power(screen.base_values[i], e) for i, e in monomial], axis=0)
        with suppress(Unwritable):
            found[screen.writer.product([(screen.bases[i], e) for i, e in monomial])] = values
    for _, g in (screen.best_divisors or [])[: max(most - len(found), most // 2)]:
        found[screen.bank.nodes(g)] = screen.values[g]
    return found


def likely_monomials(screen: Screen, most: int) -> list[Monomial]:
    """Monomials that may be factors of the target.

    If a feature is a factor and occurs nowhere else, its logarithm has a whole coefficient in the regression of log|y|,
    up to noise. Features whose coefficients come closest to a whole number are combined first.
    """
    logs = log(np.abs(screen.target))
    features = list(range(len(screen.bases)))
    if not features or not np.isfinite(logs).all():
        return []
    root = np.sqrt(screen.weights)
    columns = np.stack([np.ones(len(logs)), *(log(np.abs(values)) for values in screen.base_values)])
    regression = Regression.of(columns * root)
    rest = regression.rest(logs * root)
    errors = np.sqrt(dot(rest, rest) * regression.variances / max(len(logs) - len(columns), 1))[1:]
    coefficients = regression.coefficients(logs * root)[1:]
    ranked: list[tuple[float, tuple[int, float]]] = []
    for i, c, error in zip(features, coefficients.tolist(), errors.tolist(), strict=True):
        exponent = _likely_exponent(c, error)
        if exponent:
            # Added to standard errors, so that exact data does not rank exponents by rounding.
            ranked.append((abs(c - exponent) / (error + 0.02), (i, exponent)))
    powers = [pair for _, pair in sorted(ranked)]
    found = [powers[:count] for count in range(len(powers), 0, -1)]
    few = powers[:6]  # features whose combinations are all tried as divisors
    found += [list(subset) for count in range(len(few), 0, -1) for subset in combinations(few, count)]
    return list(dict.fromkeys(tuple(sorted(monomial)) for monomial in found))[:most]


def _likely_exponent(coefficient: float, error: float) -> float:
    """The nearest whole number other than 0 that a coefficient with this standard error may be; 0 if there is none."""
    nearest = float(np.round(coefficient))
    # Largest distance of a coefficient from its likely exponent: in standard errors, or absolute if that is larger
    allowed = max(3.5 * error, 0.15)
    for e in (nearest, nearest + 1, nearest - 1):
        if e and abs(e) <= 5 and abs(coefficient - e) <= allowed:  # largest absolute exponent of a feature in a divisor
            return e
    return 0.0
