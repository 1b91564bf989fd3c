"""Sines and cosines as people write them: ``sin(2*x)`` for ``2*sin(x)*cos(x)``, ``cos(x)**2`` for ``1 - sin(x)**2``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shine.lang.simplify.coefficients import ONE, ZERO, Coefficient, negative, plus, times
from shine.lang.simplify.powers import PowerForms
from shine.lang.simplify.tables import Product, Sum, combined, times_sum


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
