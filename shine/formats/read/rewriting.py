"""Rewrites formulas in the primitives of a search: other primitives are replaced by equal expressions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, partial, reduce
from math import isfinite

from shine.compiler.arrays import COMPILED
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import BASIC
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.meaning.folding import folded
from shine.lang.meaning.values import ValueGraph
from shine.lang.parse import parse
from shine.lang.presentation import LARGEST_POWER

ALTERNATIVES: dict[str, tuple[str, ...]] = {
    "neg": ("-1*a", "0 - a"),
    "sub": ("a + -1*b", "a + -b"),
    "div": ("a*inv(b)", "a*b**-1"),
    "sqrt": ("a**0.5",),
    "abs": ("max(a, -1*a)", "max(a, 0 - a)", "sqrt(square(a))", "sqrt(a*a)"),
    "tan": ("sin(a)/cos(a)",),
    "max": ("a if a > b else b", "(a + b + abs(a - b))/2"),
    "min": ("a if a < b else b", "(a + b - abs(a - b))/2"),
}
"""Expressions that equal a primitive for real numbers; the first with only known primitives is used."""

ROOT = 0.25
"""Least exponent of a root that becomes square roots; other exponents that become products are multiples of it."""


class Rewriting(ValueGraph):
    """A value graph that uses only some primitives, if possible.

    Other composite primitives are replaced by their definitions, other basic ones by `ALTERNATIVES`, and primitives
    applied to constants by their value. A primitive without an alternative stays; the caller reports it.

    Parameters
    ----------
    names : collection of str
        The primitives to use.
    table : mapping of str to Primitive
        Their meanings.
    """

    def __init__(self, names: Collection[str], table: Mapping[str, Primitive] = STANDARD) -> None:
        super().__init__()
        self.known_names = frozenset(names)
        self.table = table

    def apply(self, name: str, *operands: int) -> int:
        """The value of a primitive, or of an equal expression."""
        numbers = [self.number(operand) for operand in operands]
        known = [number for number in numbers if number is not None]
        value = folded(name, known, COMPILED) if len(known) == len(numbers) and name in COMPILED else None
        if value is not None:
            return self.constant(value)
        if name in self.known_names or name not in BASIC:
            return super().apply(name, *operands)
        if name == "mul" and operands[0] == operands[1] and "square" in self.known_names:
            return super().apply("square", operands[0])
        if name == "div" and numbers[0] == 1 and "inv" in self.known_names:
            return super().apply("inv", operands[1])
        if name == "div" and numbers[1] and isfinite(1 / numbers[1]):
            return self.apply("mul", operands[0], self.constant(1 / numbers[1]))
        if name == "pow" and numbers[1] is not None:
            power = self._power(operands[0], numbers[1])
            if power is not None:
                return power
        for tree in _alternatives(name):
            if functions_of(tree) <= self.known_names:
                return self.read(tree, operands, self.known_names)
        return super().apply(name, *operands)

    def _power(self, base: int, exponent: float) -> int | None:
        """A power with a number as its exponent, by products and square roots; None if it is no such power."""
        share = exponent % 1
        if exponent == 0 or not abs(exponent) <= LARGEST_POWER or exponent % ROOT:
            return None
        if share and "sqrt" not in self.known_names:
            return None
        if exponent < 0:
            return self.apply("div", self.constant(1), self.apply("pow", base, self.constant(-exponent)))
        factors = [self._product(base, int(exponent))] if exponent >= 1 else []
        if share:
            root = super().apply("sqrt", base)
            factors += [root] if share >= 2 * ROOT else []
            factors += [super().apply("sqrt", root)] if share % (2 * ROOT) else []
        return reduce(partial(self.apply, "mul"), factors)

    def _product(self, base: int, exponent: int) -> int:
        if exponent == 1:
            return base
        if exponent == 3 and "cube" in self.known_names:
            return super().apply("cube", base)
        half = self._product(base, exponent // 2)
        is_square = "square" in self.known_names
        whole = super().apply("square", half) if is_square else self.apply("mul", half, half)
        return self.apply("mul", whole, base) if exponent % 2 else whole


@cache
def _alternatives(name: str) -> tuple[Tree, ...]:
    return tuple(parse(text) for text in ALTERNATIVES.get(name, ()))
