"""What is known of single functions up to rounding: which undo each other, which are even or odd."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from shine.lang.simplify.exact import NOT_NEGATIVE
from shine.lang.simplify.sums import LARGEST_EXPONENT, MINUS_ONE, ONE, coefficient, times, to_the_power, value

if TYPE_CHECKING:
    from shine.lang.simplify.algebra import Algebra


def _even_function(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    (a,) = arguments
    if (inner := algebra.exact.inside(a, "abs")) is not None:
        return algebra.exact.apply(operation, (inner,), 0)
    return algebra.exact.apply(operation, (algebra.positive(a)[0],), 0)


def _odd_function(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    undone = _INVERSES.get(operation)
    if undone is not None and (inner := algebra.exact.inside(arguments[0], undone)) is not None:
        return inner
    a, changed = algebra.positive(arguments[0])
    return algebra.product(MINUS_ONE, {algebra.exact.apply(operation, (a,), 0): 1}) if changed else None


def _inverse(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    inner = algebra.exact.inside(arguments[0], _INVERSES[operation])
    return inner if inner is not None else _even_function(algebra, operation, arguments)


def _absolute(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    a, _ = algebra.positive(arguments[0])
    (number, divisor), factors = algebra.product_of(a)
    if not all(_is_not_negative(algebra, base, exponent) for base, exponent in factors.items()):
        if (number, divisor) == ONE:
            return algebra.exact.apply("abs", (a,), 0)
        inner = algebra.exact.apply("abs", (algebra.product(ONE, factors),), 0)
        own, factors = algebra.product_of(inner)
        number, divisor = times((number, divisor), own)
    return algebra.product((abs(number), divisor), factors)


def _is_not_negative(algebra: Algebra, base: int, exponent: int) -> bool:
    return exponent % 2 == 0 or algebra.terms.operations[base] in NOT_NEGATIVE


def _root(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    """The root of an even power: half of it, without its sign."""
    (number, divisor), factors = algebra.product_of(arguments[0])
    if number < 0 or not factors or any(exponent % 2 for exponent in factors.values()):
        return None
    signed = [base for base, e in factors.items() if e // 2 % 2 and algebra.terms.operations[base] not in NOT_NEGATIVE]
    halved = {base: exponent // 2 for base, exponent in factors.items() if base not in signed}
    if signed:
        if "abs" not in algebra.allowed:
            return None
        halved[algebra.terms.make("abs", algebra.product(ONE, {base: factors[base] // 2 for base in signed}))] = 1
    return algebra.product(coefficient(math.sqrt(number), math.sqrt(divisor)), halved)


def _exponential(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    """Powers of what a logarithm is of."""
    factor, factors = algebra.product_of(arguments[0])
    if len(factors) != 1:
        return None
    ((base, exponent),) = factors.items()
    inner = algebra.exact.inside(base, "log")
    power = value(factor)
    if inner is None or exponent != 1:
        return None
    if power.is_integer() and abs(power) <= LARGEST_EXPONENT:
        own, inside = algebra.product_of(inner)
        scaled = {part: int(power) * e for part, e in inside.items()}
        return algebra.product(to_the_power(own, int(power)), scaled)
    if power == 0.5 and "sqrt" in algebra.allowed:
        return algebra.function("sqrt", (inner,))
    return algebra.terms.make("pow", inner, algebra.terms.constant(power)) if "pow" in algebra.allowed else None


def _logarithm(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    return algebra.exact.inside(arguments[0], "exp")


def _power(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    return algebra.function("sqrt", arguments[:1]) if _is_half(algebra, arguments[1]) else None


def _is_half(algebra: Algebra, exponent: int) -> bool:
    return algebra.terms.number(exponent) == 0.5 and "sqrt" in algebra.allowed


def _extremum(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    """``max(max(a, b), b)`` is ``max(a, b)``; of two constants one is enough."""
    terms = algebra.terms
    for one, other in (arguments, arguments[::-1]):
        if terms.operations[one] != operation:
            continue
        inner = terms.arguments[one]
        if other in inner:
            return one
        if terms.number(other) is not None and terms.number(inner[1]) is not None:
            return algebra.exact.apply(operation, (inner[0], algebra.exact.apply(operation, (inner[1], other), 0)), 0)
    return None


def _equality(algebra: Algebra, operation: str, arguments: tuple[int, ...]) -> int | None:
    return algebra.terms.constant(float(operation != "ne")) if arguments[0] == arguments[1] else None


_INVERSES = {"sin": "asin", "tan": "atan", "cos": "acos"}
"""Functions, and those they undo wherever these are finite."""

FUNCTION_RULES: dict[str, Callable[[Algebra, str, tuple[int, ...]], int | None]] = {
    "cos": _inverse,
    "cosh": _even_function,
    **dict.fromkeys(("sin", "tan", "asin", "atan", "sinh", "tanh"), _odd_function),
    "abs": _absolute,
    "sqrt": _root,
    "exp": _exponential,
    "log": _logarithm,
    "pow": _power,
    "min": _extremum,
    "max": _extremum,
    **dict.fromkeys(("le", "ge", "eq", "ne"), _equality),
}
"""From a function and its simplified arguments, not all constants, to a term of no more nodes, or None."""
