"""Loops that only add terms to names, or multiply by them, as reductions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from typing import Any

from shine.lang.forms.grammar import reject
from shine.lang.python.expressions import load


class Loops(ast.NodeTransformer):
    """Replaces loops that only add terms to names, ``for v in x: total += v*v``, by sums; likewise for products."""

    def visit_For(self, node: ast.For) -> list[ast.stmt] | ast.For:
        self.generic_visit(node)
        if any(isinstance(each, ast.Attribute) and each.attr in ("append", "extend") for each in ast.walk(node)):
            return node
        body = _Body(node)
        body.read(node.body, None)
        made: list[ast.stmt] = [
            ast.AugAssign(ast.Name(name, ast.Store()), operator, term) for name, operator, term in body.sums()
        ]
        # What the last turn leaves in a name is not known.
        made.append(ast.Delete([ast.Name(name, ast.Del()) for name in sorted(body.assigned)]))
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in made]


class _Body:
    """The terms that a loop's body adds to names; other names that it assigns are replaced by their values."""

    def __init__(self, loop: ast.For) -> None:
        self._loop, self._targets = loop, _names(loop.target)
        self._values: dict[str, ast.expr] = {}
        self._terms: list[tuple[str, ast.operator, ast.expr]] = []
        self.assigned = set(self._targets)

    def read(self, body: list[ast.stmt], test: ast.expr | None) -> None:
        for statement in body:
            meaning: Any = _addition(statement) or statement
            match meaning:
                case (name, operator, value):
                    term = self._value(value)
                    if test is not None:
                        term = ast.IfExp(test, term, ast.Constant(int(isinstance(operator, ast.Mult))))
                    if name in self._values:
                        self._values[name] = ast.BinOp(self._values[name], operator, term)
                    else:
                        self._terms.append((name, operator, term))
                case ast.Assign([ast.Name(id=name)], value) if test is None or name in self._values:
                    new = self._value(value)
                    self._values[name] = new if test is None else ast.IfExp(test, new, self._values[name])
                    self.assigned.add(name)
                case ast.Delete() if not _names(statement) & self._targets:
                    self.assigned |= _names(statement)
                    for name in _names(statement):
                        self._values.pop(name, None)
                case ast.If():
                    holds = self._value(meaning.test)
                    for branch, each in ((meaning.body, holds), (meaning.orelse, ast.UnaryOp(ast.Not(), holds))):
                        self.read(branch, each if test is None else ast.BoolOp(ast.And(), [test, each]))
                case _:
                    reject(_OF_LOOPS, statement)

    def sums(self) -> Iterator[tuple[str, ast.operator, ast.expr]]:
        kinds = {(name, isinstance(operator, ast.Mult)) for name, operator, _ in self._terms}
        totals = {name for name, _ in kinds}
        read = set().union(*(_names(term) for *_, term in self._terms))
        # What one turn leaves to the next is no sum.
        if self._loop.orelse or len(totals) < len(kinds) or read & (totals | (self.assigned - self._targets)):
            reject(_OF_LOOPS, self._loop)
        for name, operator, term in self._terms:
            part = ast.comprehension(self._loop.target, self._loop.iter, [], 0)
            word = "prod" if isinstance(operator, ast.Mult) else "sum"
            yield name, operator, ast.Call(load(word), [copy.deepcopy(ast.GeneratorExp(term, [part]))], [])

    def _value(self, node: ast.expr) -> ast.expr:
        inner = {name for each in ast.walk(node) if isinstance(each, ast.comprehension) for name in _names(each.target)}
        if inner & set(self._values).union(*map(_names, self._values.values())):
            reject(_OF_LOOPS, node)
        value: ast.expr = _Values(self._values).visit(copy.deepcopy(node))
        return value


def _addition(statement: ast.stmt) -> tuple[str, ast.operator, ast.expr] | None:
    """The name, operator and term of ``name += term`` and the like."""
    match statement:
        case ast.AugAssign(ast.Name(id=name), ast.Add() | ast.Sub() | ast.Mult() as operator, term):
            return name, operator, term
        case ast.Assign(
            [ast.Name(id=name)], ast.BinOp(ast.Name(id=same), ast.Add() | ast.Sub() | ast.Mult() as operator, term)
        ) if name == same:
            return name, operator, term
    return None


_OF_LOOPS = (
    "a loop adds terms to a name, total += x[i]*x[i], or multiplies by them; write other loops as "
    "sum(x[i]*x[i] for i in range(len(x)))"
)


def _names(node: ast.AST) -> set[str]:
    """Names in an expression, without its own loop variables."""
    if isinstance(node, ast.Name):
        return {node.id}
    found: set[str] = set().union(*map(_names, ast.iter_child_nodes(node)))
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        found -= set().union(*(_names(part.target) for part in node.generators))
    return found


class _Values(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self._known.get(node.id, node))
