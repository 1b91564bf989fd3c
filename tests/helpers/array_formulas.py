"""Random array formulas, and an oracle for them: Python itself, with sums that take one term after the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any


def in_order_sum(terms: Iterable[float]) -> float:
    total = 0.0
    for term in terms:
        total = total + term
    return total


def in_order_product(terms: Iterable[float]) -> float:
    total = 1.0
    for term in terms:
        total = total * term
    return total


def least(first: Any, *others: Any) -> Any:
    """Shine's min: of equal numbers the last, and of a vector's elements, too."""
    terms = list(first) if not others else [first, *others]
    value = terms[0]
    for term in terms[1:]:
        value = value if value < term else term
    return value


def largest(first: Any, *others: Any) -> Any:
    terms = list(first) if not others else [first, *others]
    value = terms[0]
    for term in terms[1:]:
        value = value if value > term else term
    return value


NAMES: dict[str, Any] = {"sum": in_order_sum, "prod": in_order_product, "min": least, "max": largest, "pi": math.pi}
NAMES |= {name: getattr(math, name) for name in ("sqrt", "sin", "cos", "exp")}


def by_python(text: str, x: Sequence[float], a: float) -> float:
    """The value of a formula of the vector x and the number a, by Python."""
    return float(eval(text, {**NAMES, "x": list(x), "a": a, "n": len(x)}))


class Formulas:
    """Random formulas of a vector x with at least three elements, and a number a.

    Parameters
    ----------
    seed : int
    functions : sequence of str
        Functions of one argument from -1 to 1 or any number.
    """

    def __init__(self, seed: int, functions: Sequence[str] = ("abs",)) -> None:
        self.random, self.functions = Random(seed), functions

    def text(self) -> str:
        """A formula with at least one reduction."""
        return f"{self._value(3, [])} + {self._reduction(3, [])} + x[2]"

    def _value(self, depth: int, loops: list[str]) -> str:
        pick = self.random.random()
        if depth <= 0 or pick < 0.2:
            return self._leaf(loops)
        if pick < 0.6:
            operator = self.random.choice("+-*")
            return f"({self._value(depth - 1, loops)} {operator} {self._value(depth - 1, loops)})"
        if pick < 0.7:
            return f"{self.random.choice(self.functions)}({self._value(depth - 1, loops)})"
        if pick < 0.78:
            return f"({self._value(depth - 1, loops)})/(1 + abs({self._value(depth - 2, loops)}))"
        if pick < 0.86:
            branches = self._value(depth - 1, loops), self._value(depth - 1, loops)
            return f"({branches[0]} if {self._leaf(loops)} < {self._leaf(loops)} else {branches[1]})"
        return self._reduction(depth, loops) if len(loops) < 2 else self._leaf(loops)

    def _leaf(self, loops: list[str]) -> str:
        leaves = ["x[0]", "x[-1]", "x[n - 1]", "x[1]", "a", "n", "len(x)", "0.5", "-2", "3", "max(x)", "min(x)"]
        for name in loops:
            leaves += [f"x[{name}]", f"x[n - 1 - {name}]", f"x[{name} - 1]", name, f"({name} + 1)"] * 2
        return self.random.choice(leaves)

    def _reduction(self, depth: int, loops: list[str]) -> str:
        name = "ijk"[len(loops)]
        kind = self.random.choice(("sum", "sum", "prod", "min", "max"))
        ranges = ["range(n)", "range(1, n)", "range(n - 1)", "range(0, n, 2)", "range(n - 1, -1, -1)", "range(2)"]
        ranges += ["range(n - 1, 0, -2)"] + [f"range({outer} + 1)" for outer in loops] * 2
        over = self.random.choice(ranges)
        if kind == "prod":
            # Products of many terms would overflow.
            inner = [*loops, name]
            factor = f"({self._value(depth - 1, inner)})/(1 + abs({self._leaf(inner)}))"
            return f"prod({factor} for {name} in {over})"
        if self.random.random() < 0.2:
            pairs = self.random.choice(("zip(x[1:], x)", "zip(x[:-1], x[::-1])", "enumerate(x)", "enumerate(x[1:], 2)"))
            return f"{kind}(v*w - {self._leaf(loops)} for v, w in {pairs})"
        return f"{kind}({self._value(depth - 1, [*loops, name])} for {name} in {over})"
