"""The form that people write: a formula with few and common symbols, equal up to rounding.

The search's own form has only the functions that the search draws from. This one may use any common function, and
identities that are worth trying once, at the end: powers collected, squares completed or multiplied out, double angles,
laws of exponentials and logarithms. Of equal forms the shortest is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from shine.lang.forms.facts import names_where
from shine.lang.forms.library import STANDARD
from shine.lang.forms.named_numbers import (
    DIGITS,
    DIGITS_OF_FUNCTIONS,
    MOST_FIGURES,
    UNITS,
    figures,
    named_number,
    plain_figures,
    short,
)
from shine.lang.forms.tree import Tree
from shine.lang.interpret import EXACT, Functions
from shine.lang.numerals import exponent_of
from shine.lang.simplify.powers import PowerForms
from shine.lang.simplify.simplifier import settled
from shine.lang.simplify.sums import Product, Sum, combined, plus_sum, raised, times_sum
from shine.lang.simplify.terms import (
    MINUS_ONE,
    NAME,
    NO_RANGES,
    ONE,
    ZERO,
    Coefficient,
    Range,
    Terms,
    Unfit,
    coefficient,
    negative,
    plus,
    times,
    to_the_power,
    value,
)


class AngleForms(PowerForms):
    """Other forms of products and sums with sines and cosines of one angle."""

    def other_products(self, product: Product) -> Iterator[Product]:
        """Equal products, to try instead of a product."""
        yield from super().other_products(product)
        yield from self._angles(product)

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

    def squared_sines(self, total: Sum) -> Iterator[Sum]:
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

    def _multiple(self, factor: float, term: int) -> int:
        if self.is_sum(term):
            return self.shortest_sum(times_sum((factor, 1.0), self.sum_of(term)))
        own, factors = self.product_of(term)
        return self.written_product(Product(times((factor, 1.0), own), factors))


def _with(total: Sum, rest: Mapping[int, Coefficient], constant: Coefficient, part: int, factor: Coefficient) -> Sum:
    """A sum with other parts, a larger constant, and one part more."""
    parts = dict(rest)
    parts[part] = plus(parts.get(part, ZERO), factor)
    found = {p: f for p, f in parts.items() if f[0] != 0}
    return Sum(plus(total.constant, constant), found)


COMMON = names_where(
    lambda facts: facts.family == "arithmetic" or facts.period or (facts.family == "function" and facts.nests_freely)
) - {"inv", "cbrt"}
"""Functions that a tidy formula may use besides its own: arithmetic, roots and sines, but no names where people write
`1/x` and `x**(1/3)`."""


def tidy(
    tree: Tree,
    functions: Functions = EXACT,
    ranges: Mapping[str, Range] = NO_RANGES,
    digits: int = DIGITS,
    *,
    exact: bool = False,
) -> Tree:
    """An equal formula in the form that people write.

    Parameters
    ----------
    tree : Tree
        A formula of float64 numbers.
    functions : mapping of str to callable
        The functions that fold constants (see `shine.lang.simplify.simplifier.simplify`).
    ranges : mapping of str to (float, float)
        The least and the greatest value of parameters, where they are known.
    digits : int
        Digits of the constants that are right: where fewer are short, the others count as rounding.
    exact : bool
        Whether figures of numbers count as nodes do: ``3*x**2 + 7*x + 5``, not ``3*(x + 7/6)**2 + 11/12``.

    Returns
    -------
    Tree
        It has no more nodes, or nodes and figures. Its values are equal up to rounding wherever all intermediate values
        of the tree are finite and none of them underflows to zero. It may have finite values where the tree has none:
        ``log(x) + log(y)`` becomes ``log(x*y)``.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> tidy(parse("-1.0*(sqrt(square(v))*x) + 2.25 - square(y - 1.5)")).readable
    'y*(3 - y) - x*abs(v)'
    """
    tree = replace(tree, functions={**STANDARD, **tree.functions})

    def step(terms: Terms) -> Callable[[int], int]:
        return _Tidy(terms, COMMON.union(terms.operations), digits, exact).simplified

    return settled(tree, step, functions, ranges, nodes_and_figures if exact else lambda tree: tree.size)


def nodes_and_figures(tree: Tree) -> int:
    """Nodes of a formula, and figures of its numbers."""
    return tree.size + sum(plain_figures(float(detail)) for kind, detail in tree.tokens[1:] if kind == "constant")


_Form = TypeVar("_Form", Product, Sum)


class _Tidy(AngleForms):
    """Simplifies terms, with more rules and the order that people use."""

    largest_expanded = 2

    def __init__(self, terms: Terms, allowed: frozenset[str], digits: int, exact: bool) -> None:
        super().__init__(terms, allowed, digits, exact)
        self._nested = 0

    def best_product(self, product: Product) -> int:
        """The best formula of those that are tried for a product."""
        product = self._with_turned_sum(product)
        result = super().best_product(product)
        for other in self._tried(self.other_products(product)):
            try:
                candidate = super().best_product(other)
            except Unfit:
                continue
            if self.rank(candidate) < self.rank(result):
                result = candidate
        multiplied = self._multiplied_out(product)
        return result if multiplied is None or self.rank(multiplied) >= self.rank(result) else multiplied

    def _tried(self, forms: Iterator[_Form]) -> Iterator[_Form]:
        """The forms up to the first that cannot be expressed, within the bound of the work."""
        self._nested += 1
        try:
            while self._may_try and (form := next(forms, None)) is not None:
                yield form
        except Unfit:
            return
        finally:
            self._nested -= 1

    @property
    def _may_try(self) -> bool:
        """Whether the work so far leaves time for other forms: it is in proportion to the formula simplified so far."""
        # Most forms that are tried one within the other.
        # Most work of a pass, for each node that it has simplified and besides, after which it tries no other forms
        # (see `Terms.work`)
        return self._nested <= 4 and self.terms.work < 500 + 20 * self.finished

    def _multiplied_out(self, product: Product) -> int | None:
        """``x*(2 - y/x)`` as ``2*x - y``; None if there is no sum to multiply with."""
        if not self._may_try or not any(self.is_sum(base) for base in product.factors):
            return None
        try:
            total = self.expanded(Sum(ZERO, {self.product(ONE, product.factors): product.coefficient}))
            return None if total is None or len(total.parts) < 2 else self.shortest_sum(total)
        except Unfit:
            return None

    def _divided(self, factor: Coefficient, alone: bool) -> Coefficient:
        """The quotient with the fewest nodes and figures: ``x/3``, ``x/pi``, ``x/1.4``; in exact formulas, ``4*x/7``.

        A factor stays as it is unless that saves more than a point, or if it is a whole number, divides by one or,
        outside exact formulas, is a short decimal. One that is `alone`, with others below only, is written even if 1.
        """
        number, digits = value(factor), self._digits
        size, above, below = (short(abs(part), digits) for part in (number, *factor))
        named = named_number(size)
        if named is not None and named.is_below and named.numerator == 1 and not alone:
            return math.copysign(1.0, number), named.denominator * UNITS[named.unit]
        is_short = not self._counts_figures and figures(size) <= min(MOST_FIGURES, digits - 2)
        if (below == 1 and (is_short or size.is_integer())) or (above == 1 and below.is_integer()):
            return factor

        def length(way: Coefficient) -> tuple[int, int]:
            written = [each for each, needed in zip(way, (alone or way[0] != 1, way[1] != 1), strict=True) if needed]
            length = sum(map(self._length, written)) - (way == ways[0])
            return 2 * len(written) + self._counts_figures * length, length

        ways, inverse = [(above, below), (size, 1.0)], short(1 / size, digits)
        # More figures than half of the digits that are right may be those of another number.
        if figures(inverse) <= (digits + 1) // 2:
            ways.append((1.0, inverse))
        # No fraction has fewer than two nodes and two figures beside those of a decimal.
        first = exponent_of(size)
        for power in (0, first, first + 1) if self._counts_figures and self._length(size) > 5 else ():
            if (fraction := self._rational(Fraction(size) / Fraction(10) ** power)) is not None:
                ways.append((float(f"{fraction.numerator}e{power}"), float(fraction.denominator)))
        above, below = min(ways, key=length)
        return math.copysign(above, number), below

    def _rational(self, number: float | Fraction) -> Fraction | None:
        """The fraction of small numbers that a number is; None if it is none."""
        # Largest terms of other simple fractions
        found = Fraction(number).limit_denominator(99)
        right = abs(found.numerator) < 1000 and abs(found - Fraction(number)) * 10**self._digits <= abs(number)
        return found if right else None

    def _summand(self, number: float) -> int:
        above, below = map(self._number, self._divided((number, 1.0), alone=True))
        return above if self.terms.number(below) == 1 else self.terms.make("div", above, below)

    def other_products(self, product: Product) -> Iterator[Product]:
        """Equal products, to try instead of a product."""
        yield from super().other_products(product)
        for base, exponent in product.factors.items():
            if not self.is_sum(base):
                continue
            total = self.sum_of(base)
            turned = self.shortest_sum(times_sum(MINUS_ONE, total))
            if self.rank(turned) < self.rank(base):
                # (x - 4)/(-0.2*y - 3) as (4 - x)/(0.2*y + 3).
                factors = combined(combined(product.factors, {base: -exponent}), {turned: exponent})
                sign = negative(product.coefficient) if exponent % 2 else product.coefficient
                yield self._with_turned_sum(Product(sign, factors))
            whole, below = total, self._divisors(total)
            for divisor in below:
                whole = self._times_divisor(whole, divisor)
            if below and exponent == -1 and ONE in whole.parts.values():
                # x/(x/y + 1) as x*y/(x + y); 1/(0.3/x + 0.5) stays.
                own, inside = self.product_of(self.shortest_sum(whole))
                factors = combined(combined(product.factors, {base: 1}), dict.fromkeys(below, 1))
                yield Product(times(product.coefficient, to_the_power(own, -1)), combined(factors, raised(inside, -1)))
            if abs(exponent) == 1:
                shares = self._common_shares(total, product.coefficient if exponent < 0 else ONE)
                for factor in dict.fromkeys((*total.parts.values(), total.constant, *shares)):
                    if factor in (ZERO, ONE, MINUS_ONE):
                        continue
                    # 2.7*x/(y + 0.37037037037037*z) as 7.29*x/(2.7*y + z).
                    scaled = self.shortest_sum(times_sum(to_the_power(factor, -1), total))
                    factors = combined(combined(product.factors, {base: -exponent}), {scaled: exponent})
                    yield Product(times(product.coefficient, to_the_power(factor, exponent)), factors)

    def _common_shares(self, total: Sum, above: Coefficient) -> tuple[Coefficient, ...]:
        """3/4 for ``1.5*x + 2.25``, which is ``3*(2*x + 3)/4``, in exact formulas; and 1/8 below ``0.875``."""
        found = [self._rational(value(factor)) for factor in (*total.parts.values(), total.constant, above)]
        known = [each.as_integer_ratio() for each in found if each is not None]
        if not self._counts_figures or len(known) < len(found):
            return ()
        numerators, divisors = zip(*known, strict=True)
        whole = coefficient(float(math.gcd(*numerators[:-1])), float(math.lcm(*divisors[:-1])))
        return whole, coefficient(1.0, float(math.lcm(*divisors)))

    def _with_turned_sum(self, product: Product) -> Product:
        """``-2*(x - y)`` as ``2*(y - x)``."""
        if product.coefficient[0] < 0:
            for base, exponent in product.factors.items():
                if exponent % 2 and self.is_sum(base):
                    turned = self.shortest_sum(times_sum(MINUS_ONE, self.sum_of(base)))
                    if self.rank(turned) <= self.rank(base):
                        factors = combined(combined(product.factors, {base: -exponent}), {turned: exponent})
                        return Product(negative(product.coefficient), factors)
        return product

    # Sums.

    def best_sum(self, total: Sum) -> int:
        """The best formula of those that are tried for a sum."""
        result = super().best_sum(total)
        for other in self._tried(self._other_sums(total)):
            try:
                candidate = super().best_sum(other)
            except Unfit:
                continue
            if self.rank(candidate) < self.rank(result):
                result = candidate
        return result

    def _other_sums(self, total: Sum) -> Iterator[Sum]:
        expanded = self.expanded(total)
        for _ in range(3):  # most products of sums that are multiplied out, one after the other
            if expanded is None:
                break
            yield expanded
            yield from self._completed_squares(expanded)
            yield from self._completed_products(expanded)
            expanded = self.expanded(expanded)
        yield from self._completed_squares(total)
        yield from self._completed_products(total)
        if self._counts_figures:
            yield from self._over_one_divisor(total)
        yield from self.squared_sines(total)
        merged = self._merged_logarithms(total)
        if merged is not None:
            yield merged
        yield from self._constants_in_logarithms(total)

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
            if self._counts_figures and -left / value(factor) > 0:
                # x**2 - 3*x + 2 as (x - 1)*(x - 2).
                root = math.sqrt(-left / value(factor))
                zeros = [self.shortest_sum(Sum(coefficient(shift + side), {base: ONE})) for side in (-root, root)]
                yield Sum(ZERO, {**rest, self.product(ONE, dict.fromkeys(zeros, 1)): factor})

    def _completed_products(self, total: Sum) -> Iterator[Sum]:
        """``5*x*y + 15*x - 15*y - 45`` as ``5*(x - 3)*(y + 3)``, in exact formulas."""
        items = [(part, factor, self.product_of(part)) for part, factor in total.parts.items()]
        bases = dict.fromkeys(
            base for _, _, (_, factors) in items for base, exponent in factors.items() if exponent == 1
        )
        for base in bases if self._counts_figures else ():
            inner, left = Sum(ZERO, {}), total
            for part, factor, (own, factors) in items:
                if factors.get(base) == 1:
                    rest, scale = combined(factors, {base: -1}), times(factor, own)
                    inner = plus_sum(inner, Sum(ZERO, {self.product(ONE, rest): scale}) if rest else Sum(scale, {}))
                    left = plus_sum(left, Sum(ZERO, {part: negative(factor)}))
            for part in filter(left.parts.__contains__, inner.parts):
                shift = times(left.parts[part], to_the_power(inner.parts[part], -1))
                after = plus_sum(left, times_sum(negative(shift), inner))
                if abs(value(after.constant)) <= abs(value(left.constant)) * 10.0**-self._digits:
                    shifted = self.shortest_sum(Sum(shift, {base: ONE}))
                    own, factors = self.product_of(self.shortest_sum(inner))
                    yield Sum(ZERO, {**after.parts, self.product(ONE, combined(factors, {shifted: 1})): own})

    def _over_one_divisor(self, total: Sum) -> Iterator[Sum]:
        """``1.4 - 1.76/(x + 1.4)`` as ``(1.4*x + 0.2)/(x + 1.4)``."""
        for base in filter(self.is_sum, self._divisors(total)):
            expanded = self.expanded(self._times_divisor(total, base))
            if expanded is not None:
                scale, factors = self.product_of(self.shortest_sum(expanded))
                yield Sum(ZERO, {self.product(ONE, combined(factors, {base: -1})): scale})

    def _divisors(self, total: Sum) -> list[int]:
        """What parts of a sum are divided by."""
        items = (item for part in total.parts for item in self.product_of(part).factors.items())
        return list(dict.fromkeys(base for base, exponent in items if exponent == -1))

    def _times_divisor(self, total: Sum, base: int) -> Sum:
        whole = Sum(ZERO, {base: total.constant} if total.constant != ZERO else {})
        for part, factor in total.parts.items():
            own, inside = self.product_of(part)
            above, scale = combined(inside, {base: 1}), times(factor, own)
            whole = plus_sum(whole, Sum(ZERO, {self.product(ONE, above): scale}) if above else Sum(scale, {}))
        return whole

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
            groups[abs(factor[0]), factor[1]] = combined(group, raised(factors, sign))
        if len(groups) + len(parts) >= len(total.parts) or not all(groups.values()):
            return None
        for factor, factors in groups.items():
            # A quotient below 1 would only change signs.
            sign = 1 if any(exponent > 0 for exponent in factors.values()) else -1
            product = self.written_product(Product(ONE, raised(factors, sign)))
            log = self.function("log", (product,))
            parts[log] = plus(parts.get(log, ZERO), times((float(sign), 1.0), factor))
        return Sum(total.constant, {part: factor for part, factor in parts.items() if factor[0]})

    def _constants_in_logarithms(self, total: Sum) -> Iterator[Sum]:
        """``15.830413858112 - log(x)`` as ``log(7.5e6/x)``."""
        for part, factor in total.parts.items():
            inner = self.exact.inside(part, "log")
            folded = self.terms.fold("exp", [self.terms.constant(value(total.constant))])
            if inner is None or abs(value(factor)) != 1 or folded is None or total.constant == ZERO:
                continue
            sign = 1 if factor[0] > 0 else -1
            own, factors = self.product_of(inner)
            number = short(self.terms.values[folded], DIGITS_OF_FUNCTIONS)
            if number == 0 or figures(number) > MOST_FIGURES:
                continue
            scale = times(coefficient(number), to_the_power(own, sign))
            log = self.terms.make("log", self.written_product(Product(scale, raised(factors, sign))))
            yield Sum(ZERO, {**{p: f for p, f in total.parts.items() if p != part}, log: ONE})

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
