"""Expressions of functions of vectors whose values are known before the individual."""

from __future__ import annotations

import ast
import functools
import operator
from typing import Any

from shine.lang.forms.grammar import reject
from shine.lang.forms.tree import BINARY_OPERATORS, COMPARISONS


class Fixed(ast.NodeTransformer):
    """Computes with whole numbers, and takes items and parts of lists and of slices."""

    def __init__(self) -> None:
        self.lengths: dict[str, int] = {}
        """Of the vectors that are known."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        match node.left, node.right:
            case ast.List(first), ast.List(second) if isinstance(node.op, ast.Add):
                return ast.List([*first, *second], ast.Load())
        name = BINARY_OPERATORS.get(type(node.op))
        return _computed(node, name, node.left, node.right) if name in ("add", "sub", "mul") else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        return _computed(node, COMPARISONS.get(type(node.ops[0])), node.left, node.comparators[-1], len(node.ops))

    def visit_List(self, node: ast.List | ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        parts = [each.value if isinstance(each, ast.Starred) else ast.List([each], ast.Load()) for each in node.elts]
        items = [self.known(each) for each in parts]
        return node if None in items else ast.List([each for part in items for each in part or ()], ast.Load())

    visit_Tuple = visit_List

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self.visit(node.test)
        if isinstance(node.test, ast.Constant):
            return self.visit(node.body if node.test.value else node.orelse)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.slice, ast.Tuple):
            *outer, last = node.slice.elts
            inner = functools.reduce(lambda value, at: ast.Subscript(value, at, ast.Load()), outer, node.value)
            return self.visit(ast.copy_location(ast.Subscript(inner, last, ast.Load()), node))
        self.generic_visit(node)
        part = node.slice
        low, high = bounds_of(part) if isinstance(part, ast.Slice) else (whole_number(part), None)
        if isinstance(node.value, ast.List | ast.Tuple) and ... not in (low, high):
            items = node.value.elts
            if isinstance(part, ast.Slice):
                return ast.List(items[low:high], ast.Load())
            if -len(items) <= low < len(items):
                return items[low]
        if isinstance(node.value, ast.List | ast.Tuple):
            reject(
                f"an item of a list or a table is chosen by a known number, 0 to {len(node.value.elts) - 1}, or by the "
                "variable of a loop over known numbers",
                node,
            )
        if not isinstance(node.value, ast.Subscript) or not isinstance(node.value.slice, ast.Slice):
            return node
        start, stop = bounds_of(node.value.slice)
        if not all(each is None or (each is not ... and each >= 0) for each in (start, stop, low, high)):
            reject("an element of a slice has a known place that is not below 0; write elements of the vector", node)
        place = (start or 0) + (low or 0)
        ends = [each for each in (stop, None if high is None else (start or 0) + high) if each is not None]
        if isinstance(part, ast.Slice):
            made: ast.expr = ast.Slice(number(place), number(min(ends)) if ends else None)
        elif ends and place >= min(ends):
            reject("the slice has no such element", node)
        else:
            made = number(place)
        return ast.copy_location(ast.Subscript(node.value.value, made, ast.Load()), node)

    def known(self, node: ast.expr) -> list[ast.expr] | None:
        """The items of a visited iterable, if their number is known."""
        match node:
            case ast.List(items) | ast.Tuple(items):
                return items
            case ast.Name(name) if name in self.lengths:
                return [element(node, i) for i in range(self.lengths[name])]
            case ast.Subscript(vector, ast.Slice() as part) if (bounds := bounds_of(part))[1] not in (None, ...):
                start, stop = bounds[0] or 0, bounds[1]
                if start is ... or start < 0 or stop < 0:
                    return None
                return [element(vector, i) for i in range(start, stop)]
            case ast.Call(ast.Name("range"), arguments) if all(type(whole_number(each)) is int for each in arguments):
                return [number(i) for i in range(*map(whole_number, arguments))]
            case ast.Call(ast.Name("reversed" | "enumerate" | "zip" as name), arguments, []):
                lists = [known for each in arguments if (known := self.known(each)) is not None]
                if not lists or len(lists) < len(arguments) or (name != "zip" and len(lists) > 1):
                    return None
                if name == "reversed":
                    return lists[0][::-1]
                lists = lists if name == "zip" else [list(map(number, range(len(lists[0])))), *lists]
                return [ast.Tuple(list(each), ast.Load()) for each in zip(*lists, strict=False)]
        return None


def _computed(node: ast.expr, name: str | None, left: ast.expr, right: ast.expr, operators: int = 1) -> ast.expr:
    """An operation of two whole numbers, as its result."""
    first, second = whole_number(left), whole_number(right)
    if name is None or ... in (first, second) or operators > 1:
        return node
    return ast.copy_location(number(int(getattr(operator, name)(first, second))), node)


def element(vector: ast.expr, place: int) -> ast.expr:
    """An element of a vector."""
    return ast.Subscript(vector, ast.Constant(place), ast.Load())


def bounds_of(part: ast.Slice) -> tuple[Any, Any]:
    """The bounds of a slice: whole numbers, None, or ... for others."""
    return whole_number(part.lower), whole_number(part.upper) if part.step is None else ...


def number(value: int) -> ast.expr:
    """A whole number as an expression."""
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def whole_number(node: ast.expr | None) -> Any:
    """The whole number that an expression is; None if there is no expression, and ... if it is something else."""
    match node:
        case None:
            return None
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if not isinstance(value, bool):
            return -value
    return ...
