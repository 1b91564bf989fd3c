"""Builds an expression again, with other constants or names in it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from shine.lang.forms.visitor import TreeVisitor, Visit


class Rebuilding(TreeVisitor):
    """Builds an expression again; subclasses replace constants and names."""

    def keeps(self, exponent: ast.expr) -> bool:
        """Whether the exponent of a power stays as it is."""
        return False

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        operand = yield node.operand
        return ast.UnaryOp(node.op, operand)

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        left = yield node.left
        kept = isinstance(node.op, ast.Pow) and self.keeps(node.right)
        right = node.right if kept else (yield node.right)
        return ast.BinOp(left, node.op, right)

    def visit_Compare(self, node: ast.Compare) -> Visit:
        left = yield node.left
        comparators = yield from _each(node.comparators)
        return ast.Compare(left, node.ops, comparators)

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        values = yield from _each(node.values)
        return ast.BoolOp(node.op, values)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        test, body, orelse = yield from _each([node.test, node.body, node.orelse])
        return ast.IfExp(test, body, orelse)

    def visit_Call(self, node: ast.Call) -> Visit:
        assert isinstance(node.func, ast.Name)
        kept = node.func.id == "pow" and self.keeps(node.args[1])
        arguments = yield from _each(node.args[:1] if kept else node.args)
        return ast.Call(node.func, [*arguments, node.args[1]] if kept else arguments, [])


def _each(nodes: Sequence[ast.expr]) -> Visit:
    made = []
    for node in nodes:
        made.append((yield node))
    return made
