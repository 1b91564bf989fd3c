"""Text of formulas, put together from the inside out: pieces that know how strongly they bind.

A phrase keeps its parts as they are, and becomes one string at the very end: time and memory stay in proportion to the
length of the text however deeply it is nested, and a text that would explode, because assigned values are
written out wherever they are used, is refused before it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from shine.errors import ExportError
from shine.export.translation import Translation
from shine.lang.interpret import REFERENCE, evaluate
from shine.lang.library import STANDARD

ATOM = 99
"""Strength of what never needs parentheses: names, numbers, calls."""

LONGEST = 1_000_000
"""Characters of the longest text that is written."""


@dataclass(frozen=True, eq=False, slots=True)
class Phrase:
    """A piece of text that stands for a value.

    Parameters
    ----------
    parts : tuple of str or Phrase
    strength : int
        How strongly its outermost operator binds.
    length : int
        Characters.
    depth : int
        Levels of nesting.
    condition : bool
        Whether its value is true or false in the other language, not a number.
    value : float, optional
        The number it is, if it is one.
    opposite : Phrase, optional
        The same without the minus it begins with; of a condition, what holds exactly where it does not.
    real : bool
        Whether it surely is a floating-point number, in a language that has integers too.
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
        """Whether it is one word or number, which may be repeated without harm."""
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
    """A phrase that begins with a minus, and what it is without."""
    return replace(negative, opposite=positive)


def written(top: Phrase, form: str, limit: int = LONGEST) -> str:
    """The text of a phrase.

    Raises
    ------
    ExportError
        If it has more characters than the limit.
    """
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


def number_text(value: float, digits: int | None) -> str:
    """A finite number as text: the shortest that reads back as the same number, or one of so many digits.

    Raises
    ------
    ValueError
        If `digits` is less than 1.
    """
    if digits is None:
        return repr(value)
    if digits < 1:
        raise ValueError(f"digits is {digits}; a number has at least one digit")
    rounded = float(f"{value:.{digits}g}")
    text = repr(rounded) if math.isfinite(rounded) else repr(value)
    return text.removesuffix(".0")


class Infix(Translation[Phrase]):
    """Translates formulas to text with infix operators.

    What has only constants as operands is computed here: few languages agree on what ``1/0`` is, or ``1/2``.

    Parameters
    ----------
    digits : int, optional
        Significant digits of constants; all they have if not given.

    Attributes
    ----------
    sum, product, unary, power : int
        Binding strengths of the language's operators.
    """

    sum, product, unary, power = 4, 5, 6, 7
    folds = True

    def __init__(self, digits: int | None = None) -> None:
        super().__init__()
        self.digits = digits
        self._rules: Mapping[str, Callable[..., Phrase]] = self.table()

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        """The rule of each primitive that has one."""
        raise NotImplementedError

    def rules(self) -> Mapping[str, Callable[..., Phrase]]:
        """The table, made once."""
        return self._rules

    def apply(self, name: str, *operands: Phrase) -> Phrase:
        """The value of a primitive, computed where it is one of numbers."""
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
        """A number that is not negative, or NaN."""
        raise NotImplementedError

    def numeric(self, operand: Phrase) -> Phrase:
        """An operand as a number, 1 or 0 where it is a condition."""
        raise NotImplementedError

    def enclosed(self, operand: Phrase, minimum: int) -> Phrase:
        """An operand in parentheses if it binds less strongly than needed."""
        return operand if operand.strength >= minimum else phrase("(", operand, ")")

    def operand(self, operand: Phrase, minimum: int) -> Phrase:
        """An operand as a number that binds as strongly as needed."""
        return self.enclosed(self.numeric(operand), minimum)

    def call(self, name: str, *operands: Phrase) -> Phrase:
        """A call of one of the language's functions."""
        parts: list[str | Phrase] = [f"{name}("]
        for position, operand in enumerate(operands):
            parts += [", "] * (position > 0) + [self.numeric(operand)]
        return phrase(*parts, ")")

    def calls(self, name: str) -> Callable[..., Phrase]:
        """The rule of a primitive that is a function there."""
        return lambda *operands: self.call(name, *operands)

    def infix(self, left: Phrase, symbol: str, right: Phrase, strength: int) -> Phrase:
        """An operator that groups to the left."""
        return phrase(self.operand(left, strength), symbol, self.operand(right, strength + 1), strength=strength)

    def add(self, left: Phrase, right: Phrase) -> Phrase:
        """``a + b``; ``a - 2`` where b is -2, which is the same to the bit."""
        return self._summed(left, right, " + ", " - ")

    def sub(self, left: Phrase, right: Phrase) -> Phrase:
        """``a - b``; ``a + 2`` where b is -2, which is the same to the bit."""
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
        """``a/b``."""
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


class Corrected(Infix):
    """Rules for languages that lack, or round, what is awkward to compute: spreadsheets and data bases."""

    def power_of(self, base: Phrase, exponent: float) -> Phrase:
        """A power with a small whole exponent."""
        return self.rules()["pow"](base, self.number(exponent))

    def log1p(self, operand: Phrase) -> Phrase:
        """``log(1 + x)`` = ``2*artanh(x/(2 + x))``, which does not round x away where it is small."""
        number, two = self.numeric(operand), self.number(2)
        small = self.mul(two, self.call("ATANH", self.div(number, self.add(number, two))))
        return self._near(number, 0.5, small, self.rules()["log"](self.add(number, self.number(1))))

    def expm1(self, operand: Phrase) -> Phrase:
        """``exp(x) - 1`` = ``2*sinh(x/2)*exp(x/2)``, which does not cancel where x is small."""
        number, two = self.numeric(operand), self.number(2)
        half = self.div(number, two)
        small = self.mul(self.mul(two, self.rules()["sinh"](half)), self.rules()["exp"](half))
        return self._near(number, 1, small, self.sub(self.rules()["exp"](number), self.number(1)))

    def _near(self, number: Phrase, bound: float, small: Phrase, other: Phrase) -> Phrase:
        near = self.rules()["lt"](self.rules()["abs"](number), self.number(bound))
        return self.rules()["where"](near, small, other)

    def hypot(self, left: Phrase, right: Phrase) -> Phrase:
        """Scaled by the longer leg, so that the squares neither overflow nor vanish."""
        rules = self.rules()
        a, b = rules["abs"](left), rules["abs"](right)

        def longer(leg: Phrase, ratio: Phrase) -> Phrase:
            return self.mul(leg, rules["sqrt"](self.add(self.number(1), self.power_of(ratio, 2))))

        # Where the legs are equal their quotient may be none: both may be 0, or infinite.
        same = self.mul(rules["sqrt"](self.number(2)), a)
        other = rules["where"](rules["eq"](a, b), same, longer(a, self.div(right, left)))
        return rules["where"](rules["lt"](a, b), longer(b, self.div(left, right)), other)

    def multiplied(self, left: Phrase, right: Phrase) -> Phrase:
        """Product of two phrases; the square of one that is long, which need not be written twice."""
        if left is right and not left.simple:
            return self.power_of(left, 2)
        return super().multiplied(left, right)


def _folded(name: str, numbers: list[float]) -> float:
    """The value of a primitive of numbers, as the reference tier computes it."""
    columns = [np.array([number]) for number in numbers]
    with np.errstate(all="ignore"):
        if name in REFERENCE:
            return float(REFERENCE[name](*columns)[0])
        definition = STANDARD[name].definition
        assert definition is not None
        return float(evaluate(definition, columns)[0])
