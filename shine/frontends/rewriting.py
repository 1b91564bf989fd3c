"""Rewrites formulas in the primitives of a search: other primitives are replaced by equal expressions."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from shine.arrays import COMPILED
from shine.lang.folding import folded
from shine.lang.parse import parse
from shine.lang.primitives import BASIC
from shine.lang.tape import functions_of
from shine.lang.tree import Tree
from shine.lang.values import ValueGraph

ALTERNATIVES: dict[str, tuple[str, ...]] = {
    "neg": ("-1*a", "0 - a"),
    "sub": ("a + -1*b", "a + -b"),
    "div": ("a*inv(b)",),
    "sqrt": ("a**0.5",),
    "abs": ("max(a, -1*a)", "max(a, 0 - a)", "sqrt(square(a))", "sqrt(a*a)"),
    "tan": ("sin(a)/cos(a)",),
    "max": ("a if a > b else b", "(a + b + abs(a - b))/2"),
    "min": ("a if a < b else b", "(a + b - abs(a - b))/2"),
}
"""Expressions that equal a primitive for real numbers; the first with only known primitives is used."""

MAX_POWER = 8
"""Largest whole exponent of a power that becomes products."""


class Rewriting(ValueGraph):
    """A value graph that uses only some primitives, if possible.

    Other composite primitives are replaced by their definitions, other basic ones by `ALTERNATIVES`, and primitives
    applied to constants by their value. A primitive without an alternative stays; the caller reports it.

    Parameters
    ----------
    names : collection of str
        The primitives to use.
    """

    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self.known_names = frozenset(names)

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
        exponent = numbers[1] if name == "pow" else None
        if exponent is not None and exponent in range(1, MAX_POWER + 1):
            return self._product(operands[0], int(exponent))
        if exponent == 0.5 and "sqrt" in self.known_names:
            return super().apply("sqrt", operands[0])
        for tree in _alternatives(name):
            if functions_of(tree) <= self.known_names:
                return self.read(tree, operands, self.known_names)
        return super().apply(name, *operands)

    def _product(self, base: int, exponent: int) -> int:
        if exponent == 1:
            return base
        half = self._product(base, exponent // 2)
        whole = self.apply("mul", half, half)
        return self.apply("mul", whole, base) if exponent % 2 else whole


@cache
def _alternatives(name: str) -> tuple[Tree, ...]:
    return tuple(parse(text) for text in ALTERNATIVES.get(name, ()))
