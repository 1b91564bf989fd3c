"""Rules that spreadsheets and databases share: accurate formulas for functions that they lack or round badly."""

from __future__ import annotations

from shine.formats.write.expressions.infix import Infix
from shine.formats.write.expressions.phrases import Phrase


class Corrected(Infix):
    """Infix text for languages without `log1p`, `expm1` and `hypot`."""

    def squared(self, base: Phrase) -> Phrase:
        """The square of a phrase."""
        return self.rules()["pow"](base, self.number(2))

    def log1p(self, operand: Phrase) -> Phrase:
        """``log(1 + x)`` = ``2*artanh(x/(2 + x))``, which does not round a small x away."""
        number, two = self.numeric(operand), self.number(2)
        small = self.mul(two, self.call("ATANH", self.div(number, self.add(number, two))))
        return self._near(number, 0.5, small, self.rules()["log"](self.add(number, self.number(1))))

    def expm1(self, operand: Phrase) -> Phrase:
        """``exp(x) - 1`` = ``2*sinh(x/2)*exp(x/2)``, which does not cancel for a small x."""
        number, two = self.numeric(operand), self.number(2)
        half = self.div(number, two)
        small = self.mul(self.mul(two, self.rules()["sinh"](half)), self.rules()["exp"](half))
        return self._near(number, 1, small, self.sub(self.rules()["exp"](number), self.number(1)))

    def _near(self, number: Phrase, bound: float, small: Phrase, other: Phrase) -> Phrase:
        near = self.rules()["lt"](self.rules()["abs"](number), self.number(bound))
        return self.rules()["where"](near, small, other)

    def hypot(self, left: Phrase, right: Phrase) -> Phrase:
        """``sqrt(a*a + b*b)``, scaled by the longer leg, so that the squares neither overflow nor vanish."""
        rules = self.rules()
        a, b = rules["abs"](left), rules["abs"](right)

        def longer(leg: Phrase, ratio: Phrase) -> Phrase:
            return self.mul(leg, rules["sqrt"](self.add(self.number(1), self.squared(ratio))))

        # Equal legs may both be 0 or infinite: then their quotient is NaN.
        same = self.mul(rules["sqrt"](self.number(2)), a)
        other = rules["where"](rules["eq"](a, b), same, longer(a, self.div(right, left)))
        return rules["where"](rules["lt"](a, b), longer(b, self.div(left, right)), other)

    def multiplied(self, left: Phrase, right: Phrase) -> Phrase:
        """Product of two phrases; the square of a long phrase is a power, so that the phrase is written once."""
        if left is right and not left.simple:
            return self.squared(left)
        return super().multiplied(left, right)
