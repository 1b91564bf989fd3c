"""Formulas as sums of products: coefficients times powers of names and of other factors, in one way of writing."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from shine.compiler.arrays import power
from shine.lang.forms.facts import FACTS
from shine.lang.forms.interpretation import Interpretation
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Tree
from shine.lang.parse import parse

_NUMBER = re.compile(r"(?<![\w.])(?<!\*\*)\d+\.?\d*(?:e[+-]?\d+)?(?![\w.])")

_NAME = re.compile(r"(?<![\w.])[^\W\d]\w*(?!\w*\()")
"""A name that is not called."""


class NoSum(ValueError):
    """A formula that is not written as a sum here."""


@dataclass(frozen=True)
class Product:
    """A coefficient times powers of factors.

    Parameters
    ----------
    coefficient : float
    powers : tuple of (str, float)
        Factors in alphabetical order, each with its exponent: names, and other factors as text.
    """

    coefficient: float
    powers: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, coefficient: float, powers: Mapping[str, float]) -> Product:
        """The product of powers, of which those of exponent 0 are 1."""
        return cls(coefficient, tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent)))

    def __mul__(self, other: Product) -> Product:
        powers = dict(self.powers)
        for name, exponent in other.powers:
            powers[name] = powers.get(name, 0.0) + exponent
        return Product.of(self.coefficient * other.coefficient, powers)

    def raised(self, exponent: float) -> Product:
        """A power of the product, whose coefficient is positive or the exponent whole."""
        powers = {name: own * exponent for name, own in self.powers}
        return Product.of(float(power(np.array([self.coefficient]), exponent)[0]), powers)

    @property
    def text(self) -> str:
        """The factors as text; empty if there are none."""
        above = [_power(name, exponent) for name, exponent in self.powers if exponent > 0]
        below = [_power(name, -exponent) for name, exponent in self.powers if exponent < 0]
        if not below:
            return "*".join(above)
        divisor = below[0] if len(below) == 1 else f"({'*'.join(below)})"
        return f"{'*'.join(above) or '1.0'}/{divisor}"

    @property
    def shape(self) -> str:
        """The text without the numbers in it."""
        return _NUMBER.sub("#", self.text)


def written(products: Iterable[Product], positive: bool = False) -> str:
    """A sum as text; if all its numbers are to be `positive`, a minus sign stands before the first product."""
    text = ""
    for product in products:
        if not math.isfinite(product.coefficient):
            raise NoSum("overflow")
        size, factors = abs(product.coefficient), product.text
        sign = "-" if product.coefficient < 0 else "+"
        if not factors or factors.startswith("1.0/"):
            own = repr(size) + factors[3:]
        else:
            own = factors if size == 1 else f"{size!r}*{factors}"
        first = own if sign == "+" else f"-({own})" if positive else f"-{own}"
        text = f"{text} {sign} {own}" if text else first
    return text or "0.0"


def summands(tree: Tree) -> list[Product]:
    """The summands of a formula, multiplied out; no two have the same factors.

    A `NoSum` if it has conditions, assignments or functions of the user's, or numbers that are none.
    """
    if tree.assignments:
        raise NoSum("assignments")
    found: list[Product] = _Sums().visit(tree.result)
    if not all(math.isfinite(each.coefficient) and each.coefficient for each in found):
        raise NoSum("overflow")
    return found


def exchanges(states: Sequence[str], count: int) -> list[tuple[tuple[int, ...], dict[str, str]]]:
    """Exchanges of states: the image of each by its place, and of each name.

    Parameters
    ----------
    states : sequence of str
        Further ones, lagged or rates, follow in the same order.
    count : int
        Number of states that are no further ones. Of many, and with other further ones, none are exchanged.
    """
    usual = 0 < count <= 4 and len(states) % count == 0  # most states that are exchanged
    orders = permutations(range(count)) if usual else iter([()])
    next(orders)  # each in its place
    return [
        (order, {name: states[at - at % count + order[at % count]] for at, name in enumerate(states)})
        for order in orders
    ]


def exchanged(product: Product, images: Mapping[str, str]) -> Product:
    """A product with the images of names in place of them."""
    found = Product(product.coefficient)
    for name, exponent in product.powers:
        text = _NAME.sub(lambda match: images.get(match[0], match[0]), name)
        # A sum stays one factor, also where its power is small enough to be multiplied out.
        found *= _one_raised(summands(parse(text, list(dict.fromkeys(_NAME.findall(text))))), exponent)
    return found


class _Sums(Interpretation):
    """Lists of products, bottom-up."""

    def visit_Constant(self, node: ast.Constant) -> Any:
        value = float(node.value)  # type: ignore[arg-type]
        return [Product(value)] if value else []

    def visit_Name(self, node: ast.Name) -> Any:
        return [Product(1.0, ((node.id, 1.0),))]

    def visit_IfExp(self, node: ast.expr) -> Any:
        raise NoSum("condition")

    visit_Compare = visit_BoolOp = visit_IfExp

    def _apply(self, name: str, *operands: list[Product]) -> list[Product]:
        match name, operands:
            case "add", (left, right):
                return collected([*left, *right])
            case "sub", (left, right):
                return collected([*left, *_scaled(right, -1.0)])
            case "neg", (only,):
                return _scaled(only, -1.0)
            case "mul", (left, right):
                return _product(left, right)
            case "div", (left, right):
                return _product(left, [_factor(right).raised(-1.0)])
            case "square", (only,):
                return _raised(only, 2.0)
            case "sqrt", (only,):
                return _raised(only, 0.5)
            case "pow", (base, [Product(exponent, ())]):
                return _raised(base, exponent)
        if name not in STANDARD:
            raise NoSum("a function of the user's")
        return [_called(name, operands)]


def collected(products: Iterable[Product]) -> list[Product]:
    """A sum whose products of the same factors are one; those that cancel are gone."""
    found: dict[tuple[tuple[str, float], ...], float] = {}
    for product in products:
        found[product.powers] = found.get(product.powers, 0.0) + product.coefficient
    return [Product(coefficient, powers) for powers, coefficient in found.items() if coefficient]


def _product(left: list[Product], right: list[Product]) -> list[Product]:
    if len(left) * len(right) > 12:  # most summands of a sum that is multiplied out
        return [_factor(left) * _factor(right)]
    return collected(one * other for one in left for other in right)


def _raised(base: list[Product], exponent: float) -> list[Product]:
    if len(base) > 1 and exponent in range(2, 4):  # larger powers of sums are not multiplied out
        found = base
        for _ in range(int(exponent) - 1):
            found = _product(found, base)
        return found
    return [_one_raised(base, exponent)]


def _one_raised(base: list[Product], exponent: float) -> Product:
    """A power of a sum as one product."""
    factor = _factor(base)
    if not exponent.is_integer() and factor.coefficient < 0:
        return Product(1.0, ((f"({written(base)})", exponent),))
    return factor.raised(exponent)


def _factor(products: list[Product]) -> Product:
    """A sum as one factor: its first summand that is no number has the coefficient 1, those in alphabetical order."""
    if not products:
        raise NoSum("nothing")
    if len(products) == 1:
        return products[0]
    ordered = sorted(products, key=lambda each: (not each.powers, each.powers))
    first = ordered[0].coefficient
    return Product(first, ((f"({written(_scaled(ordered, 1 / first))})", 1.0),))


def _called(name: str, operands: tuple[list[Product], ...]) -> Product:
    """A function's value as a factor; the argument of an odd or even one begins without a minus sign."""
    ordered = [sorted(each, key=lambda own: (not own.powers, own.powers)) for each in operands]
    parity, sign = FACTS[name].parity if name in FACTS else None, 1.0
    if parity and ordered[0] and ordered[0][0].coefficient < 0:
        ordered, sign = [_scaled(ordered[0], -1.0)], -1.0 if parity == "odd" else 1.0
    return Product(sign, ((f"{name}({', '.join(map(written, ordered))})", 1.0),))


def _scaled(products: Iterable[Product], factor: float) -> list[Product]:
    return [Product(each.coefficient * factor, each.powers) for each in products]


def _power(name: str, exponent: float) -> str:
    if not math.isfinite(exponent):
        raise NoSum("overflow")
    if exponent == 1:
        return name
    if exponent == 0.5:
        return f"sqrt({name})"
    return f"{name}**{int(exponent) if exponent.is_integer() else exponent!r}"
