"""Formulas for the tables of sums and products, as the allowed functions can write them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shine.lang.simplify.terms import ONE, ZERO, Coefficient, Terms, Unfit, coefficient, negative, plus, times, value


class Product(NamedTuple):
    """A coefficient, and a nonzero exponent for each factor."""

    coefficient: Coefficient
    factors: Mapping[int, int]


class Sum(NamedTuple):
    """A constant, and a nonzero coefficient for each part. Parts themselves have no coefficients."""

    constant: Coefficient
    parts: Mapping[int, Coefficient]


def combined(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """The factors of the product of two products."""
    result = dict(one)
    for base, exponent in other.items():
        total = result.pop(base, 0) + exponent
        if total:
            result[base] = total
    return result


def raised(factors: Mapping[int, int], exponent: int) -> dict[int, int]:
    """The factors of a power of a product."""
    return {base: own * exponent for base, own in factors.items()}


def times_sum(factor: Coefficient, total: Sum) -> Sum:
    """A multiple of a sum."""
    if factor == ONE:
        return total
    return Sum(times(factor, total.constant), {part: times(factor, own) for part, own in total.parts.items()})


def plus_sum(one: Sum, other: Sum) -> Sum:
    """The sum of two sums."""
    parts = dict(one.parts)
    for part, factor in other.parts.items():
        parts[part] = plus(parts.get(part, ZERO), factor)
    return Sum(plus(one.constant, other.constant), {part: factor for part, factor in parts.items() if factor[0] != 0})


LARGEST_EXPONENT = 64
"""Powers beyond this are not multiplied out."""

_NONE = -1
"""Marks a power that the allowed functions cannot express."""


class Builder:
    """Writes tables as formulas, and remembers the table of each formula.

    Parameters
    ----------
    terms : Terms
    allowed : frozenset of str
        Functions that formulas may use.
    """

    def __init__(self, terms: Terms, allowed: frozenset[str]) -> None:
        self.terms = terms
        self.allowed = allowed
        self._products: dict[int, Product] = {}
        self._sums: dict[int, Sum] = {}
        self._powers: dict[int, list[int]] = {}
        self._written_products: dict[tuple[Coefficient, tuple[tuple[int, int], ...]], tuple[int, int]] = {}
        self._work_on_powers = 0

    def rank(self, term: int) -> tuple[int, int]:
        """Rank of a term among those of the same value, the best first: by size, then by a subclass's additions."""
        return self.terms.sizes[term], 0

    def product_of(self, term: int) -> Product:
        """A simplified term as a product."""
        known = self._products.get(term)
        if known is not None:
            return known
        number = self.terms.number(term)
        return Product(ONE, {term: 1}) if number is None else Product(coefficient(number), {})

    def sum_of(self, term: int) -> Sum:
        """A simplified term as a sum."""
        known = self._sums.get(term)
        if known is not None:
            return known
        factor, factors = self.product_of(term)
        if not factors:
            return Sum(factor, {})
        part = self.product(ONE, factors)
        scaled = self._sums.get(part)
        if scaled is not None:
            return times_sum(factor, scaled)
        return Sum(ZERO, {part: factor})

    def remember_product(self, term: int, product: Product) -> int:
        """Remember the product of a term."""
        self._products.setdefault(term, product)
        return term

    def remember_sum(self, term: int, total: Sum) -> int:
        """Remember the sum of a term."""
        self._sums.setdefault(term, total)
        return term

    def is_sum(self, term: int) -> bool:
        """Whether a term is known to be a sum."""
        return term in self._sums

    def product(self, factor: Coefficient, factors: Mapping[int, int]) -> int:
        """A short formula for a product whose coefficient is not 0.

        Raises
        ------
        Unfit
            If the allowed functions cannot express it.
        """
        if factor == ONE and len(factors) == 1:
            ((base, exponent),) = factors.items()
            if exponent == 1:
                return base
        key = factor, tuple(factors.items())
        known = self._written_products.get(key)
        if known is None:
            begun = self.terms.work - self._work_on_powers
            term = self.remember_product(self._product(factor, factors), Product(factor, factors))
            self._written_products[key] = term, self.terms.work - self._work_on_powers - begun
            return term
        # The count goes on as if the product were written again.
        self.terms.work += known[1]
        return known[0]

    def _product(self, factor: Coefficient, factors: Mapping[int, int]) -> int:
        above = [(base, exponent) for base, exponent in factors.items() if exponent > 0]
        below = [(base, -exponent) for base, exponent in factors.items() if exponent < 0]
        number, divisor = self._divided(factor, not above) if "div" in self.allowed else (value(factor), 1.0)
        if divisor != 1 and abs(number) == 1:
            # The constant absorbs the sign.
            number, divisor = (1.0, math.copysign(divisor, number)) if above else (number, divisor)
        if not above:
            return (
                self._quotient(number, self._chain(divisor, below)) if below or divisor != 1 else self._number(number)
            )
        result = self._chain(1.0 if number == -1 else number, above)
        if below or divisor != 1:
            bottom = self._chain(divisor, below)
            if "div" in self.allowed:
                result = self.terms.make("div", result, bottom)
            else:
                result = self._make("mul", result, self._make("inv", bottom))
        return self._opposite(result) if number == -1 else result

    def _divided(self, factor: Coefficient, alone: bool) -> Coefficient:
        """A factor as it is written: people divide by whole numbers, and multiply by others: 0.3*x, not x/3.3333."""
        return factor if abs(factor[0]) == 1 and factor[1].is_integer() else (value(factor), 1.0)

    def _number(self, number: float) -> int:
        return self.terms.constant(number + 0.0)

    def _summand(self, number: float) -> int:
        return self._number(number)

    def _quotient(self, number: float, bottom: int) -> int:
        """A number divided by a term."""
        if number == 1 and "inv" in self.allowed:
            return self.terms.make("inv", bottom)
        if "div" in self.allowed:
            return self.terms.make("div", self._number(number), bottom)
        return self._make("mul", self._number(number), self._make("inv", bottom))

    def _opposite(self, term: int) -> int:
        if self.terms.operations[term] == "sub":
            left, right = self.terms.arguments[term]
            return self.terms.make("sub", right, left)
        if "neg" in self.allowed:
            return self.terms.make("neg", term)
        if "mul" in self.allowed:
            return self.terms.make("mul", self._number(-1.0), term)
        return self._make("sub", self._number(0.0), term)

    def _chain(self, number: float, powers: Iterable[tuple[int, int]]) -> int:
        """A product of a number and positive powers: the number, then names, then longer factors."""
        powers = list(powers)
        if number == 1 and len(powers) == 1:
            return self._power(*powers[0])
        by_exponent: dict[int, list[int]] = {}
        for base, exponent in powers:
            by_exponent.setdefault(exponent, []).append(base)
        pieces: list[int] = []
        for exponent, bases in by_exponent.items():
            alone = [self._power(base, exponent) for base in bases]
            if exponent > 1 and len(bases) > 1:
                together = self._power(self._multiplied(bases), exponent)
                if self.terms.sizes[together] < sum(self.terms.sizes[power] for power in alone) + len(alone) - 1:
                    alone = [together]
            for power in alone:
                # If a power is written as a product, its factors join the others, without parentheses.
                is_product = exponent > 1 and self.terms.operations[power] == "mul" and len(alone) == len(bases)
                pieces += self._factors(power) if is_product else [power]
        return self._multiplied(pieces, number)

    def _factors(self, term: int) -> list[int]:
        """Factors of nested multiplications, from left to right."""
        right = []
        while self.terms.operations[term] == "mul":
            term, factor = self.terms.arguments[term]
            right.append(factor)
        return [term, *reversed(right)]

    def _multiplied(self, pieces: list[int], number: float = 1.0) -> int:
        sizes, keys = self.terms.sizes, self.terms.keys
        ordered = sorted(pieces, key=lambda piece: (sizes[piece] > 1, keys[piece]))
        if number != 1 or not ordered:
            ordered.insert(0, self._number(number))
        result = ordered[0]
        for piece in ordered[1:]:
            result = self._make("mul", result, piece)
        return result

    def _power(self, base: int, exponent: int) -> int:
        """The shortest formula for a positive power, built from those of lower powers."""
        if exponent == 1:
            return base
        powers, begun = self._powers.setdefault(base, [base]), self.terms.work
        while len(powers) < exponent:
            n = len(powers) + 1
            ways = []
            if "square" in self.allowed and n % 2 == 0:
                ways.append(self._applied("square", powers[n // 2 - 1]))
            if "cube" in self.allowed and n % 3 == 0:
                ways.append(self._applied("cube", powers[n // 3 - 1]))
            if "pow" in self.allowed:
                ways.append(self.terms.make("pow", base, self._number(float(n))))
            if "mul" in self.allowed:
                ways.append(self._applied("mul", powers[-1], base))
            powers.append(min(ways, key=lambda way: self.terms.sizes[way] if way != _NONE else math.inf, default=_NONE))
        self._work_on_powers += self.terms.work - begun
        if powers[exponent - 1] == _NONE:
            raise Unfit
        return powers[exponent - 1]

    def _applied(self, operation: str, *arguments: int) -> int:
        return _NONE if _NONE in arguments else self.terms.make(operation, *arguments)

    def _make(self, operation: str, *arguments: int) -> int:
        if operation not in self.allowed:
            raise Unfit
        return self.terms.make(operation, *arguments)

    def sum(self, constant: Coefficient, parts: Mapping[int, Coefficient]) -> int:
        """A formula for a sum, term by term: added terms, then subtracted terms, then the constant.

        Raises
        ------
        Unfit
            If the allowed functions cannot express it.
        """
        keys = self.terms.keys
        added = sorted((part for part, factor in parts.items() if factor[0] > 0), key=keys.__getitem__)
        taken = sorted((part for part, factor in parts.items() if factor[0] < 0), key=keys.__getitem__)
        number = value(constant)
        if added:
            result = self.multiple(parts[added[0]], added.pop(0))
        elif number > 0 or not taken:
            result, number = self._summand(number), 0.0
        else:
            # The coefficient of the first term absorbs its sign; a function for the sign is the last resort.
            first = next((part for part in taken if self._is_signed_for_free(parts[part], part)), None)
            if first is None and number < 0:
                result, number = self._summand(number), 0.0
            else:
                first = taken[0] if first is None else first
                result = self.multiple(parts[first], first)
                taken.remove(first)
        for part in added + taken:
            result = self._plus(result, parts[part], part)
        if number != 0:
            result = self._plus_number(result, number)
        return result

    def _is_signed_for_free(self, factor: Coefficient, part: int) -> bool:
        sizes = self.terms.sizes
        return sizes[self.multiple(factor, part)] <= sizes[self.multiple(negative(factor), part)]

    def multiple(self, factor: Coefficient, part: int) -> int:
        """A part of a sum, times its coefficient."""
        if factor == ONE:
            return part
        own, factors = self.product_of(part)
        return self.product(times(factor, own), factors)

    def _plus(self, left: int, factor: Coefficient, part: int) -> int:
        positive = factor[0] > 0
        if ("add" if positive else "sub") in self.allowed:
            return self.terms.make("add" if positive else "sub", left, self.multiple((abs(factor[0]), factor[1]), part))
        other = self.multiple(factor if not positive else negative(factor), part)
        return self._make("sub" if positive else "add", left, other)

    def _plus_number(self, left: int, number: float) -> int:
        positive = number > 0
        if ("add" if positive else "sub") in self.allowed:
            return self.terms.make("add" if positive else "sub", left, self._summand(abs(number)))
        return self._make("sub" if positive else "add", left, self._number(-abs(number)))
