"""The order in which a bank grows: first all expressions by cost, then larger ones of kinds that are common in laws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product

import numpy as np

from shine.base.typing import Floats, Indices
from shine.compiler.arrays import apply, exp, log, power
from shine.lang.forms.facts import names_where
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import CONSTANT
from shine.search.seeding.bank.expression_bank import (
    ALGEBRAIC,
    COMMUTATIVE,
    NESTING_COST,
    ExpressionBank,
)
from shine.search.seeding.bank.formula_writer import Nodes, Unwritable, Writer, constant

COST_OF_PRODUCT = 0.5
"""Cost of a factor, besides its own."""


@dataclass(frozen=True)
class Term:
    """A term with its values.

    Parameters
    ----------
    cost : float
        How unlikely it is in a law, in nodes.
    above : Nodes
        Its numerator.
    values : ndarray of shape (n_rows,)
    below : Nodes, optional
        Its divisor: c/exp(x) is shorter than c*exp(-x).
    """

    cost: float
    above: Nodes
    values: Floats
    below: Nodes | None = None

    def nodes(self, writer: Writer) -> Nodes:
        """The term as a formula."""
        return self.above if self.below is None else writer.divide(self.above, self.below)

    def times(self, other: Term, writer: Writer) -> Term:
        """The product of two terms."""
        divisors = [each.below for each in (self, other) if each.below is not None]
        return Term(
            self.cost + other.cost + COST_OF_PRODUCT,
            writer.multiply(self.above, other.above),
            self.values * other.values,
            reduce(writer.multiply, divisors) if divisors else None,
        )


@dataclass(frozen=True)
class Function:
    """A function that is part of many laws, or its inverse; it has no constant that a fit could change."""

    cost: float
    values: Callable[[Floats], Floats]
    write: Callable[[Writer, Nodes], Nodes]
    inverse: bool = False

    def of(self, argument: Term, writer: Writer) -> Term:
        """The function of a coordinate."""
        nodes = self.write(writer, argument.above)
        with np.errstate(all="ignore"):
            values = self.values(argument.values)
            return Term(self.cost, ONE, 1 / values, nodes) if self.inverse else Term(self.cost, nodes, values)


def _power(exponent: float, cost: float) -> Function:
    return Function(cost, lambda z: power(z, exponent), lambda w, n: w.power(n, exponent))


def _wave(name: str) -> Function:
    return Function(4.0, lambda z: apply(STANDARD[name], power(z, 0.5)), lambda w, n: w.call(name, w.power(n, 0.5)))


ONE = constant(1.0)

COMPOSED = (
    _power(2.0, 2.0),
    Function(2.0, lambda z: z, lambda w, n: n, inverse=True),
    Function(2.0, exp, lambda w, n: w.call("exp", n), inverse=True),
    _power(3.0, 3.0),
    _power(1 / 3, 3.0),
    _power(2 / 3, 3.0),
    Function(3.0, lambda z: log(1 + z), lambda w, n: w.call("log", w.add(n, ONE))),
    _power(0.25, 4.0),
    _power(0.75, 4.0),
    Function(4.0, lambda z: 1 + z, lambda w, n: w.add(n, ONE), inverse=True),
    Function(4.0, lambda z: exp(z * z), lambda w, n: w.call("exp", w.power(n, 2.0)), inverse=True),
    _wave("sin"),
    _wave("cos"),
    Function(5.0, lambda z: 1 + z * z, lambda w, n: w.add(w.power(n, 2.0), ONE), inverse=True),
)
"""Functions of one coordinate, besides those of the primitive set."""

COST_OF_FUNCTION, COST_OF_COORDINATE, COST_OF_SQUARE = 2.0, 1.0, 2.0
"""Costs of a function of the set, and of a coordinate and its square as factors."""


def simple_terms(values: Floats, nodes: tuple[Nodes, ...], unary: list[str], writer: Writer, most: int) -> list[Term]:
    """Functions of each coordinate, times it and its square, and times functions of another; the likely ones first.

    Parameters
    ----------
    values : ndarray of shape (n_coordinates, n_rows)
    nodes : tuple of Nodes
        The coordinates as formulas.
    unary : list of str
        Functions of the primitive set that terms may have.
    writer : Writer
    most : int
        Most terms.
    """
    coordinates = [Term(COST_OF_COORDINATE, own, row) for own, row in zip(nodes, values, strict=True)]
    families = [[each, *_functions(each, unary, writer)] for each in coordinates]
    found: list[tuple[Term, ...]] = [(term,) for family in families for term in family]
    with suppress(Unwritable):
        for (own, *functions), family in zip(families, families, strict=True):
            square = Term(COST_OF_SQUARE, writer.power(own.above, 2.0), own.values * own.values)
            found += [(own, term) for term in functions] + [(square, term) for term in family]
        for first, second in combinations(families, 2):
            found += product(first, second)
        found += combinations(coordinates, 3)
    found.sort(key=lambda factors: sum(term.cost + COST_OF_PRODUCT for term in factors))
    with suppress(Unwritable):
        return [reduce(lambda one, other: one.times(other, writer), factors) for factors in found[:most]]
    return [factors[0] for factors in found if len(factors) == 1]


def _functions(of: Term, unary: list[str], writer: Writer) -> Iterator[Term]:
    """Functions of a coordinate that can be written."""
    primitives = writer.primitives
    for name in unary:
        values = apply(primitives.function(primitives.function_codes[name]), of.values)
        yield Term(COST_OF_FUNCTION, writer.call(name, of.above), values)
    for function in COMPOSED:
        with suppress(Unwritable):
            term = function.of(of, writer)
            term.nodes(writer)  # a set may lack division
            # A term with a pole between the rows is no part of a law that they are values of.
            if not function.inverse or (term.values > 0).all() or (term.values < 0).all():
                yield term


LEFT_OUT = names_where(lambda facts: facts.family in ("comparison", "logic", "remainder"))
"""Functions that no member has: they take few values, so most would equal another member on the rows."""

CONSTANTS = (1.0, 2.0, np.pi)
"""Constants that are members."""

FACTORS = (-1.0, 2.0, -2.0, 0.5, np.pi, 2 * np.pi, 1 / (2 * np.pi))
"""Constants that monomials are multiplied by within a function."""

COMPLETE_COST = 4
"""Cost up to which all expressions become members before larger ones of certain kinds do."""

SMALL_MONOMIALS, MOST_SMALL_MONOMIALS = 3, 2000
"""Most leaves in a monomial of the first round; most pairs tried for each number of leaves and each function."""

LARGE_MONOMIALS, MOST_LARGE_MONOMIALS = 5, 4000
"""The same in the third round."""

MOST_FUNCTIONS_OF_MONOMIALS = 4000
"""Most functions of monomials that are tried, counted over all functions; three times as many with a constant
factor."""

SCALED_SHARE = 6
"""The first ``MOST_FUNCTIONS_OF_MONOMIALS // SCALED_SHARE`` monomials get constant factors: there are seven factors."""


class BankGrowth:
    """Grows a bank in rounds.

    Parameters
    ----------
    bank : ExpressionBank
        An empty one.
    values : ndarray of shape (n, n_rows)
        Values of the leaves: features, or functions of them that count as one.
    nodes : sequence of Nodes
        Their formulas.
    """

    def __init__(self, bank: ExpressionBank, values: Floats, nodes: Sequence[Nodes]) -> None:
        self.bank = bank
        functions = [f for f in bank.primitives.functions if f.name not in LEFT_OUT]
        self.unary = [f.name for f in functions if f.arity == 1]
        self.binary = [f.name for f in functions if f.arity == 2]
        self._values, self._nodes = values, tuple(nodes)
        self.leaves = bank.leaves(values, nodes)
        self.constants = np.concatenate([bank.constant(value) for value in CONSTANTS])
        self.monomials: list[Indices] = [self.leaves]

    def rounds(self) -> Iterator[None]:
        """Grow the bank round by round; it is searched whenever this yields."""
        self._level(2)
        self._level(3)
        self._more_monomials(SMALL_MONOMIALS, MOST_SMALL_MONOMIALS)
        yield
        self._functions_of(np.concatenate(self.monomials[:SMALL_MONOMIALS]), MOST_FUNCTIONS_OF_MONOMIALS)
        self._level(COMPLETE_COST)
        yield
        self._more_monomials(LARGE_MONOMIALS, MOST_LARGE_MONOMIALS)
        self._scaled_functions(MOST_FUNCTIONS_OF_MONOMIALS)
        self._products(8000)  # most products of small members with functions of small members that are tried
        yield
        for cost in range(COMPLETE_COST + 1, 8):  # banks are full after the round of cost 7
            if not self.bank.full:
                self._level(cost)
                yield

    def fill_with_simple_terms(self) -> None:
        """Fill the bank with terms that laws add up, as in c*x^(1/3) and x*sin(y).

        Use it instead of `rounds`, for a bank of their own: they are few, and evaluated on more rows.
        """
        writer = Writer(self.bank.primitives)
        terms = simple_terms(self._values, self._nodes, self.unary, writer, self.bank.capacity)
        values, costs = np.array([term.values for term in terms]), np.array([2 * term.cost for term in terms])
        self.bank.formulas(values, [term.nodes(writer) for term in terms], costs)

    def _of_cost(self, least: int, most: int) -> Indices:
        """Members whose costs are in a range, the cheapest first."""
        costs = self.bank.costs[: self.bank.count]
        found = np.flatnonzero((costs >= least) & (costs <= most))
        return found[np.argsort(costs[found], kind="stable")]

    def _level(self, cost: int) -> None:
        """Add all functions of members that have this cost."""
        levels = [self._of_cost(c, c) for c in range(cost)]
        self._unary_level(levels)
        for name in self.binary:
            for left in range(1, cost - 1):
                right = cost - 1 - left
                if name in COMMUTATIVE and left > right:
                    continue
                # Most pairs tried with one function, for each way to divide a cost between its arguments.
                self.bank.binary(name, levels[left], levels[right], 30_000)

    def _unary_level(self, levels: Sequence[Indices]) -> None:
        """Add functions of one argument, taken from the last level, or from an earlier one if nesting costs more."""
        for name in self.unary:
            arguments = levels[-1]
            if name not in ALGEBRAIC:
                arguments = arguments[~self.bank.transcendental[arguments]]
                nested = levels[max(len(levels) - 1 - NESTING_COST, 0)]
                arguments = np.concatenate([arguments, nested[self.bank.transcendental[nested]]])
            self.bank.unary(name, arguments)

    def _more_monomials(self, factors: int, most: int) -> None:
        """Add products and quotients of up to this many leaves."""
        functions = self.bank.primitives.function_codes
        while len(self.monomials) < factors:
            found = [
                self.bank.binary(name, self.monomials[-1], self.leaves, most)
                for name in ("mul", "div")
                if name in functions
            ]
            if "div" in functions:
                found.append(self.bank.binary("div", self.constants[:1], self.monomials[-1], most))
            known = [self._known_monomials()] if len(self.monomials) == 1 else []
            self.monomials.append(np.concatenate([*known, *found]) if found else np.zeros(0, np.int64))

    def _known_monomials(self) -> Indices:
        """Products, quotients, squares and inverses of leaves that the bank already has."""
        bank, leaves = self.bank, {*self.leaves.tolist(), *self.constants[:1].tolist()}
        codes = {bank.primitives.function_codes.get(name) for name in ("mul", "div", "square")}
        return np.array(
            [
                i
                for i in range(bank.count)
                if bank.codes[i] in codes and bank.left[i] in leaves and (bank.right[i] < 0 or bank.right[i] in leaves)
            ],
            np.int64,
        )

    def _functions_of(self, arguments: Indices, most: int) -> Indices:
        """Apply every function of one argument, at most `most` times in total; returns the new members."""
        each = most // max(len(self.unary), 1)
        found = [self.bank.unary(name, arguments[:each]) for name in self.unary]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def _scaled_functions(self, most: int) -> None:
        """Add functions of monomials and of monomials times constants, also plus and minus 1."""
        functions = self.bank.primitives.function_codes
        monomials = np.concatenate(self.monomials[: min(LARGE_MONOMIALS, len(self.leaves) + 1)])
        found = self._functions_of(monomials, most)
        if "mul" in functions:
            factors = np.concatenate([self.bank.constant(value) for value in FACTORS])
            scaled = self.bank.binary("mul", factors, monomials[: most // SCALED_SHARE], most)
            found = np.concatenate([found, self._functions_of(scaled, 3 * most)])
        for name in ("add", "sub"):
            if name in functions:
                self.bank.binary(name, found[:most], self.constants[:1], most)

    def _products(self, most: int) -> None:
        """Add products of functions of small members with small members and monomials."""
        bank = self.bank
        if "mul" not in bank.primitives.function_codes:
            return
        simple = np.unique(np.concatenate([self._of_cost(1, 3), *self.monomials[1:SMALL_MONOMIALS]]))
        simple = simple[bank.codes[simple] != CONSTANT]
        small = self._of_cost(2, COMPLETE_COST)
        functions = small[bank.primitives.arities[bank.codes[small]] == 1]
        # Most functions and most small members in such products
        bank.binary("mul", functions[:400], simple[:200], most)
