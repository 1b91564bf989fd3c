"""The screen: a target and a bank on the screened rows, prepared for the searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shine.arrays import dot, log
from shine.gp.seeding import views
from shine.gp.seeding.bank import Members
from shine.gp.seeding.proposals import Linear, Product, Proposal
from shine.gp.seeding.screening import Normalized, beyond_monomials, projector
from shine.gp.seeding.symmetries import Coordinates
from shine.gp.seeding.views import Chain
from shine.gp.seeding.writing import Nodes, Writer
from shine.lang.lazy import cached_property
from shine.typing import Floats, Indices, Singles

PROPOSED = 20
"""Proposals a search hands on."""

PRICE = 0.02
"""What a node more must at least gain, as a share of the error, to be proposed first."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A proposal and the share of the target's variance it leaves on the screened rows."""

    left: float
    size: int
    proposal: Callable[[], Proposal]


class Screen:
    """The target and the bank on the screened rows, with what several searches need of them.

    Parameters
    ----------
    members : Members
    coordinates : Coordinates
        What the members are made of, and the factor of the target, on the screened rows.
    bases : sequence of (Nodes, ndarray of shape (n_rows,))
        What monomials are made of.
    target, weights : ndarray of shape (n_rows,)
        Weights add up to 1.
    writer : Writer

    Attributes
    ----------
    chains, shifted : list of Chain
        Views of the target; those behind which products are looked for.
    values, sizes : ndarray of shape (n_members, ...)
        Of the bank's members.
    order : ndarray of shape (n_members,)
        Members, the cheapest first.
    normalized : Normalized
        The members' values.
    logs, log_lengths : ndarray of shape (n_members, n_rows) and (n_members,)
        What of the members' logarithms no monomial explains.
    powered : list of (Nodes, ndarray)
        What monomials are made of: that of the bases which has no zero.
    divisors : list of (float, int)
        Members that the target was divided by, with the share of its variance left then, the best first.
    simplest : int
        Members that were looked at in all combinations of three.
    """

    def __init__(
        self,
        members: Members,
        coordinates: Coordinates,
        bases: Sequence[tuple[Nodes, Floats]],
        target: Floats,
        weights: Floats,
        writer: Writer,
    ) -> None:
        self.members, self.weights, self.writer = members, weights, writer
        self._given = coordinates, bases, target, weights, writer
        self.coordinates, self.factor, self.factors = coordinates, coordinates.factor, coordinates.factors
        self.target = target / self.factor
        self.chains = views.chains(self.target, writer)
        self.shifted = views.shifted(self.target, writer)
        # Leave out columns that contain zero: they have no logarithm.
        self.powered = [(nodes, values) for nodes, values in bases if np.abs(values).min() > 0]
        self.bases = tuple(nodes for nodes, _ in self.powered)
        self.basis = projector([values for _, values in self.powered], weights)
        centered = target - dot(target, weights)
        self._unit = centered * np.sqrt(weights) / np.sqrt(dot(weights, centered**2))
        self.divisors: list[tuple[float, int]] = []
        self.simplest = 0
        self.refresh()

    def over(self, members: Members) -> Screen:
        """The same target with another bank."""
        return Screen(members, *self._given)

    def refresh(self) -> None:
        """Take notice of members that joined the bank."""
        count = self.members.count
        self.values = self.members.values[:count]
        self.sizes = self.members.sizes[:count]
        self.order = np.argsort(self.members.costs[:count], kind="stable")
        self.normalized = Normalized.of(self.values, self.weights)
        rest, lengths = beyond_monomials(self.values, self.basis, self.weights)
        self.logs, self.log_lengths = rest.astype(np.float32), lengths
        for cached in ("classes", "distinct"):
            self.__dict__.pop(cached, None)

    @cached_property
    def classes(self) -> Indices:
        """Members whose logarithms differ beyond monomials and powers, the smallest of each class."""
        return self._first_of_each(self.order[self.log_lengths[self.order] > 0], self.logs)

    @cached_property
    def distinct(self) -> Indices:
        """Members that are no affine function of one another, the smallest of each class."""
        return self._first_of_each(self.order[self.normalized.lengths[self.order] > 0], self.normalized.units)

    @property
    def alone(self) -> Indices:
        """Distinct members that depend on a single coordinate."""
        return self.distinct[self.members.alone[self.distinct] >= 0]

    @staticmethod
    def _first_of_each(order: Indices, units: Singles) -> Indices:
        rest = units[order]
        sign = np.sign(rest[np.arange(len(rest)), np.argmax(np.abs(rest[:, :8]), axis=1)])
        with np.errstate(over="ignore"):
            multipliers = np.arange(1, rest.shape[1] + 1, dtype=np.int64) * np.int64(0x1E3779B97F4A7C15) | 1
        _, first = np.unique(np.rint(rest * sign[:, None] * 2e4).astype(np.int64) @ multipliers, return_index=True)
        return order[np.sort(first)]

    def left(self, predictions: Floats) -> Floats:
        """Share of the target's variance left by the best line through each prediction, times the factor."""
        with np.errstate(all="ignore"):
            predictions = predictions * self.factor
            centered = (predictions - dot(predictions, self.weights)[:, None]) * np.sqrt(self.weights)
            squares = dot(centered, centered)
            residuals = dot(centered, self._unit)
            errors = centered - residuals[:, None] * self._unit
            # Seen from the prediction, the angle is the same.
            left = dot(errors, errors) / squares
        return np.where(np.isfinite(left), left, 1.0)

    def linear(
        self, kind: str, chain: Chain, divisor: Nodes | None, terms: Sequence[int], below: Sequence[int] = ()
    ) -> Linear:
        """The proposal that a view of the target, divided by something, is a sum of members, or a quotient of sums."""
        above, under = (tuple(self.members.nodes(m) for m in which) for which in (terms, below))
        return Linear(kind, chain, self._multiplier(divisor), above, under)

    def sum_of(self, kind: str, chain: Chain, terms: tuple[Nodes, ...]) -> Linear:
        """The proposal that a view of the target is a sum of formulas."""
        return Linear(kind, chain, self._multiplier(None), terms)

    def product(self, kind: str, chain: Chain, divisor: Nodes | None, factors: Sequence[int]) -> Product:
        """The proposal that a view of the target, divided by something, is a monomial times powers of members."""
        nodes = tuple(self.members.nodes(m) for m in factors)
        return Product(kind, chain, self._multiplier(divisor), nodes, self.bases)

    def _multiplier(self, divisor: Nodes | None) -> Nodes | None:
        """The factor of the target, times another."""
        factors = [*self.factors, *(() if divisor is None else ((divisor, 1.0),))]
        return self.writer.product(factors) if factors else None

    def nodes(self, member: int) -> Nodes:
        """A member as a formula."""
        return self.members.nodes(member)


def best(estimates: list[Estimate], most: int = PROPOSED) -> list[Estimate]:
    """The most promising estimates: the least error, and the least error at its price."""
    finite = [e for e in estimates if e.left < 0.999]
    left, sizes = np.array([e.left for e in finite]), np.array([e.size for e in finite])
    by_error, small = (
        [finite[i] for i in np.argsort(log(left + floor) + price * sizes, kind="stable").tolist()]
        for floor, price in ((1e-13, PRICE), (1e-6, 5 * PRICE))
    )
    chosen = dict.fromkeys([*by_error[: 2 * most // 3], *small[: most // 3]])
    return list(chosen)
