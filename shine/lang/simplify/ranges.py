"""Ranges of subformulas on the rows of some data, which follow from those of the features.

Only signs and plain arithmetic are kept, whose bits are the same on all processors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from shine.lang.forms.facts import names_where
from shine.lang.simplify.terms import CONSTANT, NAME, Range, Terms

UNKNOWN: Range = (-math.inf, math.inf)
_POSITIVE: Range = (5e-324, math.inf)
_NOT_NEGATIVE: Range = (0.0, math.inf)


class Ranges:
    """Ranges of terms.

    Wherever a term has a value on rows within the ranges of the features, it lies between the two numbers or on them.

    Parameters
    ----------
    terms : Terms
        It knows the ranges of the features.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._known: list[Range] = []

    def of(self, term: int) -> Range:
        """The least and the greatest value that a term may have."""
        # Arguments have smaller numbers than the terms that use them.
        for number in range(len(self._known), term + 1):
            self._known.append(self._range(number))
        return self._known[term]

    def is_not_negative(self, term: int) -> bool:
        """Whether a term is at least 0 wherever it has a value."""
        return self.of(term)[0] >= 0

    def has_one_sign(self, term: int) -> bool:
        """Whether a term is never negative, or never positive."""
        low, high = self.of(term)
        return low >= 0 or high <= 0

    def _range(self, term: int) -> Range:
        operation, arguments = self._terms.operations[term], self._terms.arguments[term]
        if operation == CONSTANT:
            return self._terms.values[term], self._terms.values[term]
        if operation == NAME:
            return self._terms.range_of_name(term)
        if operation == "pow":
            return self._power(*arguments)
        parts = [self._known[argument] for argument in arguments]
        if operation == "mul" and arguments[0] == arguments[1]:
            return _square(parts[0])
        rule = _RULES.get(operation)
        return _BY_FACT.get(operation, UNKNOWN) if rule is None else rule(*parts)

    def _power(self, base: int, exponent: int) -> Range:
        number = self._terms.number(exponent)
        if self._known[base][0] > 0:
            return _POSITIVE
        even = number is not None and number % 2 == 0
        # Without a whole exponent, negative bases have no powers.
        fractional = number is not None and not number.is_integer()
        return _NOT_NEGATIVE if even or fractional or self._known[base][0] == 0 else UNKNOWN


def _add(a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1]


def _neg(a: Range) -> Range:
    return -a[1], -a[0]


def _mul(a: Range, b: Range) -> Range:
    # Values are finite, so 0 times a bound that is missing is 0.
    corners = [0.0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(corners), max(corners)


def _inv(a: Range) -> Range:
    if a[0] < 0 < a[1] or a == (0.0, 0.0):
        return UNKNOWN
    return (1 / a[1] if a[1] else -math.inf), (1 / a[0] if a[0] else math.inf)


def _abs(a: Range) -> Range:
    return max(a[0], -a[1], 0.0), max(-a[0], a[1])


def _square(a: Range) -> Range:
    return _mul(_abs(a), _abs(a))


def _sqrt(a: Range) -> Range:
    return _POSITIVE if a[0] > 0 else _NOT_NEGATIVE


def _log(a: Range) -> Range:
    return (0.0 if a[0] >= 1 else -math.inf), (0.0 if a[1] <= 1 else math.inf)


def _sign(a: Range) -> Range:
    """The range of a function with the sign of its argument."""
    return (0.0 if a[0] >= 0 else -math.inf), (0.0 if a[1] <= 0 else math.inf)


_RULES: dict[str, Callable[..., Range]] = {
    "add": _add,
    "sub": lambda a, b: _add(a, _neg(b)),
    "mul": _mul,
    "div": lambda a, b: _mul(a, _inv(b)),
    "neg": _neg,
    "inv": _inv,
    "abs": _abs,
    "square": _square,
    "cube": lambda a: _mul(a, _square(a)),
    "sqrt": _sqrt,
    "log": _log,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "relu": lambda a: (max(a[0], 0.0), max(a[1], 0.0)),
    "where": lambda _, a, b: (min(a[0], b[0]), max(a[1], b[1])),
    **dict.fromkeys(("sinh", "tanh", "atan", "cbrt"), _sign),
}
"""Ranges by those of the arguments."""

_BY_FACT: Mapping[str, Range] = MappingProxyType(
    {
        **dict.fromkeys(names_where(lambda facts: facts.not_negative), _NOT_NEGATIVE),
        **dict.fromkeys(names_where(lambda facts: facts.values == "truth"), (0.0, 1.0)),
        **dict.fromkeys(("sin", "cos"), (-1.0, 1.0)),
        "exp": _POSITIVE,
        "cosh": (1.0, math.inf),
        "sigmoid": (0.0, 1.0),
    }
)
"""Ranges of functions for any arguments."""
