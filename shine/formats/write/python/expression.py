"""Formulas as NumPy expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from shine.formats.write.expressions.infix import Infix
from shine.formats.write.expressions.phrases import Phrase, phrase, word

_COMPARISON, _OR, _AND = 1, 2, 3


class Expression(Infix):
    """Writes NumPy expressions. Conditions are arrays of bool until they are needed as numbers."""

    form = "a Python expression"
    sum, product, unary, power = 4, 5, 6, 7

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        """The NumPy expression of each primitive."""
        functions = {
            "abs": "abs", "sqrt": "sqrt", "exp": "exp", "log": "log", "floor": "floor", "ceil": "ceil", "sign": "sign",
            "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
            "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
            "log1p": "log1p", "expm1": "expm1", "log2": "log2", "log10": "log10", "cbrt": "cbrt",
        }  # fmt: skip
        comparisons = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
        return {
            **super().table(),
            **{name: self.calls(f"np.{function}") for name, function in functions.items()},
            **{name: self.comparison(f" {symbol} ", _COMPARISON) for name, symbol in comparisons.items()},
            "floordiv": lambda a, b: self.infix(a, "//", b, self.product),
            "mod": lambda a, b: self.infix(a, " % ", b, self.product),
            "pow": self._pow,
            "min": self.calls("np.minimum"),
            "max": self.calls("np.maximum"),
            "logical_not": self._not,
            "square": lambda a: self._pow(a, self.number(2)),
            "cube": lambda a: self._pow(a, self.number(3)),
            "inv": lambda a: self.div(self.number(1), a),
            "protected_sqrt": lambda a: self.call("np.sqrt", self.call("np.abs", a)),
        }

    def positive(self, value: int | float) -> Phrase:
        """The phrase of a number that is not negative, or NaN."""
        if not math.isfinite(value):
            return word("np.nan" if math.isnan(value) else "np.inf")
        # NumPy makes objects of integers beyond 64 bits; floats have the same value.
        exact = value if abs(value) <= 2**53 else float(value)
        return word(repr(exact))

    def numeric(self, operand: Phrase) -> Phrase:
        """An operand as a number: a condition becomes 1.0 or 0.0."""
        if not operand.condition:
            return operand
        return phrase("np.where(", operand, ", 1.0, 0.0)")

    def truth(self, operand: Phrase) -> Phrase:
        """An operand as a condition: whether a number is not 0."""
        if operand.condition:
            return operand
        return phrase(self.enclosed(operand, _OR), " != 0", strength=_COMPARISON, condition=True)

    def _pow(self, base: Phrase, exponent: Phrase) -> Phrase:
        if exponent.value == 0.5:
            # For the scalar exponent 0.5 NumPy takes the square root: NaN at -inf, -0.0 at -0.0.
            return self.power_half(self.numeric(base))
        parts = self.operand(base, self.power + 1), "**", self.operand(exponent, self.unary)
        return phrase(*parts, strength=self.power)

    def power_half(self, base: Phrase) -> Phrase:
        """``base**0.5`` with the exponent as an array."""
        return phrase("np.power(", base, ", np.full_like(", base, ", 0.5))")

    def both(self, left: Phrase, right: Phrase) -> Phrase:
        """The condition that two conditions hold."""
        return self.connected(left, " & ", right, _AND)

    def either(self, left: Phrase, right: Phrase) -> Phrase:
        """The condition that at least one of two conditions holds."""
        return self.connected(left, " | ", right, _OR)

    def _not(self, operand: Phrase) -> Phrase:
        if operand.condition:
            return phrase("~", self.enclosed(operand, self.unary), strength=self.unary, condition=True)
        return phrase(self.enclosed(operand, self.sum), " == 0", strength=_COMPARISON, condition=True)

    def where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        """A call of `np.where`; one of the operands if the condition is a number."""
        if condition.value is not None:
            chosen, other = (yes, no) if condition.value != 0 else (no, yes)
            # A number in place of an array would lose the shape.
            if chosen.value is None or other.value is not None:
                return chosen
        # Two integers would give an array of integers.
        yes, no = (operand if operand.value is None else self.number(operand.value) for operand in (yes, no))
        return phrase("np.where(", self.truth(condition), ", ", self.numeric(yes), ", ", self.numeric(no), ")")
