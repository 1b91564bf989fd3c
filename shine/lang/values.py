"""The value graph of formulas: it holds each value once, however often formulas compute or use it.

Trees are read into the graph, and trees are written from it. In between, transforms such as derivatives rewrite the
values.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from shine.lang.forms.facts import basic_where
from shine.lang.forms.grammar import LARGEST_EXACT
from shine.lang.forms.interpretation import Interpretation
from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import BASIC
from shine.lang.forms.tape import application
from shine.lang.forms.tree import CONDITIONAL, Primitive, Tree
from shine.lang.interpret import EXACT, folded

_REORDERED = basic_where(lambda facts: facts.family == "arithmetic" and facts.commutative)
"""Primitives whose operands are swapped if that gives a value that is known already."""

_PARAMETER, _CONSTANT = "parameter", "constant"


class ValueGraph:
    """Values in an order of computation. A value is its position in that order.

    Attributes
    ----------
    names : list of str
        Primitive that computes each value, or ``"parameter"`` or ``"constant"``; no primitive has these names.
    operands : list of tuple of int
        The values that the primitive of each value is applied to.
    table : mapping of str to Primitive
        The meanings of the primitives.
    """

    table: Mapping[str, Primitive] = STANDARD

    def __init__(self) -> None:
        self.names: list[str] = []
        self.operands: list[tuple[int, ...]] = []
        self._leaves: dict[int, str | int | float] = {}
        self._known: dict[tuple[str, object], int] = {}

    def parameter(self, name: str) -> int:
        """The value of a parameter."""
        return self._leaf(_PARAMETER, name, name)

    def constant(self, number: int | float) -> int:
        """The value of a number."""
        # repr tells -0.0 from 0.0 and 1 from 1.0, which == does not.
        return self._leaf(_CONSTANT, repr(number), number)

    def number(self, value: int) -> int | float | None:
        """The number of a constant; None for other values."""
        if self.names[value] != _CONSTANT:
            return None
        number = self._leaves[value]
        assert not isinstance(number, str)
        return number

    def is_parameter(self, value: int) -> bool:
        """Whether a value is a parameter."""
        return self.names[value] == _PARAMETER

    def apply(self, name: str, *operands: int) -> int:
        """The value of a primitive applied to values, without simplification."""
        key = name, operands
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.names)
            self.names.append(name)
            self.operands.append(operands)
        return known

    def simplified(self, name: str, *operands: int) -> int:
        """The value of a primitive in new code, without trivial operations: a sum with 0, a product with 0 or 1.

        A product with the constant 0 is 0, even if the other factor is infinite or NaN. Do not use it for formulas
        whose bits must stay.
        """
        numbers = [self.number(operand) for operand in operands]
        known = [number for number in numbers if number is not None]
        value = folded(name, known) if len(known) == len(numbers) and name in EXACT else None
        if value is not None:
            return self.constant(int(value) if value.is_integer() and abs(value) < LARGEST_EXACT else value)
        rule = _SIMPLER.get(name)
        simpler = rule(self, *operands) if rule else None
        if simpler is None and name in _REORDERED and (name, operands[::-1]) in self._known:
            operands = operands[::-1]
        return self.apply(name, *operands) if simpler is None else simpler

    def read(self, tree: Tree, arguments: Sequence[int], kept: Collection[str], *, simplify: bool = False) -> int:
        """Add the values of a tree.

        Parameters
        ----------
        tree : Tree
        arguments : sequence of int
            Values of its parameters.
        kept : collection of str
            Composite primitives of Shine that become one value. All others become the values of their definitions.
        simplify : bool
            Whether the tree is new code that `simplified` may shorten. Otherwise its bits stay the same.

        Returns
        -------
        int
            The value of the tree.
        """
        return _Reader(self, kept, self.simplified if simplify else self.apply).read(tree, arguments)

    def write(self, results: Sequence[int], parameters: Sequence[str], name: str) -> tuple[Tree, ...]:
        """One tree for each result. All share the assignments of the values that are used more than once."""
        uses = self._uses(results)
        taken, number = set(parameters), 0
        expressions: dict[int, ast.expr] = {}
        depths: dict[int, int] = {}
        assignments: list[tuple[str, ast.expr]] = []
        for value in sorted(uses):
            operands = self.operands[value]
            depths[value] = 1 + max((depths[operand] for operand in operands), default=0)
            if self.names[value] == _PARAMETER:
                expressions[value] = ast.Name(str(self._leaves[value]), ast.Load())
            elif self.names[value] == _CONSTANT:
                expressions[value] = ast.Constant(self._leaves[value])
            else:
                expressions[value] = application(self.names[value], [expressions[operand] for operand in operands])
                # Greatest depth of nested expressions that are written; Python's parser reads far deeper ones.
                if uses[value] > 1 or depths[value] > 8:
                    number += 1
                    while f"v{number}" in taken:
                        number += 1
                    assignments.append((f"v{number}", expressions[value]))
                    expressions[value] = ast.Name(f"v{number}", ast.Load())
                    depths[value] = 1
        shared = tuple(assignments)
        return tuple(Tree(tuple(parameters), expressions[value], shared, name, self.table) for value in results)

    def _leaf(self, kind: str, key: str, leaf: str | int | float) -> int:
        known = self._known.get((kind, key))
        if known is None:
            known = self._known[kind, key] = len(self.names)
            self.names.append(kind)
            self.operands.append(())
            self._leaves[known] = leaf
        return known

    def _uses(self, results: Sequence[int]) -> dict[int, int]:
        """Number of uses of each value that the results need."""
        uses: dict[int, int] = {}
        waiting = list(results)
        while waiting:
            value = waiting.pop()
            uses[value] = uses.get(value, 0) + 1
            if uses[value] == 1:
                waiting += self.operands[value]
        return uses


class _Reader(Interpretation):
    """Turns the nodes of trees into values. Calls of composites are replaced by their definitions, as in AstJit."""

    def __init__(self, graph: ValueGraph, kept: Collection[str], apply: Callable[..., int]) -> None:
        self.graph = graph
        self.kept = kept
        self.apply = apply
        self.values: dict[str, int] = {}
        self.functions: Mapping[str, Primitive] = {}

    def read(self, tree: Tree, arguments: Sequence[int]) -> int:
        caller = self.values, self.functions
        self.values, self.functions = dict(zip(tree.parameters, arguments, strict=True)), tree.functions
        for name, value in tree.assignments:
            self.values[name] = self.visit(value)
        result: int = self.visit(tree.result)
        self.values, self.functions = caller
        return result

    def visit_Constant(self, node: ast.Constant) -> int:
        assert isinstance(node.value, int | float)
        return self.graph.constant(node.value)

    def visit_Name(self, node: ast.Name) -> int:
        return self.values[node.id]

    def _apply(self, name: str, *operands: int) -> int:
        if name in BASIC:
            return self.apply(name, *operands)
        primitive = self.functions[name]
        if name in self.kept and primitive == self.graph.table.get(name):
            return self.apply(name, *operands)
        assert primitive.definition is not None
        return self.read(primitive.definition, operands)


def _simpler_add(graph: ValueGraph, a: int, b: int) -> int | None:
    if graph.number(a) == 0:
        return b
    if graph.number(b) == 0:
        return a
    if a == b:
        return graph.simplified("mul", graph.constant(2), a)
    if graph.names[b] == "neg":
        return graph.simplified("sub", a, graph.operands[b][0])
    if graph.names[a] == graph.names[b] == CONDITIONAL:
        (test, kept, zero), (other_test, other_zero, other_kept) = graph.operands[a], graph.operands[b]
        if test == other_test and graph.number(zero) == graph.number(other_zero) == 0:
            return graph.simplified(CONDITIONAL, test, kept, other_kept)
    return None


def _simpler_sub(graph: ValueGraph, a: int, b: int) -> int | None:
    if graph.number(b) == 0:
        return a
    return graph.simplified("neg", b) if graph.number(a) == 0 else None


def _simpler_mul(graph: ValueGraph, a: int, b: int) -> int | None:
    if "neg" in (graph.names[a], graph.names[b]):
        return _signed(graph, "mul", a, b)
    for factor, other in ((a, b), (b, a)):
        number = graph.number(factor)
        if number == 0:
            return graph.constant(0)
        if number == 1:
            return other
        if number == -1:
            return graph.simplified("neg", other)
        name, operands = graph.names[factor], graph.operands[factor]
        if name == "div" and graph.number(operands[0]) == 1:
            return graph.simplified("div", other, operands[1])
        if number is not None and graph.names[other] == "mul":
            second, rest = graph.number(graph.operands[other][0]), graph.operands[other][1]
            product = 0 if second is None else number * second
            if product != 0 and abs(product) <= sys.float_info.max:
                # Not simplified: the formula may have a chain of products of any length.
                return graph.apply("mul", graph.constant(product), rest)
    # Constants come first: the rule above looks for them there.
    return graph.apply("mul", b, a) if graph.number(b) is not None else None


def _simpler_div(graph: ValueGraph, a: int, b: int) -> int | None:
    if "neg" in (graph.names[a], graph.names[b]):
        return _signed(graph, "div", a, b)
    if graph.number(a) == 0:
        return graph.constant(0)
    return a if graph.number(b) == 1 else None


def _signed(graph: ValueGraph, name: str, a: int, b: int) -> int:
    """A product or a quotient of values without their signs; the sign is applied to the result."""
    (first, odd), (second, other_odd) = _stripped(graph, "neg", a), _stripped(graph, "neg", b)
    value = graph.simplified(name, first, second)
    return value if odd == other_odd else graph.simplified("neg", value)


def _stripped(graph: ValueGraph, name: str, value: int) -> tuple[int, bool]:
    """The operand of repeated applications of a primitive, and whether their number is odd."""
    odd = False
    while graph.names[value] == name:
        value, odd = graph.operands[value][0], not odd
    return value, odd


def _simpler_pow(graph: ValueGraph, a: int, b: int) -> int | None:
    if graph.number(b) == 0:
        return graph.constant(1)
    return a if graph.number(b) == 1 else None


def _simpler_where(graph: ValueGraph, test: int, a: int, b: int) -> int | None:
    number = graph.number(test)
    if number is not None:
        return b if number == 0 else a
    if a == b:
        return a
    if graph.names[test] == "logical_not":
        inner, odd = _stripped(graph, "logical_not", test)
        return graph.simplified(CONDITIONAL, inner, *((b, a) if odd else (a, b)))
    return None


def _simpler_logical(graph: ValueGraph, a: int, b: int, *, decides: bool) -> int | None:
    """With a constant first: itself if its truth `decides`, else the other."""
    number = graph.number(a)
    if number is not None:
        return a if (number != 0) == decides else b
    return a if a == b else None


_SIMPLER: dict[str, Callable[..., int | None]] = {
    "add": _simpler_add,
    "sub": _simpler_sub,
    "mul": _simpler_mul,
    "div": _simpler_div,
    "neg": lambda graph, a: graph.operands[a][0] if graph.names[a] == "neg" else None,
    "pow": _simpler_pow,
    "where": _simpler_where,
    "logical_and": partial(_simpler_logical, decides=False),
    "logical_or": partial(_simpler_logical, decides=True),
}
"""Rules by primitive: a simpler value for the same operands, or None."""


NESTED = 40
"""Greatest depth of nested expressions. Python's parser reads more than twice this depth."""


def written(graph: ValueGraph, value: int, parameters: Sequence[str], name: str = "formula") -> Tree:
    """The tree of a value.

    Parameters
    ----------
    graph : ValueGraph
    value : int
    parameters : sequence of str
        Parameters of the tree. The value need not depend on all of them.
    name : str

    Returns
    -------
    Tree
        Its text can be parsed, however deep the formula is.
    """
    (tree,) = graph.write([value], parameters, name)
    return _nested(tree)


def _nested(tree: Tree) -> Tree:
    """The tree with the assignments that are used once moved to their use, unless that nests too deeply."""
    expressions = [value for _, value in tree.assignments] + [tree.result]
    uses = Counter(node.id for value in expressions for node in ast.walk(value) if isinstance(node, ast.Name))
    nesting = _Nesting()
    assignments = []
    for name, value in tree.assignments:
        value = nesting.visit(value)
        depth = _depth(value)
        if uses[name] == 1 and depth < NESTED:
            nesting.values[name] = value
        else:
            assignments.append((name, value))
    return replace(tree, result=nesting.visit(tree.result), assignments=tuple(assignments))


class _Nesting(ast.NodeTransformer):
    """Replaces names by values. It may recurse: the depth of all these expressions is limited."""

    def __init__(self) -> None:
        self.values: dict[str, ast.expr] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.pop(node.id, node)


def _depth(node: ast.AST) -> int:
    return 1 + max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)
