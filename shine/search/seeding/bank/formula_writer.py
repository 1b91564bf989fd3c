"""Writes sums, products and powers with the functions that a primitive set has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from shine.base.typing import Floats
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tape import Tape

Nodes = tuple[tuple[int, float], ...]
"""A formula in postfix order: pairs of a code and the value of a constant, 0 for other codes."""

Factor = tuple[Nodes, float]
"""A formula and the power it is raised to."""

MOST_MULTIPLIED = 8
"""Highest power that is written as a lower one times its base: beyond it, formulas get too large."""


MOST_ROOTED = 2.0
"""Multiples of 1/4 below this are written with two square roots."""


class Unwritable(Exception):
    """The primitive set lacks the functions that a formula needs."""


class Writer:
    """Writes formulas with the functions of a primitive set.

    Every method returns the shortest known form for which the set has functions, or raises `Unwritable`.
    """

    def __init__(self, primitives: PrimitiveSet) -> None:
        self.primitives = primitives

    def has(self, name: str) -> bool:
        """Whether the set has a function of this name."""
        return name in self.primitives.function_codes

    def is_exponential(self, nodes: Nodes) -> bool:
        """Whether the outermost function of a formula is the exponential."""
        return self.has("exp") and nodes[-1][0] == self.primitives.function_codes["exp"]

    def call(self, name: str, *arguments: Nodes) -> Nodes:
        """A function of the set applied to formulas."""
        code = self.primitives.function_codes.get(name)
        if code is None:
            raise Unwritable(name)
        return (*chain.from_iterable(arguments), (code, 0.0))

    def shortest(self, *forms: Callable[[], Nodes]) -> Nodes:
        """The shortest of several forms; the first of those equally short."""
        written = []
        for form in forms:
            try:
                written.append(form())
            except Unwritable:
                continue
        if not written:
            raise Unwritable
        return min(written, key=len)

    def add(self, a: Nodes, b: Nodes) -> Nodes:
        """a + b"""
        if is_constant(a) and is_constant(b):
            return constant(a[0][1] + b[0][1])
        for zero, other in ((a, b), (b, a)):
            if is_constant(zero) and zero[0][1] == 0:
                return other
        return self.shortest(
            lambda: self.call("add", a, b),
            lambda: self.call("sub", a, constant(-b[0][1]) if is_constant(b) else self.call("sub", constant(0.0), b)),
        )

    def subtract(self, a: Nodes, b: Nodes) -> Nodes:
        """a - b"""
        if is_constant(b):
            return self.add(a, constant(-b[0][1]))
        return self.shortest(lambda: self.call("sub", a, b), lambda: self.call("add", a, self.negate(b)))

    def negate(self, a: Nodes) -> Nodes:
        """-a"""
        if is_constant(a):
            return constant(-a[0][1])
        if self.has("sub") and a[-1][0] == self.primitives.function_codes["sub"]:
            left, right = self._operands(a)
            return self.call("sub", right, left)
        if self.has("sub") and self.has("add") and a[-1][0] == self.primitives.function_codes["add"]:
            left, right = self._operands(a)
            if is_constant(right):
                return self.call("sub", constant(-right[0][1]), left)
        return self.shortest(
            lambda: self.call("neg", a),
            lambda: self.call("sub", constant(0.0), a),
            lambda: self.call("mul", constant(-1.0), a),
            lambda: self.call("div", a, constant(-1.0)),
        )

    def _operands(self, nodes: Nodes) -> tuple[Nodes, Nodes]:
        """The two arguments of a formula's root."""
        missing, at = 1, len(nodes) - 1
        while missing:
            at -= 1
            missing += int(self.primitives.arities[nodes[at][0]]) - 1
        return nodes[:at], nodes[at:-1]

    def multiply(self, a: Nodes, b: Nodes) -> Nodes:
        """a * b"""
        if is_constant(a) and is_constant(b):
            return constant(a[0][1] * b[0][1])
        for one, other in ((a, b), (b, a)):
            if is_constant(one) and one[0][1] == 1:
                return other
        return self.shortest(
            lambda: self._constant_over(a, b),
            lambda: self.call("mul", a, b),
            lambda: self.call("div", b, self._inverted_constant(a)),
            lambda: self.call("div", a, self.call("div", constant(1.0), b)),
        )

    def _constant_over(self, a: Nodes, b: Nodes) -> Nodes:
        """a * b, if a is a constant and b is a constant divided by something."""
        if not is_constant(a) or not self.has("div") or b[-1][0] != self.primitives.function_codes["div"]:
            raise Unwritable
        above, below = self._operands(b)
        if not is_constant(above):
            raise Unwritable
        return self.call("div", constant(a[0][1] * above[0][1]), below)

    def _inverted_constant(self, a: Nodes) -> Nodes:
        """1 / a, if a is a constant other than 0."""
        if not is_constant(a) or a[0][1] == 0:
            raise Unwritable
        return constant(1 / a[0][1])

    def divide(self, a: Nodes, b: Nodes) -> Nodes:
        """a / b"""
        if is_constant(b) and b[0][1] != 0:
            return self.multiply(a, constant(1 / b[0][1]))
        one = is_constant(a) and a[0][1] == 1
        return self.shortest(
            lambda: self.call("inv", b) if one else self.call("mul", a, self.call("inv", b)),
            lambda: self.call("div", a, b),
            lambda: self.multiply(a, self.call("pow", b, constant(-1.0))),
        )

    def power(self, a: Nodes, exponent: float) -> Nodes:
        """a to a power; without `cbrt` or `pow`, thirds and others need `exp` and `log`, and a positive a."""
        if exponent == 0:
            return constant(1.0)
        if exponent < 0:
            return self.shortest(
                lambda: self.call("pow", a, constant(exponent)) if exponent != -1 else self.call("inv", a),
                lambda: self.divide(constant(1.0), self.power(a, -exponent)),
                lambda: self._exponential_power(a, exponent),
            )
        if exponent == 1:
            return a
        named = {2.0: "square", 3.0: "cube", 0.5: "sqrt", 1 / 3: "cbrt"}
        forms = [lambda: self.call(named[exponent], a)] if exponent in named else []
        forms.append(lambda: self.call("pow", a, constant(exponent)))
        whole, rest = divmod(exponent, 1.0)
        if exponent == 2:
            forms.append(lambda: self.call("mul", a, a))
        elif rest == 0 and whole % 2 == 0:
            forms.append(lambda: self.power(self.power(a, exponent / 2), 2.0))
        elif whole >= 1 and exponent <= MOST_MULTIPLIED:
            forms.append(lambda: self.multiply(self.power(a, exponent - 1), a))
        elif 3 * exponent == 2:
            forms.append(lambda: self.power(self.call("cbrt", a), 2.0))
        elif 4 * exponent % 1 == 0 and exponent < MOST_ROOTED:
            forms.append(lambda: self.call("sqrt", self.power(a, 2 * exponent)))
        forms.append(lambda: self._exponential_power(a, exponent))
        return self.shortest(*forms)

    def _exponential_power(self, a: Nodes, exponent: float) -> Nodes:
        """exp(exponent * log(a)); the power of an exponential has the argument multiplied."""
        if self.is_exponential(a):
            return self.call("exp", self.scaled(exponent, a[:-1]))
        return self.call("exp", self.multiply(constant(exponent), self.call("log", a)))

    def scaled(self, factor: float, a: Nodes) -> Nodes:
        """A constant times a formula, in which it becomes part of a constant factor."""
        if self.has("mul") and a[-1][0] == self.primitives.function_codes["mul"]:
            left, right = self._operands(a)
            if is_constant(left):
                return self.multiply(constant(factor * left[0][1]), right)
        return self.multiply(constant(factor), a)

    def product(self, factors: Sequence[Factor], coefficient: float = 1.0) -> Nodes:
        """A constant times a product of powers, as one quotient; factors with the same exponent share a power."""
        above: dict[float, Nodes] = {}
        below: dict[float, Nodes] = {}
        for base, exponent in factors:
            side = above if exponent > 0 else below
            if exponent:
                key = abs(exponent)
                side[key] = self.multiply(side[key], base) if key in side else base
        for shared in (above.keys() & below.keys()) - {1.0}:
            above[shared] = self.divide(above[shared], below.pop(shared))
        numerator, denominator = self._powers(above), self._powers(below)
        if coefficient != 1:
            numerator = constant(coefficient) if numerator is None else self.multiply(constant(coefficient), numerator)
        if denominator is None:
            return constant(1.0) if numerator is None else numerator
        if numerator is None:
            return self.divide(constant(1.0), denominator)
        return self.divide(numerator, denominator)

    def _powers(self, bases: dict[float, Nodes]) -> Nodes | None:
        """The product of bases, each raised to its exponent; None if there are none."""
        result: Nodes | None = None
        for exponent in sorted(bases):
            raised = self.power(bases[exponent], exponent)
            result = raised if result is None else self.multiply(result, raised)
        return result

    def linear(
        self, terms: Sequence[Nodes], coefficients: Sequence[float], intercept: float = 0.0, *, shifted: bool = False
    ) -> Nodes:
        """A sum of terms with coefficients, and an intercept.

        With `shifted`, the result may differ from that by a constant.
        """
        pairs = [(tidy(c), term) for c, term in zip(coefficients, terms, strict=True) if c != 0]
        if not pairs:
            return constant(intercept)
        squares, shift = self._completed_squares(pairs)
        forms = [lambda: self._sum(pairs, intercept), lambda: self._gathered(pairs, intercept)]
        if len(squares) < len(pairs):
            forms.append(lambda: self._sum(squares, 0.0 if shifted else intercept + shift))
        return self.shortest(*forms)

    def _gathered(self, pairs: Sequence[tuple[float, Nodes]], intercept: float) -> Nodes:
        """The sum with a factor that several terms share written once, as in a*x*(1 - x/b)."""
        factors = [self._factors(term) for _, term in pairs]
        shared = Counter(factor for own in factors for factor in dict.fromkeys(own))
        saved = {factor: (count - 1) * (len(factor) + 1) for factor, count in shared.items() if count > 1}
        if not saved:
            raise Unwritable
        factor = max(saved, key=lambda each: saved[each])
        inside = [
            (c, self._without(factor, term)) for (c, term), own in zip(pairs, factors, strict=True) if factor in own
        ]
        others = [pair for pair, own in zip(pairs, factors, strict=True) if factor not in own]
        rest = [(c, term) for c, term in inside if not is_constant(term)]
        alone = sum(c * term[0][1] for c, term in inside if is_constant(term))
        within = self.linear([term for _, term in rest], [c for c, _ in rest], alone)
        gathered = self.multiply(factor, within)
        return self.linear([gathered, *(term for _, term in others)], [1.0, *(c for c, _ in others)], intercept)

    def _factors(self, nodes: Nodes) -> list[Nodes]:
        """Factors of a formula's numerator; constants are left out."""
        codes, root = self.primitives.function_codes, nodes[-1][0]
        if root == codes.get("mul"):
            left, right = self._operands(nodes)
            return self._factors(left) + self._factors(right)
        if root == codes.get("div"):
            return self._factors(self._operands(nodes)[0])
        if root == codes.get("square"):
            return [*self._factors(nodes[:-1]), *self._factors(nodes[:-1])]
        return [] if is_constant(nodes) else [nodes]

    def _without(self, factor: Nodes, nodes: Nodes) -> Nodes:
        """A formula divided by one of its factors."""
        if nodes == factor:
            return constant(1.0)
        if nodes[-1][0] == self.primitives.function_codes.get("square"):
            return self.multiply(self._without(factor, nodes[:-1]), nodes[:-1])
        left, right = self._operands(nodes)
        if nodes[-1][0] == self.primitives.function_codes.get("div"):
            return self.divide(self._without(factor, left), right)
        if factor in self._factors(left):
            return self.multiply(self._without(factor, left), right)
        return self.multiply(left, self._without(factor, right))

    def _completed_squares(self, pairs: Sequence[tuple[float, Nodes]]) -> tuple[list[tuple[float, Nodes]], float]:
        """The pairs with a*t^2 + b*t as a*(t + b/(2a))^2, and the constant to add for this."""
        coefficients = {term: c for c, term in pairs}
        found, shift, merged = [], 0.0, set()
        for c, term in pairs:
            try:
                square = self.power(term, 2.0)
            except Unwritable:
                square = term
            if square != term and square in coefficients:
                half = c / (2 * coefficients[square])
                found.append((coefficients[square], self.power(self.add(term, constant(tidy(half))), 2.0)))
                shift -= coefficients[square] * half * half
                merged |= {term, square}
        rest = [(c, term) for c, term in pairs if term not in merged]
        return rest + found, shift

    def _sum(self, pairs: Sequence[tuple[float, Nodes]], intercept: float) -> Nodes:
        """A sum of terms with coefficients other than 0, and an intercept."""
        pairs = list(pairs)
        # Begin with a positive term: a negative one needs a node for its sign.
        first = next((i for i, (c, _) in enumerate(pairs) if c == 1), None)
        if first is None:
            first = next((i for i, (c, _) in enumerate(pairs) if c > 0), 0)
        pairs.insert(0, pairs.pop(first))
        if len(pairs) > 4:  # terms of a sum beyond which short ones come first, so that it has fewer levels
            # The first terms are the deepest.
            pairs[1:] = sorted(pairs[1:], key=lambda pair: len(pair[1]))
        if pairs[0][0] == -1 and intercept:
            result, intercept = self.subtract(constant(tidy(intercept)), pairs[0][1]), 0.0
        else:
            result = self._scaled(*pairs[0])
        for c, term in pairs[1:]:
            scaled = self._scaled(abs(c), term)
            result = self.add(result, scaled) if c > 0 else self.subtract(result, scaled)
        return self.add(result, constant(tidy(intercept))) if intercept else result

    def _scaled(self, coefficient: float, term: Nodes) -> Nodes:
        """A coefficient times a term."""
        return self.negate(term) if coefficient == -1 else self.multiply(constant(coefficient), term)


def constant(value: float) -> Nodes:
    """A constant as a formula."""
    return ((CONSTANT, float(value)),)


def is_constant(nodes: Nodes) -> bool:
    """Whether a formula is a single constant."""
    return len(nodes) == 1 and nodes[0][0] == CONSTANT


def tidy(value: float) -> float:
    """A number, rounded if it is whole up to rounding errors."""
    nearest = round(value)
    # Relative distance from a whole number that counts as rounding.
    return float(nearest) if nearest and abs(value - nearest) <= 1e-10 * abs(value) else float(value)


def tape(nodes: Nodes) -> Tape:
    """The tape of a formula."""
    return Tape(np.array([code for code, _ in nodes], np.int16), np.array([value for _, value in nodes], np.float64))


def unknown(nodes: Nodes) -> tuple[int, ...]:
    """Places of the constants that a fit may change: those that are no small whole numbers."""
    return tuple(i for i, (code, value) in enumerate(nodes) if code == CONSTANT and not is_structural(value))


def is_structural(value: float) -> bool:
    """Whether a constant belongs to the form of a formula, such as an exponent; it is no constant of the data."""
    # Largest whole number that belongs to the form of a formula; large numbers are whole by rounding.
    return abs(value) <= 20 and value == round(value)


def with_constants(nodes: Nodes, places: Sequence[int], values: Floats | float) -> Nodes:
    """A formula with other constants at some places."""
    found = list(nodes)
    for place, value in zip(places, np.broadcast_to(values, len(places)).tolist(), strict=True):
        found[place] = (CONSTANT, value)
    return tuple(found)
