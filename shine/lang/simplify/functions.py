"""Rules for single functions, up to rounding: which functions undo each other, are even or are odd."""

from __future__ import annotations

import math
from collections.abc import Callable

from shine.lang.facts import FACTS, basic_where
from shine.lang.simplify.coefficients import (
    MINUS_ONE,
    ONE,
    Unfit,
    coefficient,
    negative,
    times,
    to_the_power,
    value,
)
from shine.lang.simplify.exact import NOT_NEGATIVE, ExactRules
from shine.lang.simplify.factoring import SumBuilder
from shine.lang.simplify.sums import LARGEST_EXPONENT
from shine.lang.simplify.tables import Product, times_sum
from shine.lang.simplify.terms import CONSTANT, Terms


class FunctionBuilder(SumBuilder):
    """Finds the shortest formulas for functions of simplified arguments.

    Parameters
    ----------
    terms : Terms
    allowed : frozenset of str
        Functions that a rule may introduce.
    """

    def __init__(self, terms: Terms, allowed: frozenset[str]) -> None:
        super().__init__(terms, allowed)
        self.exact = ExactRules(terms, allowed)

    def written_product(self, product: Product) -> int:
        """The shortest formula found for a product. A subclass implements it."""
        raise NotImplementedError(f"{type(self).__name__} writes no products")

    def function(self, operation: str, arguments: tuple[int, ...]) -> int:
        """The shortest known term for a function of simplified arguments, other than sums and products."""
        rule = _RULES.get(operation)
        if rule is not None and any(self.terms.operations[argument] != CONSTANT for argument in arguments):
            try:
                found = rule(self, operation, arguments)
            except Unfit:
                found = None
            if found is not None and self.terms.sizes[found] <= 1 + sum(self.terms.sizes[a] for a in arguments):
                return found
        return self.exact.apply(operation, arguments, 0)

    def opposite(self, term: int) -> int:
        """The shortest formula for the negative of a term."""
        if self.is_sum(term):
            return self.shortest_sum(times_sum(MINUS_ONE, self.sum_of(term)))
        own, factors = self.product_of(term)
        return self.written_product(Product(negative(own), factors))

    def positive(self, term: int) -> tuple[int, bool]:
        """The shorter of a term and its negative, and whether that is the negative; prefers terms without a minus."""
        opposite = self.opposite(term)
        sizes = self.terms.sizes
        if sizes[opposite] != sizes[term]:
            return (opposite, True) if sizes[opposite] < sizes[term] else (term, False)
        is_negative = not self.is_sum(term) and self.product_of(term).coefficient[0] < 0
        return (opposite, True) if is_negative else (term, False)


def _undone(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """The argument of the function that an operation undoes; None if it is applied to something else."""
    undone = FACTS[operation].undoes
    return None if undone is None else builder.exact.inside(arguments[0], undone)


def _even_function(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    if (undone := _undone(builder, operation, arguments)) is not None:
        return undone
    (a,) = arguments
    if (inner := builder.exact.inside(a, "abs")) is not None:
        return builder.exact.apply(operation, (inner,), 0)
    return builder.exact.apply(operation, (builder.positive(a)[0],), 0)


def _odd_function(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    if (undone := _undone(builder, operation, arguments)) is not None:
        return undone
    a, changed = builder.positive(arguments[0])
    return builder.product(MINUS_ONE, {builder.exact.apply(operation, (a,), 0): 1}) if changed else None


def _absolute(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    a, _ = builder.positive(arguments[0])
    (number, divisor), factors = builder.product_of(a)
    if not all(_is_not_negative(builder, base, exponent) for base, exponent in factors.items()):
        if (number, divisor) == ONE:
            return builder.exact.apply("abs", (a,), 0)
        inner = builder.exact.apply("abs", (builder.product(ONE, factors),), 0)
        own, factors = builder.product_of(inner)
        number, divisor = times((number, divisor), own)
    return builder.product((abs(number), divisor), factors)


def _is_not_negative(builder: FunctionBuilder, base: int, exponent: int) -> bool:
    return exponent % 2 == 0 or builder.terms.operations[base] in NOT_NEGATIVE


def _root(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """The root of an even power is half the power of the absolute value."""
    (number, divisor), factors = builder.product_of(arguments[0])
    if number < 0 or not factors or any(exponent % 2 for exponent in factors.values()):
        return None
    signed = [base for base, e in factors.items() if e // 2 % 2 and builder.terms.operations[base] not in NOT_NEGATIVE]
    halved = {base: exponent // 2 for base, exponent in factors.items() if base not in signed}
    if signed:
        if "abs" not in builder.allowed:
            return None
        halved[builder.terms.make("abs", builder.product(ONE, {base: factors[base] // 2 for base in signed}))] = 1
    return builder.product(coefficient(math.sqrt(number), math.sqrt(divisor)), halved)


def _exponential(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """The exponential of a multiple of a logarithm is a power."""
    factor, factors = builder.product_of(arguments[0])
    if len(factors) != 1:
        return None
    ((base, exponent),) = factors.items()
    inner = builder.exact.inside(base, "log")
    power = value(factor)
    if inner is None or exponent != 1:
        return None
    if power.is_integer() and abs(power) <= LARGEST_EXPONENT:
        own, inside = builder.product_of(inner)
        scaled = {part: int(power) * e for part, e in inside.items()}
        return builder.product(to_the_power(own, int(power)), scaled)
    if power == 0.5 and "sqrt" in builder.allowed:
        return builder.function("sqrt", (inner,))
    return builder.terms.make("pow", inner, builder.terms.constant(power)) if "pow" in builder.allowed else None


def _power(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    return builder.function("sqrt", arguments[:1]) if _is_half(builder, arguments[1]) else None


def _is_half(builder: FunctionBuilder, exponent: int) -> bool:
    return builder.terms.number(exponent) == 0.5 and "sqrt" in builder.allowed


def _extremum(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    """``max(max(a, b), b)`` is ``max(a, b)``; two constants become one."""
    terms = builder.terms
    for one, other in (arguments, arguments[::-1]):
        if terms.operations[one] != operation:
            continue
        inner = terms.arguments[one]
        if other in inner:
            return one
        if terms.number(other) is not None and terms.number(inner[1]) is not None:
            return builder.exact.apply(operation, (inner[0], builder.exact.apply(operation, (inner[1], other), 0)), 0)
    return None


def _equality(builder: FunctionBuilder, operation: str, arguments: tuple[int, ...]) -> int | None:
    return builder.terms.constant(float(operation != "ne")) if arguments[0] == arguments[1] else None


def _functions(parity: str) -> frozenset[str]:
    return basic_where(lambda facts: facts.family == "function" and facts.parity == parity)


_RULES: dict[str, Callable[[FunctionBuilder, str, tuple[int, ...]], int | None]] = {
    **dict.fromkeys(_functions("even"), _even_function),
    **dict.fromkeys(_functions("odd"), _odd_function),
    "abs": _absolute,
    "sqrt": _root,
    "exp": _exponential,
    "log": _undone,
    "pow": _power,
    "min": _extremum,
    "max": _extremum,
    **dict.fromkeys(("le", "ge", "eq", "ne"), _equality),
}
"""Rules by function: an equal term for simplified arguments, which are not all constants; None if there is none."""
