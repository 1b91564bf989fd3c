"""The form that people write: a formula with few and common symbols, equal up to rounding.

The search's own form has only the functions that the search draws from. This one may use any common function, and
identities that are worth trying once, at the end: powers collected, squares completed or multiplied out, double angles,
laws of exponentials and logarithms. Of equal forms the shortest is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from shine.lang.facts import names_where
from shine.lang.folding import EXACT, Functions
from shine.lang.library import STANDARD
from shine.lang.simplify.algebra import Algebra, combined
from shine.lang.simplify.coefficients import (
    ONE,
    ZERO,
    Coefficient,
    Unfit,
    coefficient,
    negative,
    plus,
    times,
    to_the_power,
    value,
)
from shine.lang.simplify.simplifier import settled
from shine.lang.simplify.sums import Product, Sum
from shine.lang.simplify.terms import NAME
from shine.lang.tree import Tree

COMMON = names_where(
    lambda facts: facts.family == "arithmetic" or facts.period or (facts.family == "function" and facts.nests_freely)
) - {"inv", "cbrt"}
"""Functions that a tidy formula may use besides its own: arithmetic, roots and sines, but no names where people write
`1/x` and `x**(1/3)`."""

_SHORT = 12
"""Most digits of a decimal that replaces a number which differs from it by rounding only."""

_MOST_STEPS = 3
"""Most products of sums that are multiplied out, one after the other."""

_LARGEST_DIVISOR = 10**6
"""Largest whole number that replaces the multiplication by its inverse."""


def tidy(tree: Tree, functions: Functions = EXACT) -> Tree:
    """An equal formula in the form that people write.

    Parameters
    ----------
    tree : Tree
        A formula of float64 numbers.
    functions : mapping of str to callable
        The functions that fold constants (see `shine.lang.simplify.simplifier.simplify`).

    Returns
    -------
    Tree
        It has no more nodes. Its values are equal up to rounding wherever all intermediate values of the tree are
        finite and none of them underflows to zero. It may have finite values where the tree has none:
        ``log(x) + log(y)`` becomes ``log(x*y)``.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> tidy(parse("-1.0*(sqrt(square(v))*x) + 2.25 - square(y - 1.5)")).readable
    'y*(3 - y) - x*abs(v)'
    """
    tree = replace(tree, functions={**STANDARD, **tree.functions})
    return settled(tree, lambda terms: _Tidy(terms, COMMON.union(terms.operations)).simplified, functions)


def short(number: float) -> float:
    """The decimal of few digits that a number is, up to rounding; the number itself if there is none."""
    rounded = float(f"{number:.15g}")
    digits = f"{abs(rounded):.14e}".partition("e")[0].replace(".", "").rstrip("0")
    return rounded if len(digits) <= _SHORT and math.isfinite(rounded) else number


_Form = TypeVar("_Form", Product, Sum)


class _Tidy(Algebra):
    """Simplifies terms, with more rules and the order that people use."""

    largest_expanded = 2

    def simplified(self, root: int) -> int:
        number = self.terms.number(root)
        return super().simplified(root) if number is None else self._number(number)

    def function(self, operation: str, arguments: tuple[int, ...]) -> int:
        arguments = tuple(self._shortened(argument) for argument in arguments)
        result = super().function(operation, arguments)
        rule = {"sqrt": self._root_of_power, "pow": self._power_of_power, "exp": self._exponential_of_sum}.get(
            operation
        )
        if rule is None or self.terms.operations[result] != operation:
            return result
        try:
            found = rule(self.terms.arguments[result])
        except Unfit:
            return result
        return result if found is None or self.terms.sizes[found] > self.terms.sizes[result] else found

    def _shortened(self, term: int) -> int:
        number = self.terms.number(term)
        return term if not number else self._number(number)

    def _number(self, number: float) -> int:
        return super()._number(short(number))

    def _power(self, base: int, exponent: int) -> int:
        """``x**4`` instead of ``square(square(x))``, which has as many nodes."""
        if exponent <= 3:
            return super()._power(base, exponent)
        return self.terms.make("pow", base, self.terms.constant(float(exponent)))

    # Functions of powers.

    def _root_of_power(self, arguments: tuple[int, ...]) -> int | None:
        """``sqrt(x**3)`` is ``x**1.5``."""
        (own, factors) = self.product_of(arguments[0])
        if own != ONE or len(factors) != 1:
            return None
        ((base, exponent),) = factors.items()
        if exponent >= 3 and exponent % 2:
            return self._pow(base, exponent / 2)
        power = self._fractional(base)
        return None if power is None or exponent != 1 else self._pow(power[0], power[1] / 2)

    def _power_of_power(self, arguments: tuple[int, ...]) -> int | None:
        """``(x**1.5)**0.5`` is ``x**0.75``; a power that exists for negative numbers stays."""
        exponent, inner = self.terms.number(arguments[1]), self._fractional(arguments[0])
        if exponent is None or inner is None:
            return None
        return self._pow(inner[0], inner[1] * exponent)

    def _fractional(self, term: int) -> tuple[int, float] | None:
        """Base and exponent of a root or of a power with a fractional number as the exponent."""
        operation, arguments = self.terms.operations[term], self.terms.arguments[term]
        if operation == "sqrt":
            return arguments[0], 0.5
        exponent = self.terms.number(arguments[1]) if operation == "pow" else None
        return None if exponent is None or exponent.is_integer() else (arguments[0], exponent)

    def _pow(self, base: int, exponent: float) -> int:
        """A power with any number as the exponent."""
        exponent = short(exponent)
        if exponent == 0.5:
            return self.function("sqrt", (base,))
        if exponent.is_integer():
            return self.product(ONE, {base: int(exponent)}) if exponent else self.terms.constant(1.0)
        return self.terms.make("pow", base, self.terms.constant(exponent))

    def _exponential_of_sum(self, arguments: tuple[int, ...]) -> int | None:
        """``exp(1.5*log(x) + 2)`` is ``7.39*x**1.5``, and ``exp(1.386 - x)`` is ``4*exp(-x)``."""
        total = self.sum_of(arguments[0])
        factors: dict[int, int] = {}
        rest = {}
        for part, factor in total.parts.items():
            inner = self.exact.inside(part, "log")
            if inner is None:
                rest[part] = factor
            else:
                factors = combined(factors, self.product_of(self._pow(inner, value(factor))).factors)
        scale, constant = ONE, total.constant
        folded = self.terms.fold("exp", [self.terms.constant(value(constant))]) if constant != ZERO else None
        if folded is not None:
            number = short(self.terms.values[folded])
            if _digits(number) < _digits(value(constant)):
                scale, constant = coefficient(number), ZERO
        if scale == ONE and not (factors and (rest or constant == ZERO)):
            return None
        if rest or constant != ZERO:
            factors = combined(factors, {self.terms.make("exp", self.written_sum(Sum(constant, rest))): 1})
        return self.written_product(Product(scale, factors))

    # Products.

    def written_product(self, product: Product) -> int:
        product = Product(self._divided(product.coefficient), product.factors)
        result = super().written_product(product)
        for other in _fitting(self._other_products(product)):
            try:
                candidate = super().written_product(other)
            except Unfit:
                continue
            if self.terms.sizes[candidate] < self.terms.sizes[result]:
                result = candidate
        multiplied = self._multiplied_out(product)
        return result if multiplied is None or self.terms.sizes[multiplied] >= self.terms.sizes[result] else multiplied

    def _multiplied_out(self, product: Product) -> int | None:
        """``x*(2 - y/x)`` as ``2*x - y``; None if there is no sum to multiply with."""
        if not product.factors or not any(self.is_sum(base) for base in product.factors):
            return None
        try:
            total = self.expanded(Sum(ZERO, {self.product(ONE, product.factors): product.coefficient}))
            return None if total is None or len(total.parts) < 2 else self.shortest_sum(total)
        except Unfit:
            return None

    def _divided(self, factor: Coefficient) -> Coefficient:
        """A third as a divisor: ``x/3``, not ``0.3333333333333333*x``."""
        number = value(factor)
        if number and factor[1] == 1 and abs(number) < 1 and _digits(short(number)) > _SHORT:
            divisor = float(round(1 / number))
            if abs(divisor) < _LARGEST_DIVISOR and abs(divisor * number - 1) < 1e-15:
                return math.copysign(1.0, number), abs(divisor)
        return factor

    def _other_products(self, product: Product) -> Iterator[Product]:
        """Equal products."""
        collected = self._collected_powers(product)
        if collected is not None:
            yield collected
        yield from self._angles(product)
        yield from self._merged_roots(product)
        for base, exponent in product.factors.items():
            inner = self.exact.inside(base, "log")
            power = None if inner is None else self._fractional(inner)
            if power is not None and exponent == 1:
                log = self.function("log", (power[0],))
                scale = times(product.coefficient, coefficient(power[1]))
                yield Product(scale, combined(product.factors, {base: -1, log: 1}))

    def _collected_powers(self, product: Product) -> Product | None:
        """``x*sqrt(x)`` as ``x**1.5``. Bases with a fractional power are never negative, so all their powers add up."""
        totals: dict[int, float] = {}
        for base, exponent in product.factors.items():
            power = self._fractional(base)
            if power is not None:
                totals[power[0]] = totals.get(power[0], 0.0) + power[1] * exponent
        factors: dict[int, int] = {}
        for base, exponent in product.factors.items():
            if base in totals:
                totals[base] += exponent
            elif self._fractional(base) is None:
                factors[base] = exponent
        if len(factors) + len(totals) >= len(product.factors):
            return None
        for base, exact in totals.items():
            total = short(exact)
            if total != 0:
                inside = self.product_of(self._pow(base, abs(total))).factors
                factors = combined(factors, {part: e if total > 0 else -e for part, e in inside.items()})
        return Product(product.coefficient, factors)

    def _merged_roots(self, product: Product) -> Iterator[Product]:
        """``sqrt(x)*sqrt(y)`` as ``sqrt(x*y)``, with sums below the root multiplied out or not."""
        single = [(base, exponent) for base, exponent in product.factors.items() if abs(exponent) == 1]
        roots = {base: exponent for base, exponent in single if self.terms.operations[base] == "sqrt"}
        if len(roots) < 2:
            return
        sign = 1 if 1 in roots.values() else -1
        scale, factors = ONE, dict[int, int]()
        for base, exponent in roots.items():
            own, inside = self.product_of(self.terms.arguments[base][0])
            scale = times(scale, to_the_power(own, sign * exponent))
            factors = combined(factors, {part: sign * exponent * e for part, e in inside.items()})
        rest = combined(product.factors, {base: -exponent for base, exponent in roots.items()})
        inner = [self.written_product(Product(scale, factors))]
        expanded = self.expanded(Sum(ZERO, {self.product(ONE, factors): scale})) if factors else None
        if expanded is not None:
            inner.append(self.written_sum(expanded))
        for term in inner:
            own, inside = self.product_of(self.function("sqrt", (term,)))
            scaled = {part: sign * e for part, e in inside.items()}
            yield Product(times(product.coefficient, to_the_power(own, sign)), combined(rest, scaled))

    def _angles(self, product: Product) -> Iterator[Product]:
        """Sines and cosines of one angle as those of its double, or as a tangent; and back."""
        for base, exponent in product.factors.items():
            inner = self.exact.inside(base, "sin")
            if inner is None:
                continue
            cosine = self.function("cos", (inner,))
            other = product.factors.get(cosine, 0)
            rest = combined(product.factors, {base: -exponent, cosine: -other})
            if exponent == other == 1:
                double = self.function("sin", (self._multiple(2.0, inner),))
                yield Product(times(product.coefficient, (0.5, 1.0)), combined(rest, {double: 1}))
            if exponent + other == 0:
                tangent = self.function("tan", (inner,))
                yield Product(product.coefficient, combined(rest, {tangent: exponent}))
            if exponent == 1 and other == 0:
                half = self._multiple(0.5, inner)
                parts = {self.function("sin", (half,)): 1, self.function("cos", (half,)): 1}
                yield Product(times(product.coefficient, (2.0, 1.0)), combined(rest, parts))

    def _multiple(self, factor: float, term: int) -> int:
        if self.is_sum(term):
            total = self.sum_of(term)
            scaled = {part: times((factor, 1.0), own) for part, own in total.parts.items()}
            return self.shortest_sum(Sum(times((factor, 1.0), total.constant), scaled))
        own, factors = self.product_of(term)
        return self.written_product(Product(times((factor, 1.0), own), factors))

    # Sums.

    def written_sum(self, total: Sum) -> int:
        result = super().written_sum(total)
        for other in _fitting(self._other_sums(total)):
            try:
                candidate = super().written_sum(other)
            except Unfit:
                continue
            if self.terms.sizes[candidate] < self.terms.sizes[result]:
                result = candidate
        return result

    def _other_sums(self, total: Sum) -> Iterator[Sum]:
        expanded = self.expanded(total)
        for _ in range(_MOST_STEPS):
            if expanded is None:
                break
            yield expanded
            yield from self._completed_squares(expanded)
            expanded = self.expanded(expanded)
        yield from self._completed_squares(total)
        yield from self._squared_sines(total)
        merged = self._merged_logarithms(total)
        if merged is not None:
            yield merged

    def _completed_squares(self, total: Sum) -> Iterator[Sum]:
        """``x**2 - 3*x + 2.25`` as ``(x - 1.5)**2``."""
        for part, factor in total.parts.items():
            own, factors = self.product_of(part)
            if own != ONE or len(factors) != 1:
                continue
            ((base, exponent),) = factors.items()
            linear = total.parts.get(base)
            if exponent != 2 or linear is None:
                continue
            shift = value(linear) / value(factor) / 2
            left = value(total.constant) - shift * shift * value(factor)
            constant = ZERO if abs(left) <= 1e-14 * abs(value(total.constant)) else coefficient(left)
            inner = self.shortest_sum(Sum(coefficient(shift), {base: ONE}))
            rest = {p: f for p, f in total.parts.items() if p not in (part, base)}
            yield Sum(constant, {**rest, self.product(ONE, {inner: 2}): factor})

    def _squared_sines(self, total: Sum) -> Iterator[Sum]:
        """``p*sin(a)**2 + q*cos(a)**2 + k`` with one of the squares, or with the cosine of the double angle."""
        angles = dict.fromkeys(
            angle for part in total.parts for angle in [self._angle(part, "sin"), self._angle(part, "cos")] if angle
        )
        for (inner,) in angles:
            sine = self.product(ONE, {self.function("sin", (inner,)): 2})
            cosine = self.product(ONE, {self.function("cos", (inner,)): 2})
            p, q = total.parts.get(sine, ZERO), total.parts.get(cosine, ZERO)
            rest = {part: factor for part, factor in total.parts.items() if part not in (sine, cosine)}
            yield _with(total, rest, q, sine, plus(p, negative(q)))
            yield _with(total, rest, p, cosine, plus(q, negative(p)))
            double = self.function("cos", (self._multiple(2.0, inner),))
            half = times((0.5, 1.0), plus(p, q))
            yield _with(total, rest, half, double, times((0.5, 1.0), plus(q, negative(p))))

    def _angle(self, part: int, operation: str) -> tuple[int] | None:
        """The angle of a squared sine or cosine, in a tuple."""
        _, factors = self.product_of(part)
        if len(factors) != 1:
            return None
        ((base, exponent),) = factors.items()
        inner = self.exact.inside(base, operation)
        return None if exponent != 2 or inner is None else (inner,)

    def _merged_logarithms(self, total: Sum) -> Sum | None:
        """``log(x) - log(y)`` as ``log(x/y)``."""
        parts: dict[int, Coefficient] = {}
        groups: dict[Coefficient, dict[int, int]] = {}
        for part, factor in total.parts.items():
            inner = self.exact.inside(part, "log")
            if inner is None:
                parts[part] = factor
                continue
            sign = 1 if factor[0] > 0 else -1
            group = groups.setdefault((abs(factor[0]), factor[1]), {})
            own, factors = self.product_of(inner)
            if own != ONE:
                factors = {inner: 1}
            groups[abs(factor[0]), factor[1]] = combined(group, {base: sign * e for base, e in factors.items()})
        if len(groups) + len(parts) >= len(total.parts) or not all(groups.values()):
            return None
        for factor, factors in groups.items():
            # A quotient below 1 would only change signs.
            sign = 1 if any(exponent > 0 for exponent in factors.values()) else -1
            product = self.written_product(Product(ONE, {base: sign * e for base, e in factors.items()}))
            log = self.function("log", (product,))
            parts[log] = plus(parts.get(log, ZERO), times((float(sign), 1.0), factor))
        return Sum(total.constant, {part: factor for part, factor in parts.items() if factor[0]})

    # The order of factors.

    def _multiplied(self, pieces: list[int], number: float = 1.0) -> int:
        keys = self.terms.keys
        ordered = sorted(pieces, key=lambda piece: (self._place(piece), keys[piece]))
        if number != 1 or not ordered:
            ordered.insert(0, self._number(number))
        result = ordered[0]
        for piece in ordered[1:]:
            result = self._make("mul", result, piece)
        return result

    def _place(self, term: int) -> int:
        """Features and their powers come first, then sums, then functions."""
        operation, arguments = self.terms.operations[term], self.terms.arguments[term]
        if operation in ("square", "cube", "pow"):
            operation = self.terms.operations[arguments[0]]
        return 0 if operation == NAME else 1 if operation in ("add", "sub") else 2

    def _opposite(self, term: int) -> int:
        """The negative, with the minus at the first factor: ``-x*y``, not ``-(x*y)``."""
        chain = []
        while self.terms.operations[term] in ("mul", "div"):
            chain.append(term)
            term = self.terms.arguments[term][0]
        result = super()._opposite(term)
        for above in reversed(chain):
            result = self.terms.make(self.terms.operations[above], result, self.terms.arguments[above][1])
        return result


def _fitting(forms: Iterator[_Form]) -> Iterator[_Form]:
    """The forms up to the first that cannot be expressed."""
    try:
        yield from forms
    except Unfit:
        return


def _with(total: Sum, rest: Mapping[int, Coefficient], constant: Coefficient, part: int, factor: Coefficient) -> Sum:
    """A sum with other parts, a larger constant, and one part more."""
    parts = dict(rest)
    parts[part] = plus(parts.get(part, ZERO), factor)
    found = {p: f for p, f in parts.items() if f[0] != 0}
    return Sum(plus(total.constant, constant), found)


def _digits(number: float) -> int:
    return len(repr(abs(number)).partition("e")[0].replace(".", "").strip("0"))
