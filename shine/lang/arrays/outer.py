"""What a Python function of vectors brings along: bound arguments, outer values and functions, loops that sum."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import math
from collections.abc import Collection, Iterator, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.grammar import reject
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import Numbering, shown
from shine.lang.forms.tree import Primitive
from shine.lang.python.expressions import MISSING, Scope, constant, described, load, number_of
from shine.lang.python.functions import Functions
from shine.lang.python.known import OWN_MEANINGS, known_of

_REDUCTIONS: Mapping[int, str] = {
    **{id(each): each.__name__ for each in (functools.reduce, math.prod, np.prod, np.sum)},
    **{id(each): each.__name__ for each in (sum, min, max, len, range, zip, enumerate, reversed)},
}
"""Functions of vectors by identity; their words in the language."""


def bound_arguments(source: Any) -> tuple[Any, dict[str, Any]]:
    """The function of a partial or a method, and the values of the parameters that are bound or have defaults.

    The first parameter that is not bound is the individual, also if it has a default.
    """
    arguments: tuple[Any, ...] = ()
    named: dict[str, Any] = {}
    while isinstance(source, functools.partial) or inspect.ismethod(source):
        if inspect.ismethod(source):
            arguments, source = (source.__self__, *arguments), source.__func__
        else:
            arguments, named, source = (*source.args, *arguments), {**source.keywords, **named}, source.func
    if not inspect.isfunction(source):
        return source, {}
    signature = inspect.signature(source, follow_wrapped=False).parameters
    unknown = next((name for name in named if name not in signature), None)
    if unknown is not None or len(arguments) > len(signature):
        raise UnsupportedSyntaxError(f"{source.__name__} takes ({', '.join(signature)}), and other arguments are bound")
    given = dict(zip(signature, arguments, strict=False)) | named
    free = [name for name in signature if name not in given]
    defaults = {name: signature[name].default for name in free[1:]}
    return source, given | {name: value for name, value in defaults.items() if value is not inspect.Parameter.empty}


def with_values(
    node: ast.FunctionDef, function: FunctionType, given: Mapping[str, Any], vectors: dict[str, Any] | None
) -> tuple[ast.FunctionDef, dict[str, Primitive]]:
    """A definition without outer names, and the functions that it calls besides those of the language.

    Parameters
    ----------
    node : ast.FunctionDef
        Changed in place.
    function : function
    given : mapping of str to object
        Values of parameters: see `bound_arguments`.
    vectors : dict of str to array-like, optional
        Gets the outer lists of numbers; the definition has a parameter for each. Without it they are refused.
    """
    own = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    node.args = ast.arguments([], [each for each in own if each.arg not in given], None, [], [], None, [])
    numbers = {name: number for name, value in given.items() if (number := number_of(value)) is not None}
    stored = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    local = {each.arg for each in node.args.args} | stored | set(numbers)
    outer = _Outer(function, local, given, vectors)
    node.body = [outer.visit(each) for each in node.body]
    prelude: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], constant(numbers[name])) for name in numbers]
    start = int(isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant))  # a docstring
    node.body[start:start] = [ast.fix_missing_locations(ast.copy_location(each, node)) for each in prelude]
    node.args.args += [ast.arg(name) for name in outer.names.values()]
    return node, outer.functions


class _Outer(ast.NodeTransformer):
    def __init__(
        self, function: FunctionType, local: Collection[str], given: Mapping[str, Any], vectors: dict[str, Any] | None
    ) -> None:
        self._scope = Scope(function, set(local), given=given)
        self._vectors, self._free, self._made = vectors, Numbering(local), Functions()
        self.names: dict[str, str] = {}
        """Of the parameters for lists, by the text that means the list."""
        self.functions: dict[str, Primitive] = {}

    def visit_Name(self, node: ast.Name | ast.Attribute) -> ast.AST:
        value, text = self._scope.find(node), ast.unparse(node)
        number, known = number_of(value), known_of(value)
        name = None if known is None else known.name(2)
        if number is not None:
            made = ast.Constant(int(value)) if isinstance(value, int | np.integer) else constant(number)
            return ast.fix_missing_locations(ast.copy_location(made, node))
        if text not in self.names and _is_vector(value):
            if self._vectors is None:
                reject(f"{shown(text)} is a list; make it a parameter", node)
            self.names[text] = self._free.take(text.rpartition(".")[2])
            self._vectors[self.names[text]] = value
        name = self.names.get(text) or (name if name in ("mul", "add") else None)
        if name is None and value is not MISSING:
            reject(
                f"{shown(text)} is {described(value)}, no number or list of numbers; make it a parameter, and give an "
                "objective its value in constants={...}",
                node,
            )
        return node if name is None else ast.copy_location(load(name), node)

    visit_Attribute = visit_Name

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [self.visit(each) for each in node.args]
        function = self._scope.find(node.func)
        if function is not MISSING:
            node.func = ast.copy_location(load(self._called(node, function)), node.func)
        return node

    def _called(self, node: ast.Call, function: Any) -> str:
        text, known = ast.unparse(node.func), known_of(function)
        if id(function) in _REDUCTIONS:
            return _REDUCTIONS[id(function)]
        name = None if known is None else known.name(2 if known.folded else len(node.args))
        name = None if name is None else OWN_MEANINGS.get(name, name)
        if known is None and isinstance(function, FunctionType | functools.partial) and not node.keywords:
            try:
                name = self._made.primitive(function, len(node.args), text.rpartition(".")[2])
            except UnsupportedSyntaxError as error:
                reject(f"{shown(text)} cannot be called: functions take and return numbers here, and {error}", node)
        if name is not None and name not in STANDARD and name in self._made.table:
            self.functions[name] = self._made.table[name]
        if name not in STANDARD and name not in self.functions:
            reject(f"{shown(text)} is a function that array formulas cannot call; write its expression instead", node)
        return str(name)


def _is_vector(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "biuf"
    return isinstance(value, list | tuple) and bool(value) and all(number_of(each) is not None for each in value)


class Loops(ast.NodeTransformer):
    """Replaces loops that only add terms to names, ``for v in x: total += v*v``, by sums; likewise for products."""

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        self.generic_visit(node)
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
