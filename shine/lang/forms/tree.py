"""The tree: a formula in the form that people, frontends and exporters see; and the primitives that it calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shine.base.lazy import cached_property
from shine.lang.forms.printing import definition_source, expression_source

BINARY_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
}
"""Primitive of each binary operator."""

UNARY_OPERATORS: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.Not: "logical_not"}
"""Primitive of each unary operator."""

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
"""Primitive of each comparison."""

COMPARISON_NODES = {name: node for node, name in COMPARISONS.items()}
"""Node of the syntax tree for each comparison."""

BOOLEAN_OPERATORS: dict[type[ast.boolop], str] = {ast.And: "logical_and", ast.Or: "logical_or"}
"""Primitives of `and` and `or`, which yield one of their operands, as in Python."""

_LONGEST_SHOWN = 200
"""Characters of a formula in the `repr` of its tree."""

CONDITIONAL = "where"
"""Primitive of the conditional expression: ``where(c, a, b)`` is ``a if c else b``."""


@dataclass(frozen=True)
class Primitive:
    """A function that formulas may call.

    Trees and primitives contain each other: a tree has the table of the primitives that it calls, and a composite
    primitive is defined by a tree.

    Parameters
    ----------
    name : str
    arity : int
    definition : Tree, optional
        The meaning of a composite primitive, in terms of other primitives. A basic primitive has none: each
        interpretation has a table of their meanings.
    """

    name: str
    arity: int
    definition: Tree | None = None

    @cached_property
    def source(self) -> str:
        """The definition as text; empty for a basic primitive."""
        return "" if self.definition is None else str(self.definition)


def agree(first: Mapping[str, Primitive], second: Mapping[str, Primitive], names: Iterable[str]) -> bool:
    """Whether names that two tables have mean the same function: a user may define a name again."""
    return all(first[name] == second[name] for name in names if name in first and name in second)


@dataclass(frozen=True, eq=False)
class Tree:
    """A verified formula, made by `shine.lang.parse.parse` or `shine.lang.forms.tape.tree_from_tape`.

    Parameters
    ----------
    parameters : tuple of str
        Names of the arguments, in calling order.
    result : ast.expr
        Value of the formula, in terms of the parameters and the assigned names.
    assignments : tuple of (str, ast.expr)
        Values that are computed before the result, each in terms of the earlier ones. Every name is assigned once.
    name : str
        Name of the formula as a function.
    functions : mapping of str to Primitive
        The table that the calls were verified against. It has the definitions of composite primitives.
    """

    parameters: tuple[str, ...]
    result: ast.expr
    assignments: tuple[tuple[str, ast.expr], ...] = ()
    name: str = "formula"
    functions: Mapping[str, Primitive] = field(default_factory=dict)

    @cached_property
    def tokens(self) -> tuple[Any, ...]:
        """Postfix listing of the whole formula. Equal trees have equal tokens."""
        assigned = (token for name, value in self.assignments for token in (*_listed(value), ("assign", name)))
        return (self.parameters, *assigned, *_listed(self.result))

    @cached_property
    def used_parameters(self) -> tuple[str, ...]:
        """The parameters that the formula uses, in their order."""
        used = {detail for kind, detail in self.tokens[1:] if kind == "name"}
        return tuple(name for name in self.parameters if name in used)

    @cached_property
    def size(self) -> int:
        """Number of nodes. Assignments count once."""
        return len(self.tokens) - 1 - len(self.assignments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.tokens == other.tokens and self._calls_the_same(other)

    def _calls_the_same(self, other: Tree) -> bool:
        called = {token[0] for token in self.tokens[1:]}
        return self.functions is other.functions or agree(self.functions, other.functions, called)

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __str__(self) -> str:
        """The formula as Python text: an expression, or a function if there are assignments.

        Examples
        --------
        >>> from shine.lang.parse import parse
        >>> str(parse("mul(a, add(b, -2.0))"))
        'a*(b + -2.0)'
        """
        if not self.assignments:
            return expression_source(self.result)
        return definition_source(self.name, self.parameters, self.assignments, self.result)

    @property
    def readable(self) -> str:
        """The formula as people write it: ``2*x**2`` for ``2.0*square(x)``; text of the same values.

        Examples
        --------
        >>> from shine.lang.parse import parse
        >>> parse("6.283185307179586*sqrt(square(a))").readable
        '2*pi*sqrt(a**2)'
        """
        named = "pi" not in (*self.parameters, *(name for name, _ in self.assignments))
        if not self.assignments:
            return expression_source(self.result, readable=True, named=named)
        return definition_source(self.name, self.parameters, self.assignments, self.result, readable=True, named=named)

    def __repr__(self) -> str:
        text = str(self)
        return f"Tree({text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + '...'!r})"


def names_in(expression: ast.expr) -> tuple[str, ...]:
    """Names whose values an expression reads, each once, in the order of their first use."""
    found: dict[str, None] = {}
    waiting: list[ast.AST] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            found[node.id] = None
        elif isinstance(node, ast.Call):
            # The name of a called function is not the name of a value, even if a value has the same name.
            waiting += reversed(node.args)
        else:
            waiting += reversed(list(ast.iter_child_nodes(node)))
    return tuple(found)


def _listed(root: ast.AST) -> list[tuple[str, Any]]:
    """Postfix tokens: (kind, detail) pairs that are equal if the nodes are equal."""
    found: list[tuple[str, Any]] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        token, operands = _LISTED[type(node)](node)
        found.append(token)
        waiting += operands
    found.reverse()
    return found


_LISTED: dict[type[ast.AST], Callable[[Any], tuple[tuple[str, Any], list[ast.expr]]]] = {
    # repr tells -0.0 from 0.0 and 1 from 1.0, which == does not.
    ast.Constant: lambda node: (("constant", repr(node.value)), []),
    ast.Name: lambda node: (("name", node.id), []),
    ast.UnaryOp: lambda node: ((UNARY_OPERATORS[type(node.op)], 1), [node.operand]),
    ast.BinOp: lambda node: ((BINARY_OPERATORS[type(node.op)], 2), [node.left, node.right]),
    ast.Compare: lambda node: (
        ("compare", tuple(COMPARISONS[type(op)] for op in node.ops)),
        [node.left, *node.comparators],
    ),
    ast.BoolOp: lambda node: ((BOOLEAN_OPERATORS[type(node.op)], len(node.values)), node.values),
    ast.IfExp: lambda node: ((CONDITIONAL, 3), [node.test, node.body, node.orelse]),
    ast.Call: lambda node: ((node.func.id, len(node.args)), node.args),
}
"""Token and operands of each node."""
