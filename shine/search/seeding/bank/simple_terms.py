"""Simple terms that laws add up: powers, whole and fractional, waves, exponentials and logarithms, products of two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product

import numpy as np

from shine.base.typing import Floats
from shine.compiler.arrays import apply, exp, log, power
from shine.lang.forms.library import STANDARD
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
