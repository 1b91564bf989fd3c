"""Rules that change no bit of finite values. Each rule knows which other values it changes.

A rule such as ``x - x -> 0`` turns NaN into a number. That is an improvement if the NaN would become the result, but
``1 if x - x == 0 else 2`` would change. So each place in a formula has *demands*: the unusual values that affect finite
results. A rule applies only if the values that it changes are not demanded.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from shine.lang.forms.facts import basic_where, names_where
from shine.lang.forms.primitives import ARITIES
from shine.lang.simplify.terms import CONSTANT, Terms

INFINITE, NAN, SIGN = 1, 2, 4
"""Demands: infinite values stay the same, NaN stays NaN, zeros keep their sign."""

EVERYTHING = INFINITE | NAN | SIGN

_PASSING = names_where(lambda facts: facts.infinite == "kept")
"""Functions that turn infinite values into infinities or NaN, and keep NaN."""

_BOUNDED = names_where(lambda facts: facts.infinite == "bounded")
"""Functions that may turn infinite values into finite ones, but keep NaN."""

_TRUTHS = names_where(lambda facts: facts.values == "truth")
"""Comparisons and `logical_not`: they turn NaN and infinite values into 0 or 1."""

_WHOLE = names_where(lambda facts: facts.values == "whole")
"""Functions whose values rounding does not change."""

NOT_NEGATIVE = names_where(lambda facts: facts.not_negative)
"""Functions without negative values."""

_COMMUTATIVE = basic_where(lambda facts: facts.commutative)

_SIGN_BY_ORDER = basic_where(lambda facts: facts.sign_by_order)
"""Functions for which the order of 0.0 and -0.0 decides the sign of the result."""


def demands_on(operation: str, position: int, demands: int) -> int:
    """The demands on an argument of an operation, given the demands on the result."""
    # A changed infinity may turn the result into another infinity or NaN.
    infinite = INFINITE if demands & (INFINITE | NAN) else 0
    if operation in _PASSING or (operation == "div" and position == 0):
        return demands & (NAN | SIGN) | infinite
    if operation == "inv" or operation == "div":
        # 1 / inf is 0, and the sign of a zero divisor becomes that of the infinite quotient.
        return demands & NAN | INFINITE | (SIGN if infinite else 0) | demands & SIGN
    if operation in _BOUNDED:
        return demands | INFINITE
    if operation in _TRUTHS:
        return INFINITE | NAN
    if operation == "where" and position > 0:
        return demands
    return EVERYTHING


class ExactRules:
    """Local rules for operations whose arguments are simplified already.

    Parameters
    ----------
    terms : Terms
    allowed : frozenset of str
        Functions that a rule may introduce.
    """

    def __init__(self, terms: Terms, allowed: frozenset[str]) -> None:
        self.terms = terms
        self.allowed = allowed

    def apply(self, operation: str, arguments: tuple[int, ...], demands: int) -> int:
        """The shortest known term for an operation on simplified arguments.

        Parameters
        ----------
        operation : str
        arguments : tuple of int
        demands : int
            The demands on the result.
        """
        if len(arguments) != _RULE_ARITIES.get(operation, len(arguments)):
            return self.terms.make(operation, *arguments)
        if operation in _COMMUTATIVE and not (operation in _SIGN_BY_ORDER and demands & SIGN):
            arguments = self._ordered(operation, arguments)
        if arguments and all(self.terms.operations[argument] == CONSTANT for argument in arguments):
            folded = self.terms.fold(operation, arguments)
            if folded is not None:
                return folded
        rule = _RULES.get(operation)
        found = None if rule is None else rule(self, arguments, demands)
        return self.terms.make(operation, *arguments) if found is None else found

    def _ordered(self, operation: str, arguments: tuple[int, ...]) -> tuple[int, ...]:
        """Operands of a commutative operation in normal order: constants first in products, last elsewhere."""
        a, b = arguments
        constants = self.is_constant(a), self.is_constant(b)
        if constants[0] != constants[1]:
            return arguments if constants[0] == (operation == "mul") else (b, a)
        return (b, a) if self.terms.keys[b] < self.terms.keys[a] else arguments

    def is_constant(self, term: int) -> bool:
        """Whether a term is a number."""
        return self.terms.operations[term] == CONSTANT

    def inside(self, term: int, operation: str) -> int | None:
        """The first argument of a term if the term applies this operation, otherwise None."""
        return self.terms.arguments[term][0] if self.terms.operations[term] == operation else None

    def equals(self, term: int, value: float) -> bool:
        """Whether a term is this number; 0.0 equals -0.0."""
        return self.terms.number(term) == value

    def negated(self, term: int) -> int | None:
        """The negative of a number or of a negation; None for other terms."""
        value = self.terms.number(term)
        return self.inside(term, "neg") if value is None else self.terms.constant(-value)


def _add(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    a, b = arguments
    if rules.equals(b, 0.0) and (not demands & SIGN or math.copysign(1.0, rules.terms.values[b]) < 0):
        return a
    if "sub" in rules.allowed:
        for one, other in ((a, b), (b, a)):
            if (inner := rules.inside(other, "neg")) is not None:
                return rules.apply("sub", (one, inner), demands)
        if rules.is_constant(b) and rules.terms.values[b] < 0:
            return rules.terms.make("sub", a, rules.terms.constant(-rules.terms.values[b]))
    return None


def _sub(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    a, b = arguments
    if rules.equals(b, 0.0) and (not demands & SIGN or math.copysign(1.0, rules.terms.values[b]) > 0):
        return a
    if a == b and not demands & NAN:
        return rules.terms.constant(0.0)
    if "add" in rules.allowed:
        if (inner := rules.inside(b, "neg")) is not None:
            return rules.apply("add", (a, inner), demands)
        if rules.is_constant(b) and rules.terms.values[b] < 0:
            return rules.terms.make("add", a, rules.terms.constant(-rules.terms.values[b]))
    if rules.equals(a, 0.0) and not demands & SIGN and "neg" in rules.allowed:
        return rules.apply("neg", (b,), demands)
    return None


def _mul(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    a, b = arguments
    if rules.equals(a, 1.0):
        return b
    if rules.equals(a, 0.0) and not demands & (NAN | SIGN):
        return rules.terms.constant(0.0)
    if rules.equals(a, -1.0) and "neg" in rules.allowed:
        return rules.apply("neg", (b,), demands)
    if a == b and "square" in rules.allowed:
        return rules.apply("square", (a,), demands)
    if "cube" in rules.allowed:
        for one, other in ((a, b), (b, a)):
            if rules.inside(one, "square") == other or rules.terms.is_application(one, "mul", (other, other)):
                return rules.terms.make("cube", other)
    return _without_signs(rules, "mul", arguments, demands)


def _div(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    a, b = arguments
    if rules.equals(b, 1.0) or (rules.equals(a, 0.0) and rules.equals(b, 0.0)):
        return a if rules.equals(b, 1.0) else rules.terms.make("div", a, b)
    if a == b and not demands & NAN:
        return rules.terms.constant(1.0)
    if rules.equals(a, 0.0) and not demands & (NAN | SIGN):
        return rules.terms.constant(0.0)
    if rules.equals(b, -1.0) and "neg" in rules.allowed:
        return rules.apply("neg", (a,), demands)
    if rules.equals(a, 1.0) and "inv" in rules.allowed:
        return rules.terms.make("inv", b)
    return _without_signs(rules, "div", arguments, demands)


def _without_signs(rules: ExactRules, operation: str, arguments: tuple[int, ...], demands: int) -> int | None:
    """Cancel the signs of both operands, or of one operand and a constant."""
    if all(rules.inside(argument, "neg") is None for argument in arguments):
        return None
    one, other = (rules.negated(argument) for argument in arguments)
    return None if one is None or other is None else rules.apply(operation, (one, other), demands)


def _neg(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    terms, (a,) = rules.terms, arguments
    operation, parts = terms.operations[a], terms.arguments[a]
    if operation == "neg":
        return parts[0]
    if operation == "sub" and not demands & SIGN:
        return terms.make("sub", parts[1], parts[0])
    if operation in ("mul", "div"):
        for position, part in enumerate(parts):
            if rules.is_constant(part):
                opposite = terms.constant(-terms.values[part])
                return rules.apply(operation, (*parts[:position], opposite, *parts[position + 1 :]), demands)
    return None


def _square(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    for sign in ("neg", "abs"):
        if (inner := rules.inside(arguments[0], sign)) is not None:
            return rules.apply("square", (inner,), demands)
    return None


def _abs(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    (a,) = arguments
    if _is_not_negative(rules, a, demands):
        return a
    inner = rules.inside(a, "neg")
    return None if inner is None else rules.apply("abs", (inner,), demands)


def _relu(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    return arguments[0] if _is_not_negative(rules, arguments[0], demands) else None


def _is_not_negative(rules: ExactRules, term: int, demands: int) -> bool:
    operation = rules.terms.operations[term]
    # The square root of -0.0 is -0.0.
    return operation in NOT_NEGATIVE and not (operation == "sqrt" and demands & SIGN)


def _rounded(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    return arguments[0] if rules.terms.operations[arguments[0]] in _WHOLE else None


def _sign(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    return arguments[0] if rules.terms.operations[arguments[0]] == "sign" else None


def _extremum(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    return arguments[0] if arguments[0] == arguments[1] else None


def _maximum(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    if rules.equals(arguments[1], 0.0) and not demands & SIGN and "relu" in rules.allowed:
        return rules.apply("relu", arguments[:1], demands)
    return _extremum(rules, arguments, demands)


def _strictly_ordered(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    """``x < x`` is 0, even for NaN. ``x <= x`` has no such rule: it is not 1 for NaN."""
    return rules.terms.constant(0.0) if arguments[0] == arguments[1] else None


def _where(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    test, a, b = arguments
    value = rules.terms.number(test)
    if a == b:
        return a
    return None if value is None else a if value != 0 else b


def _and(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    value = rules.terms.number(arguments[0])
    return None if value is None else arguments[1] if value != 0 else arguments[0]


def _or(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    value = rules.terms.number(arguments[0])
    return None if value is None else arguments[0] if value != 0 else arguments[1]


def _pow(rules: ExactRules, arguments: tuple[int, ...], demands: int) -> int | None:
    base, exponent = arguments
    if rules.equals(exponent, 1.0):
        return base
    # This holds for NaN, too.
    return rules.terms.constant(1.0) if rules.equals(exponent, 0.0) or rules.equals(base, 1.0) else None


_RULES: dict[str, Callable[[ExactRules, tuple[int, ...], int], int | None]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "square": _square,
    "abs": _abs,
    "relu": _relu,
    "floor": _rounded,
    "ceil": _rounded,
    "sign": _sign,
    "min": _extremum,
    "max": _maximum,
    "lt": _strictly_ordered,
    "gt": _strictly_ordered,
    "where": _where,
    "logical_and": _and,
    "logical_or": _or,
    "pow": _pow,
}
_RULE_ARITIES = {name: ARITIES.get(name, 1) for name in _RULES}
