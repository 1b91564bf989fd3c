"""Constants that functions let out: ``2.5*sqrt(4*x)`` is ``5*sqrt(x)``, ``1 + log(2*x)`` is ``log(x) + 1.69``.

A formula with a constant inside such a function and another one outside has a constant too many: it is longer than it
need be, and no data determine both.
"""

from __future__ import annotations

from shine.lang.forms.facts import basic_where
from shine.lang.simplify.functions import FunctionBuilder, common_power
from shine.lang.simplify.sums import Product, Sum, combined, raised
from shine.lang.simplify.terms import (
    MINUS_ONE,
    ONE,
    ZERO,
    Coefficient,
    Unfit,
    coefficient,
    plus,
    times,
    to_the_power,
    value,
)

_ODD = basic_where(lambda facts: facts.family == "function" and facts.parity == "odd")


class ConstantMover(FunctionBuilder):
    """Moves constants out of functions."""

    def let_out(self, base: int) -> Product | None:
        """A function as a multiple of another one; None if it has no constant inside that it lets out.

        Raises
        ------
        Unfit
            If the constant leaves the range in which coefficients are merged.
        """
        operation, arguments = self.terms.operations[base], self.terms.arguments[base]
        if operation in _ODD:
            return self._with_sign_outside(operation, arguments)
        if operation == "exp":
            return self._with_factor_of_exponential(arguments)
        if operation == "log":
            return self._with_exponent_outside(arguments)
        if operation not in ("sqrt", "pow"):
            return None
        own, factors = self.product_of(arguments[0])
        if own == ONE or own[0] <= 0 or not factors:
            return None
        exponent = arguments[1:]
        if exponent and self.terms.number(exponent[0]) is None:
            return None
        scale = self._folded(operation, value(own), *exponent)
        if scale is None:
            return None
        rest = self.function(operation, (self.product(ONE, factors), *exponent))
        return self._times(scale, rest)

    def _with_sign_outside(self, operation: str, arguments: tuple[int, ...]) -> Product | None:
        own, _ = self.product_of(arguments[0])
        if self.is_sum(arguments[0]) or own[0] >= 0:
            return None
        return self._times(MINUS_ONE, self.function(operation, (self.opposite(arguments[0]),)))

    def _with_exponent_outside(self, arguments: tuple[int, ...]) -> Product | None:
        """``log(x**2)`` as ``2*log(x)`` if x is never negative."""
        own, factors = self.product_of(arguments[0])
        power, root = common_power(self, factors) if own == ONE and factors else (1, {})
        if power == 1:
            return None
        return self._times((float(power), 1.0), self.function("log", (self.product(ONE, root),)))

    def _with_factor_of_exponential(self, arguments: tuple[int, ...]) -> Product | None:
        total = self.sum_of(arguments[0])
        shift = value(total.constant)
        # Largest summand that an exponential lets out as a factor: ``exp(x)`` underflows only where ``exp(x + 20)``
        # nearly does, and overflows only where ``exp(x - 20)`` nearly does.
        if not total.parts or not 0 < abs(shift) <= 20.0:
            return None
        scale = self._folded("exp", shift)
        if scale is None:
            return None
        return self._times(scale, self.function("exp", (self.written_sum(Sum(ZERO, total.parts)),)))

    def _times(self, scale: Coefficient, rest: int) -> Product:
        own, factors = self.product_of(rest)
        return Product(times(scale, own), factors)

    def _folded(self, operation: str, number: float, *others: int) -> Coefficient | None:
        folded = self.terms.fold(operation, [self.terms.constant(number), *others])
        return None if folded is None else coefficient(self.terms.values[folded])

    def product_with_constants_outside(self, product: Product) -> int | None:
        """A product without constants inside its factors; None if there are none."""
        scale, factors = product.coefficient, dict(product.factors)
        try:
            for base, exponent in product.factors.items():
                found = self.let_out(base)
                if found is not None and found.coefficient[0] != 0:
                    scale = times(scale, to_the_power(found.coefficient, exponent))
                    factors = combined(combined(factors, {base: -exponent}), raised(found.factors, exponent))
            return None if factors == product.factors else self.product(scale, factors)
        except Unfit:
            return None

    def sum_with_constants_outside(self, total: Sum) -> Sum | None:
        """A sum whose logarithms have no factors, and its odd functions no minus; None if there are no such parts."""
        constant, parts = total.constant, dict(total.parts)
        try:
            for part, factor in total.parts.items():
                found = self._part_let_out(part)
                if found is not None:
                    shift, rest, own = found
                    constant = plus(constant, times(factor, shift))
                    del parts[part]
                    parts[rest] = plus(parts.get(rest, ZERO), times(own, factor))
        except Unfit:
            return None
        return None if parts == total.parts else Sum(constant, {p: f for p, f in parts.items() if f[0] != 0})

    def _part_let_out(self, part: int) -> tuple[Coefficient, int, Coefficient] | None:
        """A part as a constant plus another part with its coefficient."""
        inner = self.exact.inside(part, "log")
        if inner is None:
            found = self.let_out(part) if self.terms.operations[part] in _ODD else None
            return None if found is None else (ZERO, self.product(ONE, found.factors), found.coefficient)
        own, factors = self.product_of(inner)
        if own == ONE and (found := self.let_out(part)) is not None:
            return ZERO, self.product(ONE, found.factors), found.coefficient
        if own == ONE or own[0] <= 0 or not factors:
            return None
        shift = self._folded("log", value(own))
        if shift is None:
            return None
        # The logarithm of 1/x is that of x with a minus.
        sign = 1 if any(exponent > 0 for exponent in factors.values()) else -1
        return shift, self.function("log", (self.product(ONE, raised(factors, sign)),)), (float(sign), 1.0)

    def written_sum(self, total: Sum) -> int:
        """The shortest formula found for a sum. A subclass implements it."""
        raise NotImplementedError(f"{type(self).__name__} writes no sums")
