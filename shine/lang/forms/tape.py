"""The tape: a formula in postfix order, as two plain arrays. Evolution works on tapes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.base.typing import Codes, Floats
from shine.lang.forms.names import MOST_PRIMITIVES, listed, shown
from shine.lang.forms.primitives import CONSTANT, PrimitiveSet
from shine.lang.forms.tree import BINARY_OPERATORS, BOOLEAN_OPERATORS, COMPARISONS, CONDITIONAL, UNARY_OPERATORS, Tree
from shine.lang.forms.visitor import TreeVisitor, Visit

MAX_NODES = 1_000_000
"""Longest tape. Assignments are copied to every use, so that a short tree may become a tape of any length."""


@dataclass(frozen=True)
class Tape:
    """Nodes of one formula in postfix order.

    Parameters
    ----------
    codes : ndarray of shape (size,), int16
        Codes of a `PrimitiveSet`.
    values : ndarray of shape (size,), float64
        Values of the constants, 0 elsewhere.
    """

    codes: Codes
    values: Floats


def tape_from_tree(tree: Tree, primitives: PrimitiveSet) -> Tape:
    """The tape of a tree.

    An `UnsupportedSyntaxError` if the primitive set lacks a name or a function of the tree, or the tape becomes too
    long.
    """
    writer = _TapeWriter(tree, primitives)
    writer.visit(tree.result)
    return Tape(np.array(writer.codes, np.int16), np.array(writer.values, np.float64))


class _TapeWriter(TreeVisitor):
    def __init__(self, tree: Tree, primitives: PrimitiveSet) -> None:
        self.primitives = primitives
        self.assigned = dict(tree.assignments)
        self.codes: list[int] = []
        self.values: list[float] = []

    def _append(self, code: int, value: float = 0.0) -> None:
        if len(self.codes) >= MAX_NODES:
            raise UnsupportedSyntaxError(
                f"the formula has more than {MAX_NODES} nodes once its assignments are copied to where they are used"
            )
        self.codes.append(code)
        self.values.append(value)

    def _call(self, name: str) -> None:
        code = self.primitives.function_codes.get(name)
        if code is None:
            known = listed(self.primitives.function_codes, MOST_PRIMITIVES)
            raise UnsupportedSyntaxError(f"primitive {shown(name)} is not in the primitive set; it has {known}")
        self._append(code)

    def visit_Constant(self, node: ast.Constant) -> None:
        assert isinstance(node.value, int | float)
        self._append(CONSTANT, float(node.value))

    def visit_Name(self, node: ast.Name) -> Visit:
        if node.id in self.assigned:
            yield self.assigned[node.id]
            return
        code = self.primitives.feature_codes.get(node.id)
        if code is None:
            known = listed(self.primitives.features)
            raise UnsupportedSyntaxError(f"name {shown(node.id)} is not a feature; the features are {known}")
        self._append(code)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        yield node.operand
        self._call(UNARY_OPERATORS[type(node.op)])

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        yield node.left
        yield node.right
        self._call(BINARY_OPERATORS[type(node.op)])

    def visit_Compare(self, node: ast.Compare) -> Visit:
        # a < b < c has no node of its own on the tape: it is (a < b) and (b < c).
        left = node.left
        for position, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            yield left
            yield right
            self._call(COMPARISONS[type(operator)])
            if position:
                self._call("logical_and")
            left = right

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        for position, operand in enumerate(node.values):
            yield operand
            if position:
                self._call(BOOLEAN_OPERATORS[type(node.op)])

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        for operand in (node.test, node.body, node.orelse):
            yield operand
        self._call(CONDITIONAL)

    def visit_Call(self, node: ast.Call) -> Visit:
        assert isinstance(node.func, ast.Name)
        for argument in node.args:
            yield argument
        self._call(node.func.id)


def functions_of(tree: Tree) -> set[str]:
    """Names of the primitives on a tree's tape."""
    names: set[str] = set()
    for kind, detail in tree.tokens[1:]:
        if isinstance(detail, int):
            names.add(kind)
        elif kind == "compare":
            names.update(detail, ["logical_and"] if len(detail) > 1 else [])
    return names


_OPERATOR_NODES: dict[str, ast.operator | ast.unaryop | ast.cmpop | ast.boolop] = {
    name: node()
    for table in (BINARY_OPERATORS, UNARY_OPERATORS, COMPARISONS, BOOLEAN_OPERATORS)
    for node, name in table.items()
}


def application(name: str, arguments: Sequence[ast.expr]) -> ast.expr:
    """The node that applies a primitive: an operator if Python has one, a call otherwise; a negative number is one."""
    operator = _OPERATOR_NODES.get(name)
    match operator:
        case ast.USub() if isinstance(arguments[0], ast.Constant):
            return ast.Constant(-arguments[0].value)  # type: ignore[operator]
        case ast.operator():
            return ast.BinOp(arguments[0], operator, arguments[1])
        case ast.unaryop():
            return ast.UnaryOp(operator, arguments[0])
        case ast.cmpop():
            return ast.Compare(arguments[0], [operator], [arguments[1]])
        case ast.boolop():
            return ast.BoolOp(operator, list(arguments))
    if name == CONDITIONAL:
        return ast.IfExp(*arguments)
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def tree_from_tape(codes: Codes, values: Floats, primitives: PrimitiveSet) -> Tree:
    """The tree of a tape; the inverse of `tape_from_tree` for trees without assignments.

    A `ValueError` if the codes are not a formula in postfix order.
    """
    stack: list[ast.expr] = []
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        if code == CONSTANT:
            stack.append(ast.Constant(value))
        elif 0 < code < primitives.first_function:
            stack.append(ast.Name(primitives.features[code - 1], ast.Load()))
        elif primitives.first_function <= code < len(primitives.arities):
            function = primitives.function(code)
            if len(stack) < function.arity:
                raise ValueError(f"not a tape: {function.name!r} lacks arguments")
            arguments = stack[-function.arity :]
            del stack[-function.arity :]
            stack.append(application(function.name, arguments))
        else:
            raise ValueError(f"not a tape: code {code} is not in the primitive set")
    if len(stack) != 1:
        raise ValueError(f"not a tape: it leaves {len(stack)} values, not 1")
    return Tree(primitives.features, stack[0], functions=primitives.table)
