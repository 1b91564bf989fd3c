"""Text with infix operators: the base for a form that writes a formula as one expression.

A subclass states the binding strengths of the language's operators, how it writes a number and a condition, and a rule
for each primitive. `shine.formats.write.excel` is the smallest example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from shine.base.errors import ExportError
from shine.formats.write.translation import Translation
from shine.lang.forms.library import STANDARD
from shine.lang.interpret import REFERENCE, evaluate

ATOM = 99
"""Binding strength of text that never needs parentheses: names, numbers, calls."""

LONGEST = 1_000_000
"""Longest text that is written, in characters."""


@dataclass(frozen=True, eq=False, slots=True)
class Phrase:
    """A piece of text that stands for a value.

    Parameters
    ----------
    parts : tuple of str or Phrase
    strength : int
        Binding strength of its outermost operator.
    length : int
        Number of characters.
    depth : int
        Levels of nesting.
    condition : bool
        Whether its value is a truth value in the other language, not a number.
    value : float, optional
        Its value, if it is a number.
    opposite : Phrase, optional
        The phrase without its leading minus; for a condition, the condition that holds exactly where this one fails.
    real : bool
        Whether it is certainly a floating-point number, in a language that has integers too.
    """

    parts: tuple[str | Phrase, ...]
    strength: int
    length: int
    depth: int
    condition: bool = False
    value: float | None = None
    opposite: Phrase | None = None
    real: bool = False

    @property
    def simple(self) -> bool:
        """Whether it is one word or number, which may be repeated at no cost."""
        return self.depth == 0


def phrase(*parts: str | Phrase, strength: int = ATOM, condition: bool = False) -> Phrase:
    """A phrase made of parts."""
    length = sum(len(part) if isinstance(part, str) else part.length for part in parts)
    depth = 1 + max((part.depth for part in parts if isinstance(part, Phrase)), default=-1)
    return Phrase(parts, strength, length, depth, condition)


def word(text: str, strength: int = ATOM, condition: bool = False) -> Phrase:
    """A phrase of one word."""
    return Phrase((text,), strength, len(text), 0, condition)


def with_opposite(negative: Phrase, positive: Phrase) -> Phrase:
    """A phrase that begins with a minus, linked to the same phrase without it."""
    return replace(negative, opposite=positive)


def written(top: Phrase, form: str, limit: int = LONGEST) -> str:
    """The text of a phrase; an `ExportError` if it has more characters than the limit."""
    if top.length > limit:
        raise ExportError(
            f"the formula is too long for {form}: it has {_count(top.length)} characters, at most {limit} are allowed; "
            "values that are used several times are written out each time"
        )
    pieces: list[str] = []
    stack: list[str | Phrase] = [top]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            pieces.append(part)
        else:
            stack.extend(reversed(part.parts))
    return "".join(pieces)


def _count(length: int) -> str:
    return str(length) if length < 10**12 else f"about 10^{round(math.log10(length))}"


class Infix(Translation[Phrase]):
    """Translates formulas to text with infix operators.

    Primitives of constants are computed here, because languages disagree on ``1/0`` and ``1/2``.

    Attributes
    ----------
    sum, product, unary, power : int
        Binding strengths of the language's operators.
    folds : bool
        Whether primitives of constants are computed here.
    """

    sum, product, unary, power = 4, 5, 6, 7
    folds = True

    def __init__(self) -> None:
        super().__init__()
        self._rules: Mapping[str, Callable[..., Phrase]] = self.table()

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        """The rule of each primitive that has one; a subclass adds to these operators."""
        return {
            "add": self.add,
            "sub": self.sub,
            "mul": self.mul,
            "div": self.div,
            "neg": self.neg,
            "logical_and": self.logical_and,
            "logical_or": self.logical_or,
            "where": self.where,
        }

    def rules(self) -> Mapping[str, Callable[..., Phrase]]:
        """The table, made once."""
        return self._rules

    def apply(self, name: str, *operands: Phrase) -> Phrase:
        """The phrase of a primitive; a number if all operands are numbers."""
        if self.folds and all(operand.value is not None for operand in operands):
            return self.number(_folded(name, [operand.value for operand in operands if operand.value is not None]))
        return super().apply(name, *operands)

    def number(self, value: int | float) -> Phrase:
        """A number, with a minus in front if it is negative."""
        number = float(value)
        if math.copysign(1.0, number) < 0:
            positive = self.positive(-value)
            negative = with_opposite(phrase("-", self.enclosed(positive, self.power), strength=self.unary), positive)
            # A number is one word, whatever its sign.
            return replace(negative, value=number, depth=positive.depth)
        return replace(self.positive(value), value=number)

    def positive(self, value: int | float) -> Phrase:
        """The phrase of a number that is not negative, or NaN."""
        raise NotImplementedError

    def numeric(self, operand: Phrase) -> Phrase:
        """An operand as a number: a condition becomes 1 or 0."""
        raise NotImplementedError

    def enclosed(self, operand: Phrase, minimum: int) -> Phrase:
        """An operand, in parentheses if it binds more weakly than `minimum`."""
        return operand if operand.strength >= minimum else phrase("(", operand, ")")

    def operand(self, operand: Phrase, minimum: int) -> Phrase:
        """An operand as a number, in parentheses if it binds more weakly than `minimum`."""
        return self.enclosed(self.numeric(operand), minimum)

    def call(self, name: str, *operands: Phrase) -> Phrase:
        """A call of one of the language's functions."""
        parts: list[str | Phrase] = [f"{name}("]
        for position, operand in enumerate(operands):
            parts += [", "] * (position > 0) + [self.numeric(operand)]
        return phrase(*parts, ")")

    def calls(self, name: str) -> Callable[..., Phrase]:
        """The rule of a primitive that is a function of the language."""
        return lambda *operands: self.call(name, *operands)

    def infix(self, left: Phrase, symbol: str, right: Phrase, strength: int) -> Phrase:
        """An operator that groups to the left."""
        return phrase(self.operand(left, strength), symbol, self.operand(right, strength + 1), strength=strength)

    def add(self, left: Phrase, right: Phrase) -> Phrase:
        """``a + b``; if b is -2, ``a - 2``, which has the same bits."""
        return self._summed(left, right, " + ", " - ")

    def sub(self, left: Phrase, right: Phrase) -> Phrase:
        """``a - b``; if b is -2, ``a + 2``, which has the same bits."""
        return self._summed(left, right, " - ", " + ")

    def _summed(self, left: Phrase, right: Phrase, symbol: str, other: str) -> Phrase:
        right = self.numeric(right)
        while right.opposite is not None:
            right, symbol, other = right.opposite, other, symbol
        return self.infix(left, symbol, right, self.sum)

    def mul(self, left: Phrase, right: Phrase) -> Phrase:
        """``a*b``, with the number in front."""
        if right.value is not None and left.value is None:
            left, right = right, left
        return self._signed(left, right, self.multiplied)

    def div(self, left: Phrase, right: Phrase) -> Phrase:
        """``a/b``; if b is -2, ``-a/2``, which has the same bits."""
        if right.value is not None and right.opposite is not None:
            left, right = self.negated(left), right.opposite
        return self._signed(left, right, self.divided)

    def multiplied(self, left: Phrase, right: Phrase) -> Phrase:
        """Product of two phrases."""
        return self.infix(left, "*", right, self.product)

    def divided(self, left: Phrase, right: Phrase) -> Phrase:
        """Quotient of two phrases."""
        return self.infix(left, "/", right, self.product)

    def _signed(self, left: Phrase, right: Phrase, rule: Callable[[Phrase, Phrase], Phrase]) -> Phrase:
        left = self.numeric(left)
        made = rule(left, right)
        return made if left.opposite is None else with_opposite(made, rule(left.opposite, right))

    def neg(self, operand: Phrase) -> Phrase:
        """``-a``."""
        number = self.numeric(operand)
        return with_opposite(phrase("-", self.enclosed(number, self.unary + 1), strength=self.unary), number)

    def negated(self, operand: Phrase) -> Phrase:
        """A phrase without its leading minus, or with one if it has none."""
        opposite = self.numeric(operand).opposite
        return self.neg(operand) if opposite is None else opposite

    def comparison(self, symbol: str, strength: int) -> Callable[[Phrase, Phrase], Phrase]:
        """The rule of a comparison: a condition."""

        def rule(left: Phrase, right: Phrase) -> Phrase:
            left, right = self.operand(left, self.sum), self.operand(right, self.sum)
            return phrase(left, symbol, right, strength=strength, condition=True)

        return rule

    def connected(self, left: Phrase, symbol: str, right: Phrase, strength: int) -> Phrase:
        """Two conditions with an operator between them: a condition."""
        parts = self.enclosed(left, strength), symbol, self.enclosed(right, strength + 1)
        return phrase(*parts, strength=strength, condition=True)

    def logical_and(self, left: Phrase, right: Phrase) -> Phrase:
        """Python's ``a and b``: a condition of two conditions, else one of the operands."""
        if left.condition and right.condition:
            return self.both(left, right)
        return self.where(left, right, self.number(0.0) if left.condition else left)

    def logical_or(self, left: Phrase, right: Phrase) -> Phrase:
        """Python's ``a or b``: a condition of two conditions, else one of the operands."""
        if left.condition and right.condition:
            return self.either(left, right)
        return self.where(left, self.number(1.0) if left.condition else left, right)

    def both(self, left: Phrase, right: Phrase) -> Phrase:
        """The condition that two conditions hold."""
        raise NotImplementedError

    def either(self, left: Phrase, right: Phrase) -> Phrase:
        """The condition that at least one of two conditions holds."""
        raise NotImplementedError

    def where(self, condition: Phrase, yes: Phrase, no: Phrase) -> Phrase:
        """``yes if condition else no``; the condition may be a number."""
        raise NotImplementedError


def _folded(name: str, numbers: list[float]) -> float:
    """The value of a primitive applied to numbers, as the reference tier computes it."""
    columns = [np.array([number]) for number in numbers]
    with np.errstate(all="ignore"):
        if name in REFERENCE:
            return float(REFERENCE[name](*columns)[0])
        definition = STANDARD[name].definition
        assert definition is not None
        return float(evaluate(definition, columns)[0])


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
