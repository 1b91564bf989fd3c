"""Numbers as people write them: named, short and readable ones."""

from __future__ import annotations

import ast
import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

LARGEST_NUMERATOR, LARGEST_DENOMINATOR = 48, 12
"""Largest terms of the fractions: people seldom write larger ones."""

UNITS = {
    "pi": math.pi,
    "exp(1)": 2.7182818284590455,
    "sqrt(2)": math.sqrt(2),
    "sqrt(3)": math.sqrt(3),
    "sqrt(pi)": math.sqrt(math.pi),
    "sqrt(2*pi)": math.sqrt(2 * math.pi),
    "pi**2": math.pi * math.pi,
}
"""Numbers with names, with the bits that formulas give them: `exp(1)` has a last bit more than `math.e`."""

_WITH_INVERSES = frozenset(UNITS) - {"sqrt(2)", "sqrt(3)"}
"""Units that people divide by: ``1/sqrt(2)`` is ``sqrt(2)/2``."""


@dataclass(frozen=True)
class NamedNumber:
    """A fraction of a unit.

    Parameters
    ----------
    numerator, denominator : int
        Positive, without a common factor.
    unit : str
        One of `UNITS`.
    is_below : bool
        Whether the unit is a factor of the denominator.
    """

    numerator: int
    unit: str
    denominator: int
    is_below: bool = False

    @property
    def value(self) -> float:
        """The number, as Python computes its text."""
        if self.is_below:
            return self.numerator / (self.denominator * UNITS[self.unit])
        return self.numerator * UNITS[self.unit] / self.denominator

    @property
    def text(self) -> str:
        """The number in Shine's language."""
        if self.is_below:
            below = self.unit if self.denominator == 1 else f"{self.denominator}*{self.unit}"
            return f"{self.numerator}/({below})" if "*" in _outer(below) else f"{self.numerator}/{below}"
        above = self.unit if self.numerator == 1 else f"{self.numerator}*{self.unit}"
        return above if self.denominator == 1 else f"{above}/{self.denominator}"

    @property
    def expression(self) -> ast.expr:
        """The text as an expression of whole numbers and of pi, which is a constant."""
        return _PiAsConstant().visit(ast.parse(self.text, mode="eval").body)


@cache
def named_numbers() -> dict[float, NamedNumber]:
    """The numbers with names, by their values, in ascending order."""
    found: dict[float, NamedNumber] = {}
    for number in _all():
        found.setdefault(number.value, number)
    return dict(sorted(found.items()))


def named_number(value: float) -> NamedNumber | None:
    """The named number that has a value; None if there is none."""
    return named_numbers().get(value)


def nearest_named(value: float) -> float | None:
    """The value of the named number that a number is, up to rounding and its sign; None if there is none."""
    values = _values()
    place = bisect_left(values, abs(value))
    for near in values[max(place - 1, 0) : place + 1]:
        if abs(near - abs(value)) <= 4.0 * 2.0**-53 * near:  # largest relative difference due to rounding only
            return math.copysign(near, value)
    return None


@cache
def _values() -> tuple[float, ...]:
    return tuple(named_numbers())


def _all() -> Iterator[NamedNumber]:
    for unit in UNITS:
        for denominator in range(1, LARGEST_DENOMINATOR + 1):
            for numerator in range(1, LARGEST_NUMERATOR + 1):
                if math.gcd(numerator, denominator) == 1:
                    yield NamedNumber(numerator, unit, denominator)
                    if unit in _WITH_INVERSES:
                        yield NamedNumber(numerator, unit, denominator, is_below=True)


def _outer(text: str) -> str:
    """A text without the part in parentheses; a power binds more strongly than a division, so it counts as a name."""
    return text.partition("(")[0].replace("**", "")


class _PiAsConstant(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(math.pi) if node.id == "pi" else node


NAMED_POWERS = {2: "square", 3: "cube"}
"""Primitives with the bits of a power, by exponent."""


def readable_number(value: float, named: bool) -> str:
    """A finite float as short as people write it. `float` reads the text back, or it has a name.

    Parameters
    ----------
    value : float
    named : bool
        Whether numbers with a name are written by it (see `shine.lang.forms.named_numbers`).
    """
    if named and (known := named_number(abs(value))) is not None:
        return ("-" if value < 0 else "") + known.text
    text = repr(value).replace("e+", "e")
    if "e" in text or not value.is_integer() or (value == 0 and text[0] == "-"):
        return text
    text = text.removesuffix(".0")
    digits = text.lstrip("-").rstrip("0")
    # Least power of ten and most digits of whole floats written with an exponent: ``1.2e9``
    if abs(value) < 10**6 or len(digits) > 6:
        return text
    mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return ("-" if value < 0 else "") + f"{mantissa}e{len(text.lstrip('-')) - 1}"


DIGITS = 15
"""Digits that are right in a sum or a product of numbers."""

MOST_FIGURES, _DIGITS_SAVED = 12, 2
"""Most figures of a decimal that replaces a number which differs from it by rounding only, and how many fewer than the
right digits they are at least."""

DIGITS_OF_FUNCTIONS = 14
"""Digits that are right in the exponential or the logarithm of a rounded number."""


def short(number: float, digits: int = DIGITS) -> float:
    """The decimal of few figures, or the number with a name, that a number is up to rounding; itself if there is none.

    Parameters
    ----------
    number : float
    digits : int
        Digits of the number that are right.

    Examples
    --------
    >>> short(0.1 + 0.2), short(1 / 3)
    (0.3, 0.3333333333333333)
    """
    rounded = float(f"{number:.{digits}g}")
    if math.isfinite(rounded) and _decimal_figures(rounded) <= min(MOST_FIGURES, digits - _DIGITS_SAVED):
        return rounded
    named = nearest_named(number)
    return number if named is None else named


def figures(number: float) -> int:
    """Length of a number for a reader: its significant figures, and its minus. All long numbers are alike."""
    own = 3 if named_number(abs(number)) is not None else _decimal_figures(number)  # figures of a number with a name
    own = min(own, MOST_FIGURES + 1)
    return own + (number < 0)


def plain_figures(number: float) -> int:
    """The same with the point: people prefer whole numbers."""
    return figures(number) + (not number.is_integer())


def _decimal_figures(number: float) -> int:
    return len(repr(abs(number)).partition("e")[0].replace(".", "").strip("0"))
