"""Prints formulas in a `Language`: as one expression, or as statements that break long and shared values.

A subclass has rules for what no `Form` can say. `shine.formats.write.c` and `shine.formats.write.excel` are examples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from shine.base.errors import ExportError
from shine.formats.write.language import ATOM, Form, Language, binary, call
from shine.formats.write.straightline import Body
from shine.formats.write.translation import Translation
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import unique
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.interpret import REFERENCE, evaluate

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
    number : Phrase, optional
        The number of a condition, if it is not made of the condition.
    """

    parts: tuple[str | Phrase, ...]
    strength: int
    length: int
    depth: int
    condition: bool = False
    value: float | None = None
    opposite: Phrase | None = None
    real: bool = False
    number: Phrase | None = None

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


@cache
def _pieces(text: str) -> list[str]:
    """The text of a form at even places, and the positions of operands between."""
    return re.split(r"\{(\d)\}", text)


class Printer(Translation[Phrase]):
    """Translates formulas to text.

    Parameters
    ----------
    language : Language
    """

    def __init__(self, language: Language) -> None:
        super().__init__()
        self.language, self.form = language, language.name
        self.sum, self.product, self.unary, self.power = language.strengths
        formed = {name: partial(self.formed, name) for name in (*language.conditions, *language.forms)}
        self._rules: Mapping[str, Callable[..., Phrase]] = {
            "neg": self.neg, **formed, "add": self.add, "sub": self.sub, "mul": self.mul, "div": self.div,
            **self.table(),
        }  # fmt: skip

    def table(self) -> Mapping[str, Callable[..., Phrase]]:
        """The rules that no form can say."""
        return {}

    def rules(self) -> Mapping[str, Callable[..., Phrase]]:
        """The rule of each primitive that has one."""
        return self._rules

    def apply(self, name: str, *operands: Phrase) -> Phrase:
        """The phrase of a primitive; a number if all operands are numbers."""
        if self.language.folds and all(operand.value is not None for operand in operands):
            return self.number(_folded(name, [operand.value for operand in operands if operand.value is not None]))
        return super().apply(name, *operands)

    def formed(self, name: str, *operands: Phrase) -> Phrase:
        """The phrase of a primitive by the language's forms; as a condition if it has such a form."""
        form, truth = self.language.forms.get(name), self.language.conditions.get(name)
        if form is None and name in ("logical_and", "logical_or") and not all(each.condition for each in operands):
            return self._chosen(name, *operands)
        if name == "logical_not" and self.language.zero is not None and not operands[0].condition:
            truth = self.language.zero
        if truth is None:
            assert form is not None
            return self.filled(form, *operands)
        number = None if form is None else self.filled(form, *operands)
        return replace(self.filled(truth, *operands), condition=True, number=number)

    def _chosen(self, name: str, left: Phrase, right: Phrase) -> Phrase:
        """Python's ``a and b`` or ``a or b``: one of the operands."""
        if name == "logical_and":
            return self.rules()["where"](left, right, self.number(0.0) if left.condition else left)
        return self.rules()["where"](left, self.number(1.0) if left.condition else left, right)

    def filled(self, form: Form, *operands: Phrase) -> Phrase:
        """A form with its operands, in parentheses if they bind too weakly."""
        parts: list[str | Phrase] = []
        for place, piece in enumerate(_pieces(form.text)):
            if place % 2:
                position = int(piece)
                given = operands[position]
                given = self.truth(given) if position in form.conditions else self.numeric(given)
                parts.append(self.enclosed(given, form.needs[position] if position < len(form.needs) else 0))
            elif piece:
                parts.append(piece)
        return phrase(*parts, strength=form.strength)

    def number(self, value: int | float) -> Phrase:
        """A number, with a minus in front if it is negative."""
        if not self.language.rearranges:
            text = self.language.number(value)
            return word(text, self.unary if text.startswith("-") else ATOM)
        number = float(value)
        if math.copysign(1.0, number) < 0:
            positive = self.positive(-value)
            negative = with_opposite(phrase("-", self.enclosed(positive, self.power), strength=self.unary), positive)
            # A number is one word, whatever its sign.
            return replace(negative, value=number, depth=positive.depth)
        return replace(self.positive(value), value=number)

    def positive(self, value: int | float) -> Phrase:
        """The phrase of a number that is not negative, or NaN."""
        return word(self.language.number(value))

    def numeric(self, operand: Phrase) -> Phrase:
        """An operand as a number: a condition becomes 1 or 0."""
        if not operand.condition or operand.number is not None:
            return operand.number or operand
        assert self.language.as_number is not None
        return self.filled(self.language.as_number, operand)

    def truth(self, operand: Phrase) -> Phrase:
        """An operand as a condition: whether a number is not 0."""
        if operand.condition:
            return operand
        assert self.language.nonzero is not None
        return replace(self.filled(self.language.nonzero, operand), condition=True)

    def enclosed(self, operand: Phrase, minimum: int) -> Phrase:
        """An operand, in parentheses if it binds more weakly than `minimum`."""
        return operand if operand.strength >= minimum else phrase("(", operand, ")")

    def operand(self, operand: Phrase, minimum: int) -> Phrase:
        """An operand as a number, in parentheses if it binds more weakly than `minimum`."""
        return self.enclosed(self.numeric(operand), minimum)

    def call(self, name: str, *operands: Phrase) -> Phrase:
        """A call of one of the language's functions."""
        return self.filled(call(name, len(operands)), *operands)

    def infix(self, left: Phrase, symbol: str, right: Phrase, strength: int) -> Phrase:
        """An operator that groups to the left."""
        return self.filled(binary(f"{{0}}{symbol}{{1}}", strength), left, right)

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
        return self.infix(left, self.language.times, right, self.product)

    def divided(self, left: Phrase, right: Phrase) -> Phrase:
        """Quotient of two phrases."""
        return self.infix(left, self.language.over, right, self.product)

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

    def text(self, tree: Tree, names: Mapping[str, str]) -> str:
        """A formula as one expression, given the text of each parameter."""
        return written(self.numeric(self.translate(tree, [word(names[name]) for name in tree.parameters])), self.form)

    def statements(
        self,
        body: Body,
        parameters: Mapping[str, str],
        composite: Callable[[Primitive], Form],
        taken: Collection[str],
    ) -> tuple[list[tuple[str, str]], str]:
        """Straight-line code as assignments and a result; the language neither folds nor rearranges.

        A value that is used twice, or is long or deeply nested, gets a variable. So expressions stay short and shallow,
        however deep the formula is.

        Parameters
        ----------
        body : Body
        parameters : mapping of str to str
            Name of each parameter in the text.
        composite : callable
            Form of a call of a composite primitive.
        taken : collection of str
            Names that variables must not have.

        Returns
        -------
        assignments : list of (str, str)
            Variables and their values, in order.
        result : str
            Expression of the result.
        """
        used = {*taken, *parameters.values()}
        values: list[tuple[Phrase, int]] = []
        assignments: list[tuple[str, str]] = []
        for step, uses in zip(body.steps, body.uses, strict=True):
            if step.primitive is None:
                leaf = step.leaf
                values.append((word(parameters[leaf]) if isinstance(leaf, str) else self.number(leaf), 0))
                continue
            operands = [values[operand][0] for operand in step.operands]
            if step.primitive.definition is None:
                value = self._apply(step.primitive.name, *operands)
            else:
                value = self.filled(composite(step.primitive), *operands)
            depth = 1 + max((values[operand][1] for operand in step.operands), default=0)
            number, last = self.numeric(value), len(values) == len(body.steps) - 1
            # Length, in characters, above which a value of statements gets a variable.
            # Depth to which expressions of statements nest before a value gets a variable
            if not last and (uses > 1 or depth > 8 or number.length > 88):
                variable = unique(f"v{len(assignments) + 1}", used)
                used.add(variable)
                assignments.append((variable, written(number, self.form)))
                value, depth = word(variable), 0
            values.append((value, depth))
        return assignments, written(self.numeric(values[-1][0]), self.form)


def _folded(name: str, numbers: list[float]) -> float:
    """The value of a primitive applied to numbers, as the reference tier computes it."""
    columns = [np.array([number]) for number in numbers]
    with np.errstate(all="ignore"):
        if name in REFERENCE:
            return float(REFERENCE[name](*columns)[0])
        definition = STANDARD[name].definition
        assert definition is not None
        return float(evaluate(definition, columns)[0])


class Corrected(Printer):
    """Prints languages without `log1p`, `expm1` and `hypot`."""

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
