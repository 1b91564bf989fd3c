"""Algebra up to rounding: sums and products as wholes.

A *region* is a connected part of a formula that is one sum, or one product, in any order and nesting of its operations:
``a - (b - 2*(c + 1))``. Its leaves are simplified first, then collected into one table. From the table, the region is
written in the shortest form found. If the original region has fewer nodes, it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import NamedTuple

from shine.lang.simplify.inner_constants import ConstantMover
from shine.lang.simplify.sums import LARGEST_EXPONENT, Product, Sum, combined, plus_sum, raised, times_sum
from shine.lang.simplify.terms import (
    CONSTANT,
    ONE,
    ZERO,
    Coefficient,
    Terms,
    Unfit,
    coefficient,
    negative,
    plus,
    times,
    to_the_power,
    value,
)

SUMS = frozenset({"add", "sub", "neg"})
_PRODUCTS = {"mul": 1, "div": 1, "inv": -1, "square": 2, "cube": 3, "pow": 1}
"""Operations of a product, with the exponent of the first argument."""


class Region(NamedTuple):
    """One sum or product: its constant, its leaves with coefficients or exponents, and the operations between them."""

    constant: Coefficient
    leaves: list[tuple[Coefficient, int]] | list[tuple[int, int]]
    interior: list[int]


def region_of(terms: Terms, term: int) -> Region | None:
    """The region below a term; None if the term is neither a sum nor a product, or numbers leave their range."""
    try:
        if terms.operations[term] in SUMS:
            return _sum_region(terms, term)
        return _product_region(terms, term) if _exponents(terms, term) else None
    except Unfit:
        return None


def _exponents(terms: Terms, term: int) -> tuple[int, ...]:
    """Exponents of the arguments of a product; none for other terms."""
    operation, arguments = terms.operations[term], terms.arguments[term]
    if operation == "pow":
        exponent = terms.number(arguments[1])
        whole = exponent is not None and exponent.is_integer() and abs(exponent) <= LARGEST_EXPONENT
        return (int(exponent),) if whole and exponent is not None else ()
    if operation == "neg":
        return (1,)
    if operation not in _PRODUCTS:
        return ()
    return (_PRODUCTS[operation], -1 if operation == "div" else 1)[: len(arguments)]


def _sum_region(terms: Terms, root: int) -> Region:
    constant, leaves, interior = ZERO, list[tuple[Coefficient, int]](), list[int]()
    stack = [(ONE, root)]
    while stack:
        factor, term = stack.pop()
        operation, arguments = terms.operations[term], terms.arguments[term]
        if operation in SUMS:
            interior.append(term)
            signs = (factor, negative(factor) if operation == "sub" else factor)
            if operation == "neg":
                signs = (negative(factor), ZERO)
            stack += reversed(list(zip(signs, arguments, strict=False)))
        elif operation == CONSTANT:
            constant = plus(constant, times(factor, coefficient(terms.values[term])))
        elif (scaled := _multiple(terms, term)) is not None and terms.operations[scaled[1]] in SUMS:
            interior.append(term)
            stack.append((times(factor, scaled[0]), scaled[1]))
        else:
            leaves.append((factor, term))
    return Region(constant, leaves, interior)


def _multiple(terms: Terms, term: int) -> tuple[Coefficient, int] | None:
    """The constant and the other factor of a product or quotient with a constant; None for other terms."""
    operation, arguments = terms.operations[term], terms.arguments[term]
    if operation not in ("mul", "div"):
        return None
    numbers = [terms.number(argument) for argument in arguments]
    if numbers[1]:
        return coefficient(numbers[1]) if operation == "mul" else coefficient(1.0, numbers[1]), arguments[0]
    if numbers[0] and operation == "mul":
        return coefficient(numbers[0]), arguments[1]
    return None


def _product_region(terms: Terms, root: int) -> Region:
    numbers, leaves, interior = list[tuple[int, float]](), list[tuple[int, int]](), list[int]()
    constant = ONE
    stack = [(1, root)]
    while stack:
        exponent, term = stack.pop()
        exponents = _exponents(terms, term)
        if terms.operations[term] == CONSTANT:
            numbers.append((exponent, terms.values[term]))
        elif exponents and max(abs(exponent * own) for own in exponents) <= LARGEST_EXPONENT:
            interior.append(term)
            if terms.operations[term] == "neg" and exponent % 2:
                constant = negative(constant)
            pairs = zip((exponent * own for own in exponents), terms.arguments[term], strict=False)
            stack += [(own, argument) for own, argument in reversed(list(pairs)) if own]
        else:
            leaves.append((exponent, term))
    return Region(times(constant, _product_of(numbers, terms.are_ordinary)), leaves, interior)


def _product_of(numbers: Sequence[tuple[int, float]], far: bool) -> Coefficient:
    """The product of powers of numbers, which may be `far` outside the range of coefficients before they return."""
    try:
        product = ONE
        for exponent, number in numbers:
            product = times(product, to_the_power(coefficient(number), exponent))
        return product
    except Unfit:
        if not far or any(number == 0 for _, number in numbers):
            raise
        exact = prod((Fraction(number) ** exponent for exponent, number in numbers), start=Fraction(1))
        if not 2.0**-LARGEST_SCALE < abs(exact) < 2.0**LARGEST_SCALE:
            raise
        return coefficient(float(exact))


LARGEST_SCALE = 1000
"""Largest binary exponent of a number that is made here: it is finite and not subnormal."""

_MOST_EXPANDED = 12
"""Most parts of a sum that is multiplied out to see whether parts cancel."""


class Algebra(ConstantMover):
    """Simplifies terms.

    Parameters
    ----------
    terms : Terms
    allowed : frozenset of str
        Functions that a rule may introduce.
    """

    largest_expanded = 1
    """Largest power of a sum that is multiplied out."""

    def __init__(self, terms: Terms, allowed: frozenset[str]) -> None:
        super().__init__(terms, allowed)
        self._simplified: dict[int, int] = {}
        self._regions: dict[int, Region | None] = {}
        self._written: dict[object, int] = {}
        self.finished = 0
        """Nodes of the formula that are simplified already."""

    def simplified(self, root: int) -> int:
        """A term that is equal to the root up to rounding, and no longer."""
        stack = [root]
        while stack:
            term = stack[-1]
            if term not in self._simplified:
                missing = [leaf for leaf in self._leaves(term) if leaf not in self._simplified]
                if missing:
                    stack += missing
                    continue
                self._simplified[term] = self._finish(term)
            stack.pop()
        return self._simplified[root]

    def _leaves(self, term: int) -> list[int] | tuple[int, ...]:
        if term not in self._regions:
            self._regions[term] = region_of(self.terms, term)
        region = self._regions[term]
        return self.terms.arguments[term] if region is None else [leaf for _, leaf in region.leaves]

    def _finish(self, term: int) -> int:
        region = self._regions.pop(term)
        self.finished += 1 if region is None else len(region.interior) + len(region.leaves)
        if not self.terms.arguments[term]:
            return term
        if region is None:
            operation = self.terms.operations[term]
            arguments = tuple(self._simplified[argument] for argument in self.terms.arguments[term])
            return self.function(operation, arguments)
        table: Sum | Product
        try:
            is_sum = self.terms.operations[term] in SUMS
            table = self._collected_sum(region) if is_sum else self._collected_product(region)
        except Unfit:
            return self._as_it_was(term, region)
        try:
            result = self.written_sum(table) if isinstance(table, Sum) else self.written_product(table)
            saved = sum(self.rank(leaf)[0] - self.rank(self._simplified[leaf])[0] for _, leaf in region.leaves)
            if self.rank(result)[0] <= self.rank(term)[0] - saved:
                return result
            kept = self._as_it_was(term, region)
            if self.rank(result)[0] <= self.rank(kept)[0]:
                return result
        except Unfit:
            kept = self._as_it_was(term, region)
        # Regions above this one need its table, even if it is not written from the table.
        return self.remember_sum(kept, table) if isinstance(table, Sum) else self.remember_product(kept, table)

    def _as_it_was(self, root: int, region: Region) -> int:
        """The region with simplified leaves; only local rules apply to its operations."""
        written: dict[int, int] = {}
        for term in sorted(set(region.interior)):
            arguments = tuple(
                written[argument] if argument in written else self._simplified.get(argument, argument)
                for argument in self.terms.arguments[term]
            )
            written[term] = self.exact.apply(self.terms.operations[term], arguments, 0)
        return written[root]

    def _collected_sum(self, region: Region) -> Sum:
        constant, parts = region.constant, dict[int, Coefficient]()
        for factor, leaf in region.leaves:
            assert isinstance(factor, tuple)
            total = self.sum_of(self._simplified[leaf])
            constant = plus(constant, times(factor, total.constant))
            for part, own in total.parts.items():
                scaled = times(factor, own)
                parts[part] = plus(parts[part], scaled) if part in parts else scaled
        return Sum(constant, {part: factor for part, factor in parts.items() if factor[0] != 0})

    def written_sum(self, total: Sum) -> int:
        """The shortest formula found for a sum."""
        key = total.constant, frozenset(total.parts.items())
        if key not in self._written:
            self._written[key] = self.best_sum(total)
        return self._written[key]

    def best_sum(self, total: Sum) -> int:
        """The shortest formula of those that are tried for a sum."""
        if len(total.parts) == 1 and total.constant[0] == 0:
            ((part, factor),) = total.parts.items()
            own, factors = self.product_of(part)
            return self.written_product(Product(times(factor, own), factors))
        result = self.shortest_sum(total)
        for other in (self.expanded(total), self.sum_with_constants_outside(total)):
            if other is not None:
                candidate = self.shortest_sum(other)
                if self.rank(candidate) < self.rank(result):
                    result = candidate
        return result

    def expanded(self, total: Sum) -> Sum | None:
        """The sum with products of sums multiplied out; None if there are no such products or too many parts."""
        constant, parts, changed = total.constant, dict[int, Coefficient](), False
        if len(total.parts) > _MOST_EXPANDED:
            return None
        for part, factor in total.parts.items():
            own, factors = self.product_of(part)
            base = next(
                (base for base, e in factors.items() if 1 <= e <= self.largest_expanded and self.is_sum(base)), None
            )
            if base is None:
                parts[part] = plus(parts.get(part, ZERO), factor)
                continue
            changed = True
            inner = self.sum_of(base)
            rest = combined(factors, {base: -1})
            items: list[tuple[Coefficient, Mapping[int, int]]] = [(inner.constant, {})]
            items += [(times(c, k), inside) for p, c in inner.parts.items() for k, inside in [self.product_of(p)]]
            if len(items) + len(parts) > _MOST_EXPANDED:
                return None
            for c, inner_factors in items:
                scale = times(times(factor, own), c)
                product = combined(rest, inner_factors)
                if scale[0] == 0:
                    continue
                if not product:
                    constant = plus(constant, scale)
                    continue
                new = self.product(ONE, product)
                parts[new] = plus(parts.get(new, ZERO), scale)
        return Sum(constant, {part: factor for part, factor in parts.items() if factor[0] != 0}) if changed else None

    def _collected_product(self, region: Region) -> Product:
        constant, factors = region.constant, dict[int, int]()
        for exponent, leaf in region.leaves:
            assert isinstance(exponent, int)
            term = self._simplified[leaf]
            own, inside = self.product_of(term)
            if any(abs(exponent * e) > LARGEST_EXPONENT for e in inside.values()):
                own, inside = ONE, {term: 1}
            constant = times(constant, to_the_power(own, exponent))
            for base, e in inside.items():
                factors[base] = factors.get(base, 0) + exponent * e
        factors = {base: exponent for base, exponent in factors.items() if exponent}
        if constant[0] == 0:
            return Product(ZERO, {})
        constant, factors = self._proportional(constant, factors)
        constant, factors = self._even_powers(constant, factors)
        return Product(constant, self._roots(factors))

    def _proportional(self, constant: Coefficient, factors: dict[int, int]) -> tuple[Coefficient, dict[int, int]]:
        """The product, with sums that are multiples of each other merged into powers of one of them."""
        sums = [base for base in factors if self.is_sum(base)]
        if len(sums) < 2:
            return constant, factors
        found: dict[object, tuple[int, Coefficient]] = {}
        for base in sums:
            total = self.sum_of(base)
            lead = total.parts[min(total.parts)]
            scale = to_the_power(lead, -1)
            key = (times(scale, total.constant), frozenset((p, times(scale, c)) for p, c in total.parts.items()))
            first, first_lead = found.setdefault(key, (base, lead))
            if first != base:
                exponent = factors.pop(base)
                constant = times(constant, to_the_power(times(lead, to_the_power(first_lead, -1)), exponent))
                factors[first] += exponent
        return constant, {base: exponent for base, exponent in factors.items() if exponent}

    def _even_powers(self, constant: Coefficient, factors: dict[int, int]) -> tuple[Coefficient, dict[int, int]]:
        """The product with even powers of absolute values written without the absolute value."""
        result = dict(factors)
        for base, exponent in factors.items():
            inner = self.exact.inside(base, "abs")
            if inner is not None and exponent % 2 == 0:
                del result[base]
                own, inside = self.product_of(inner)
                constant = times(constant, to_the_power(own, exponent))
                result = combined(result, raised(inside, exponent))
        return constant, result

    def _roots(self, factors: dict[int, int]) -> Mapping[int, int]:
        """The factors with powers of square roots merged with powers of their arguments."""
        for base in [base for base in factors if self.terms.operations[base] == "sqrt"]:
            inner = self.terms.arguments[base][0]
            own, inside = self.product_of(inner)
            exponent = factors.get(base, 0)
            halves = exponent + 2 * factors.get(inner, 0)
            if exponent == 0 or (abs(exponent) == 1 and inner not in factors) or own != ONE:
                continue
            del factors[base]
            if list(inside) == [inner]:
                factors.pop(inner, None)
            else:
                halves = exponent
            whole, odd = int(halves / 2), halves % 2
            factors = combined(factors, {factor: e * whole for factor, e in inside.items() if whole})
            if odd:
                factors[base] = 1 if halves > 0 else -1
        return factors

    def written_product(self, product: Product) -> int:
        """The shortest formula found for a product."""
        key = product.coefficient, frozenset(product.factors.items()), "product"
        if key not in self._written:
            self._written[key] = self.best_product(product)
        return self._written[key]

    def best_product(self, product: Product) -> int:
        """The shortest formula of those that are tried for a product."""
        constant, factors = product
        if not factors or constant[0] == 0:
            return self.terms.constant(value(constant) + 0.0)
        result = self.product(constant, factors)
        bases = list(factors)[:_MOST_EXPANDED] if constant != ONE else []
        for candidate in [self._absorbed(constant, factors, base) for base in bases]:
            # Of equals, a sum is written without parentheses.
            if candidate is not None and (self.rank(candidate), len(factors) > 1) < (self.rank(result), True):
                result = candidate
        for other in (self._merged_exponentials(product), self.product_with_constants_outside(product)):
            if other is not None and self.rank(other) < self.rank(result):
                result = other
        return result

    def _absorbed(self, constant: Coefficient, factors: Mapping[int, int], base: int) -> int | None:
        """The product with its coefficient multiplied into one of its factors, a sum; None if that is impossible."""
        exponent = factors[base]
        if abs(exponent) != 1 or not self.is_sum(base):
            return None
        try:
            inner = self.shortest_sum(times_sum(to_the_power(constant, exponent), self.sum_of(base)))
            if len(factors) == 1 and exponent == 1:
                return inner
            own, inside = self.product_of(inner)
            rest = {other: e for other, e in factors.items() if other != base}
            return self.product(to_the_power(own, exponent), combined(rest, raised(inside, exponent)))
        except Unfit:
            return None

    def _merged_exponentials(self, product: Product) -> int | None:
        """The product with its exponentials merged: ``exp(a)*exp(b)`` is ``exp(a + b)``."""
        constant, factors = product
        exponentials = [base for base in factors if self.terms.operations[base] == "exp"]
        if not exponentials or (len(exponentials) == 1 and factors[exponentials[0]] == 1):
            return None
        try:
            total = Sum(ZERO, {})
            for base in exponentials:
                inner = self.sum_of(self.terms.arguments[base][0])
                total = plus_sum(total, times_sum((float(factors[base]), 1.0), inner))
            rest = {base: exponent for base, exponent in factors.items() if base not in exponentials}
            power = self.function("exp", (self.written_sum(total),))
            own, inside = self.product_of(power)
            return self.product(times(constant, own), combined(rest, inside))
        except Unfit:
            return None
