"""Logarithms as summands of a row's error: their sum over rows is the logarithm of a product, and so far cheaper."""

from __future__ import annotations

from dataclasses import dataclass

from shine.lang.forms.primitives import BASIC
from shine.lang.forms.tree import Tree
from shine.lang.values import ValueGraph

LOGARITHMS = ("log", "log1p")
"""Functions whose sum is their own value of a product, or of ``a + (b + a*b)``."""

_DEEPEST = 8
"""Largest depth of nested sums searched for logarithms: each level may double the work."""


@dataclass(frozen=True)
class Logarithm:
    """A summand ``factor * log(argument)``, or with log1p.

    Parameters
    ----------
    name : {"log", "log1p"}
    factor : Tree
        The same for all rows.
    argument : Tree
    """

    name: str
    factor: Tree
    argument: Tree


def split(definition: Tree) -> tuple[Tree | None, tuple[Logarithm, ...]]:
    """The summands of a formula that are logarithms, and the rest of the sum, if there is any.

    All trees have the parameters of the formula.
    """
    splitter = _Splitter(definition)
    graph, result = splitter.graph, splitter.result
    rest, found = splitter.split(result, 0)
    values = [value for factor, _, argument in found for value in (factor, argument)]
    results = values if rest is None else [*values, rest]
    trees = graph.write(results, definition.parameters, definition.name) if found else ()
    terms = [Logarithm(name, *trees[2 * at : 2 * at + 2]) for at, (_, name, _) in enumerate(found)]
    return (definition if not found else None if rest is None else trees[-1]), tuple(terms)


class _Splitter:
    """Finds logarithms in the sums at the root of a formula."""

    def __init__(self, definition: Tree) -> None:
        self.graph = ValueGraph()
        arguments = [self.graph.parameter(name) for name in definition.parameters]
        self.result = self.graph.read(definition, arguments, [name for name in LOGARITHMS if name not in BASIC])

    def split(self, value: int, depth: int) -> tuple[int | None, list[tuple[int, str, int]]]:
        """The rest of a value without logarithms, None if there is none, and factor, function and argument of
        each."""
        graph = self.graph
        name, operands = graph.names[value], graph.operands[value]
        if name in LOGARITHMS:
            return None, [(graph.constant(1.0), name, operands[0])]
        if name in ("add", "sub") and depth < _DEEPEST:
            (left, own), (right, other) = (self.split(operand, depth + 1) for operand in operands)
            if name == "sub":
                other = [(graph.apply("neg", factor), log, argument) for factor, log, argument in other]
            if left is None:
                left = right if right is None or name == "add" else graph.apply("neg", right)
            elif right is not None:
                left = graph.apply(name, left, right)
            return (left, own + other) if own or other else (value, [])
        if name in ("mul", "div") and depth < _DEEPEST:
            constant = [self._is_constant(operand) for operand in operands]
            if constant[1] or (constant[0] and name == "mul"):
                varying, factor = operands if constant[1] else operands[::-1]
                rest, found = self.split(varying, depth + 1)
                scaled = [(graph.apply(name, own, factor), log, argument) for own, log, argument in found]
                return (rest if rest is None else graph.apply(name, rest, factor), scaled) if found else (value, [])
        return value, []

    def _is_constant(self, value: int) -> bool:
        """Whether a value is the same for all rows."""
        needed = {value}
        # Operands come before the values that are made of them.
        for one in range(value, -1, -1):
            if one in needed:
                needed.update(self.graph.operands[one])
        return not any(self.graph.is_parameter(one) for one in needed)
