"""Sums and loops of a fixed length, and subscripts, written out: what is left is plain expressions and statements."""

from __future__ import annotations

import ast
import copy
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from shine.lang.forms.grammar import reject

MOST_TERMS = 1000
"""Most terms that the loops of a template are written out to."""

BY_GROUP = "by_group"
"""Attribute of names that had the column of groups as subscript."""

_REDUCTIONS: dict[str, Callable[[ast.expr, ast.expr], ast.expr]] = {
    "sum": lambda a, b: ast.BinOp(a, ast.Add(), b),
    "prod": lambda a, b: ast.BinOp(a, ast.Mult(), b),
    "min": lambda a, b: ast.Call(ast.Name("min", ast.Load()), [a, b], []),
    "max": lambda a, b: ast.Call(ast.Name("max", ast.Load()), [a, b], []),
}
"""Functions of many values, and how two are combined."""

_NUMBERS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

_ITERABLES = "range(3), a list of columns such as [a, b], zip or enumerate"

Loop = Mapping[str, ast.expr]
"""The value of each loop variable."""


class Unroller(ast.NodeTransformer):
    """Writes out the loops of a template.

    Parameters
    ----------
    groups : str, optional
        The column of groups, if the user names it.

    Attributes
    ----------
    groups : str or None
        The column of groups, named or found as the subscript of a parameter.
    by_group : dict of str to ast.AST
        Parameters with the column of groups as subscript, and where.
    """

    def __init__(self, groups: str | None) -> None:
        self.groups = groups
        self.by_group: dict[str, ast.AST] = {}
        self._loop: dict[str, ast.expr] = {}
        self._terms = 0

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._loop:
            return node
        if not isinstance(node.ctx, ast.Load):
            reject(f"{node.id!r} is the variable of a loop; assign to another name", node)
        return copy.deepcopy(self._loop[node.id])

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not isinstance(node.value, ast.Name):
            reject("only a name has a subscript: k[group] for a parameter by group, x[0] for the column x0", node)
        name, index = node.value.id, node.slice
        if isinstance(index, ast.Name) and index.id not in self._loop:
            self._group(name, index)
            found = ast.copy_location(ast.Name(name, ast.Load()), node)
            setattr(found, BY_GROUP, True)
            return found
        number = self._number(index)
        if number is None or number < 0:
            reject(
                f"the subscript of {name!r} is {ast.unparse(index)}; it can be the column of groups, or a whole number "
                "from 0 that is known beforehand: x[0] is the column x0",
                node,
            )
        return ast.copy_location(ast.Name(f"{name}{number}", ast.Load()), node)

    def _group(self, name: str, index: ast.Name) -> None:
        if self.groups is None:
            self.groups = index.id
        if index.id != self.groups:
            reject(f"{name}[{index.id}]: a template has one column of groups, and this one is {self.groups!r}", index)
        self.by_group.setdefault(name, index)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[given], keywords=[]) if name in _REDUCTIONS:
                terms = self._terms_of(given)
                if terms is not None:
                    if not terms:
                        reject(f"{name} of no terms", node)
                    return ast.copy_location(self._located(functools.reduce(_REDUCTIONS[name], terms), node), node)
        self.generic_visit(node)
        return node

    def _terms_of(self, node: ast.expr) -> list[ast.expr] | None:
        """The terms of a sum; None if it is not a sum of several."""
        match node:
            case ast.GeneratorExp(elt=term, generators=generators) | ast.ListComp(elt=term, generators=generators):
                return [self.visit(copy.deepcopy(term)) for _ in self._each(generators)]
            case ast.List(elts=terms) | ast.Tuple(elts=terms):
                return [self.visit(term) for term in terms]
        return None

    def _each(self, generators: Sequence[ast.comprehension]) -> Iterator[None]:
        """Set the loop variables to each of their values in turn."""
        if not generators:
            yield
            return
        first = generators[0]
        for _ in self._values(first.target, first.iter):
            if all(self._holds(test) for test in first.ifs):
                yield from self._each(generators[1:])

    def _values(self, target: ast.expr, iterable: ast.expr) -> Iterator[None]:
        outer = dict(self._loop)
        for value in self._items(iterable):
            self._terms += 1
            if self._terms > MOST_TERMS:
                reject(f"the loops of the template have more than {MOST_TERMS} terms", iterable)
            self._loop = {**outer, **dict(self._bound(target, value))}
            yield
        self._loop = outer

    def _bound(self, target: ast.expr, value: Any) -> Iterator[tuple[str, ast.expr]]:
        match target:
            case ast.Name(id=name):
                if isinstance(value, tuple):
                    reject(f"each value of the loop is {len(value)} values; write 'for a, b in ...'", target)
                yield name, value
            case ast.Tuple(elts=targets) if isinstance(value, tuple) and len(targets) == len(value):
                for each, own in zip(targets, value, strict=True):
                    yield from self._bound(each, own)
            case _:
                reject(f"{ast.unparse(target)!r} does not fit the values of the loop", target)

    def _items(self, node: ast.expr) -> list[Any]:
        """The values of an iterable: expressions, or tuples of them."""
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._item(item) for item in items]
            case ast.Call(func=ast.Name(id="range"), args=arguments, keywords=[]) if 1 <= len(arguments) <= 3:
                numbers = [self._number(argument) for argument in arguments]
                if None in numbers or numbers[2:] == [0]:
                    reject(f"{ast.unparse(node)}: a range has whole numbers that are known beforehand", node)
                found = range(*(number for number in numbers if number is not None))
                if len(found) > MOST_TERMS:
                    reject(f"the loops of the template have more than {MOST_TERMS} terms", node)
                return [self._located(ast.Constant(number), node) for number in found]
            case ast.Call(func=ast.Name(id="zip"), args=arguments, keywords=[]) if arguments:
                several = [self._items(argument) for argument in arguments]
                if len({len(items) for items in several}) > 1:
                    reject("zip has lists of different lengths", node)
                return list(zip(*several, strict=True))
            case ast.Call(func=ast.Name(id="enumerate"), args=[argument], keywords=[]):
                return [
                    (self._located(ast.Constant(number), node), item)
                    for number, item in enumerate(self._items(argument))
                ]
        reject(f"a loop goes over {_ITERABLES}, not over {ast.unparse(node)}", node)

    def _item(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self._item(each) for each in node.elts)
        return self.visit(copy.deepcopy(node))

    def _number(self, node: ast.expr) -> int | None:
        """The whole number that an expression is; None if it is not known beforehand."""
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return value
            case ast.Name(id=name) if name in self._loop and isinstance(self._loop[name], ast.Constant):
                return self._number(self._loop[name])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._number(operand)
                return None if number is None else -number
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _NUMBERS:
                a, b = self._number(left), self._number(right)
                if a is None or b is None or (b == 0 and isinstance(op, ast.FloorDiv | ast.Mod)):
                    return None
                return _NUMBERS[type(op)](a, b)
        return None

    def _holds(self, node: ast.expr) -> bool:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                a, b = self._number(left), self._number(right)
                if a is not None and b is not None:
                    return _COMPARISONS[type(op)](a, b)
        reject(f"the condition of a loop compares whole numbers that are known beforehand: {ast.unparse(node)}", node)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        if node.orelse:
            reject("'else' of a loop is not part of the language", node)
        found: list[ast.stmt] = []
        for _ in self._values(node.target, node.iter):
            for statement in node.body:
                made = self.visit(copy.deepcopy(statement))
                found += made if isinstance(made, list) else [made]
        return found

    @staticmethod
    def _located(node: ast.expr, at: ast.AST) -> ast.expr:
        """A new node and its new parts with the place of another node."""
        for part in ast.walk(node):
            if isinstance(part, ast.expr) and not hasattr(part, "lineno"):
                ast.copy_location(part, at)
        return node
