"""Powers, roots and exponentials as people write them: ``x**1.5`` for ``x*sqrt(x)``, ``4*exp(x)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from shine.lang.forms.named_numbers import DIGITS, DIGITS_OF_FUNCTIONS, MOST_FIGURES, figures, plain_figures, short
from shine.lang.simplify.algebra import Algebra
from shine.lang.simplify.sums import Product, Sum, combined, raised
from shine.lang.simplify.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Terms,
    Unfit,
    coefficient,
    times,
    to_the_power,
    value,
)


class PowerForms(Algebra):
    """Other forms of powers; of equally long formulas the one with fewer figures is better."""

    def __init__(self, terms: Terms, allowed: frozenset[str], digits: int = DIGITS, exact: bool = False) -> None:
        super().__init__(terms, allowed)
        self._digits, self._counts_figures, self._length = digits, exact, plain_figures if exact else figures
        self._figures: list[int] = []

    def rank(self, term: int) -> tuple[int, int]:
        """Size, and figures and signs of all numbers, which count as nodes do in exact formulas."""
        terms = self.terms
        # Arguments have smaller numbers than the terms that use them.
        for known in range(len(self._figures), term + 1):
            number = terms.number(known)
            inner = sum(self._figures[argument] for argument in terms.arguments[known])
            self._figures.append(inner if number is None else self._length(number))
        return terms.sizes[term] + self._counts_figures * self._figures[term], self._figures[term]

    def simplified(self, root: int) -> int:
        """A term that is equal to the root up to rounding, and no longer."""
        number = self.terms.number(root)
        return super().simplified(root) if number is None else self._number(number)

    def function(self, operation: str, arguments: tuple[int, ...]) -> int:
        """The best known term for a function of simplified arguments."""
        arguments = tuple(self._shortened(argument) for argument in arguments)
        result = super().function(operation, arguments)
        rule = self._RULES.get(operation)
        if rule is None or self.terms.operations[result] != operation:
            return result
        try:
            found = rule(self, self.terms.arguments[result])
        except Unfit:
            return result
        return result if found is None or self.terms.sizes[found] > self.terms.sizes[result] else found

    def _shortened(self, term: int) -> int:
        number = self.terms.number(term)
        return term if not number else self._number(number)

    def _number(self, number: float) -> int:
        return super()._number(short(number, self._digits))

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
        scale, factors = ONE, dict[int, int]()
        rest = {}
        for part, factor in total.parts.items():
            inner = self.exact.inside(part, "log")
            if inner is None:
                rest[part] = factor
            else:
                own, inside = self.product_of(self._pow(inner, value(factor)))
                scale, factors = times(scale, own), combined(factors, inside)
        constant = total.constant
        folded = self.terms.fold("exp", [self.terms.constant(value(constant))]) if constant != ZERO else None
        if folded is not None:
            number = short(self.terms.values[folded], DIGITS_OF_FUNCTIONS)
            if figures(number) < figures(value(constant)):
                scale, constant = times(scale, coefficient(number)), ZERO
        if scale == ONE and not (factors and (rest or constant == ZERO)):
            return None
        if rest or constant != ZERO:
            factors = combined(factors, {self.terms.make("exp", self.written_sum(Sum(constant, rest))): 1})
        return self.written_product(Product(scale, factors))

    def _logarithm_of_product(self, arguments: tuple[int, ...]) -> int | None:
        """``log(7275331.958/x)`` is ``15.8 - log(x)``."""
        log = self.terms.make("log", *arguments)
        total = self.sum_with_constants_outside(Sum(ZERO, {log: ONE}))
        if total is None:
            return None
        found = self.shortest_sum(Sum(coefficient(short(value(total.constant), DIGITS_OF_FUNCTIONS)), total.parts))
        return found if self.rank(found) < self.rank(log) else None

    _RULES: ClassVar[dict[str, Callable[[PowerForms, tuple[int, ...]], int | None]]] = {
        "sqrt": _root_of_power,
        "pow": _power_of_power,
        "exp": _exponential_of_sum,
        "log": _logarithm_of_product,
    }

    # Products.

    def other_products(self, product: Product) -> Iterator[Product]:
        """Equal products, to try instead of a product."""
        collected = self._collected_powers(product)
        if collected is not None:
            yield collected
        yield from self._merged_roots(product)
        yield from self._constants_in_roots(product)
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
        folds = False
        for base, exponent in product.factors.items():
            power = self._fractional(base)
            if power is not None:
                totals[power[0]] = totals.get(power[0], 0.0) + power[1] * exponent
                # (x**1.5)**2, and x**-0.5 as a divisor.
                folds = folds or abs(exponent) != 1 or power[1] < 0
        factors: dict[int, int] = {}
        for base, exponent in product.factors.items():
            if base in totals:
                totals[base] += exponent
            elif self._fractional(base) is None:
                factors[base] = exponent
        if len(factors) + len(totals) >= len(product.factors) and not folds:
            return None
        scale = product.coefficient
        for base, exact in totals.items():
            total = short(exact)
            if total != 0:
                # The power of a multiple, such as sqrt(-x)**2, has a coefficient of its own.
                own, inside = self.product_of(self._pow(base, abs(total)))
                sign = 1 if total > 0 else -1
                scale = times(scale, to_the_power(own, sign))
                factors = combined(factors, raised(inside, sign))
        return Product(scale, factors)

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
            factors = combined(factors, raised(inside, sign * exponent))
        rest = combined(product.factors, {base: -exponent for base, exponent in roots.items()})
        inner = [self.written_product(Product(scale, factors))]
        expanded = self.expanded(Sum(ZERO, {self.product(ONE, factors): scale})) if factors else None
        if expanded is not None:
            inner.append(self.written_sum(expanded))
        for term in inner:
            own, inside = self.product_of(self.function("sqrt", (term,)))
            yield Product(times(product.coefficient, to_the_power(own, sign)), combined(rest, raised(inside, sign)))

    def _constants_in_roots(self, product: Product) -> Iterator[Product]:
        """``1.4142135623730951*y*sqrt(x)`` as ``y*sqrt(2*x)``."""
        if product.coefficient == ONE:
            return
        for base, exponent in product.factors.items():
            inner = self.exact.inside(base, "sqrt")
            if inner is None or abs(exponent) != 1:
                continue
            own, inside = self.product_of(inner)
            square = value(times(own, to_the_power(product.coefficient, 2 * exponent)))
            square = short(square, min(self._digits, DIGITS_OF_FUNCTIONS))
            if figures(square) > MOST_FIGURES:
                continue
            root = self.terms.make("sqrt", self.written_product(Product(coefficient(square), inside)))
            sign = ONE if product.coefficient[0] > 0 else MINUS_ONE
            yield Product(sign, combined(product.factors, {base: -exponent, root: exponent}))
