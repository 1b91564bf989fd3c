"""Users' own functions, rewritten from their source so that the language's verifier accepts them.

Statements that the language lacks are rewritten if their meaning for one row of numbers is clear: `try` (see
`shine.lang.python.source`), ``with numpy.errstate(...)``, masks such as ``x[numpy.isinf(x)] = 1``, and
``isinstance(x, numpy.ndarray)``, which is true. Everything else is kept, and the verifier rejects it.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Collection, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.grammar import reject
from shine.lang.python.expressions import Expressions, PrimitiveOf, Scope, constant, described, load, number_of
from shine.lang.python.source import (
    Handlers,
    always_returns,
    as_function,
    conditions,
    definition_in,
    definition_of,
    guarded,
    handlers_of,
)

_SILENT = frozenset({id(np.errstate), id(warnings.catch_warnings)})
"""Functions that a `with` may call: they change which warnings are shown, but no value."""

_MUTE = frozenset({id(np.seterr), id(warnings.simplefilter), id(warnings.filterwarnings)})
"""Functions that a statement may call: they change which warnings are shown, but no value."""


def translated(
    function: FunctionType,
    arity: int,
    bound: Sequence[Any],
    named: Mapping[str, Any],
    primitive_of: PrimitiveOf,
    by_name: Collection[str] = (),
    source: str | None = None,
) -> ast.FunctionDef:
    """The definition of a function as the language's verifier takes it.

    Parameters
    ----------
    function : function
    arity : int
        Number of arguments of a call.
    bound, named : sequence, mapping
        Values of bound arguments, by position and by name. The first `arity` others are arguments of the call, and the
        rest have their defaults.
    primitive_of : callable
    by_name : collection of str
        Primitives that it may call by their bare names.
    source : str, optional
        The text of its definition; by default it is read from the function's file.

    Raises
    ------
    UnsupportedSyntaxError
        If it cannot be translated.
    """
    node = definition_of(function, source)
    if node.args.vararg or node.args.kwarg:
        raise UnsupportedSyntaxError("it takes '*' arguments; give each argument a name")
    positional = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    names = [*positional, *(argument.arg for argument in node.args.kwonlyargs)]
    given = dict(zip(positional, bound, strict=False)) | dict(named)
    own = [name for name in positional if name not in given][:arity]
    if len(own) < arity:
        raise UnsupportedSyntaxError(f"it takes {len(own)} arguments, not {arity}")
    signature = inspect.signature(function, follow_wrapped=False).parameters
    prelude = [
        _assign(name, _value(name, given.get(name, signature[name].default))) for name in names if name not in own
    ]
    scope = Scope(function, {*names, *_stored(node)}, by_name)
    return definition(own, [*prelude, *Statements(scope, primitive_of).block(as_function(node).body, None)])


def translated_text(source: str, primitive_of: PrimitiveOf, by_name: Collection[str]) -> ast.FunctionDef:
    """The definition that a text consists of, as the language's verifier takes it; see `translated`."""
    node = definition_in(source)
    arguments = node.args
    if any((arguments.posonlyargs, arguments.kwonlyargs, arguments.vararg, arguments.kwarg, arguments.defaults)):
        raise UnsupportedSyntaxError("its parameters are plain names: no defaults, '*', '**' or '/'")
    names = [argument.arg for argument in arguments.args]
    scope = Scope(None, {*names, *_stored(node)}, by_name)
    return definition(names, Statements(scope, primitive_of).block(as_function(node).body, None))


def _stored(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def definition(parameters: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """A function with some parameters and a body."""
    arguments = ast.arguments([], [ast.arg(name) for name in parameters], None, [], [], None, [])
    return ast.FunctionDef("primitive", arguments, body, [])


def _value(name: str, value: object) -> ast.expr:
    if value is inspect.Parameter.empty:
        raise UnsupportedSyntaxError(f"it takes more arguments than it is given: {name!r} has no value")
    number = number_of(value)
    if number is None:
        raise UnsupportedSyntaxError(f"its argument {name!r} is {described(value)}, not a number")
    return constant(number)


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


class Statements:
    """Rewrites the statements of one function."""

    def __init__(self, scope: Scope, primitive_of: PrimitiveOf) -> None:
        self._scope = scope
        self._expressions = Expressions(scope, primitive_of)

    def block(self, body: Sequence[ast.stmt], handlers: Handlers | None) -> list[ast.stmt]:
        """Rewritten statements; in a `try`, each is reached only if none before it raised a caught exception."""
        done: list[ast.stmt] = []
        rest = list(body)
        # Nothing after statements that always return is reached.
        while rest and not always_returns(done):
            statement = rest.pop(0)
            if isinstance(statement, ast.With):
                self._check_with(statement)
                rest = [*statement.body, *rest]
            elif isinstance(statement, ast.Try):
                done += self._try(statement, handlers)
            elif isinstance(statement, ast.If) and self._scope.tests_for_array(statement.test):
                rest = [*statement.body, *rest]
            elif not self._does_nothing(statement):
                self._expressions.raised = []
                if isinstance(statement, ast.If):
                    # In a `try`, the following statements move into both branches: either may skip them.
                    later, rest = (rest, []) if handlers else ([], rest)
                    made = self._if(statement, later, handlers)
                else:
                    made = self._simple(statement)
                caught = conditions(self._expressions.raised, handlers)
                if caught:
                    following = [made, *self.block(rest, handlers)]
                    return [*done, *guarded(caught, lambda body: self.block(body, None), following)]
                done.append(made)
        return done

    def _if(self, node: ast.If, later: Sequence[ast.stmt], handlers: Handlers | None) -> ast.stmt:
        test = self._expressions.visit(node.test)
        raised = self._expressions.raised
        then, other = (
            self.block(branch if always_returns(branch) else [*branch, *later], handlers)
            for branch in (node.body, node.orelse)
        )
        self._expressions.raised = raised
        if not then:
            test, then, other = ast.UnaryOp(ast.Not(), test), other, []
        return ast.copy_location(ast.If(test, then or [_assign("unused", test)], other), node)

    def _try(self, node: ast.Try, outer: Handlers | None) -> list[ast.stmt]:
        if outer is not None:
            reject("a 'try' within a 'try' cannot be followed; write one with several 'except'", node)
        if node.finalbody or node.orelse:
            reject("'else' and 'finally' of a 'try' are not translated; write the statements after it", node)
        return self.block(node.body, handlers_of(node, self._scope.find))

    def _simple(self, node: ast.stmt) -> ast.stmt:
        visit, made = self._expressions.visit, node
        match node:
            case ast.Return(value=ast.expr() as value):
                made = ast.Return(visit(value))
            case ast.Assign(targets=[ast.Tuple() as targets], value=ast.Tuple(elts=values)):
                made = ast.Assign([targets], ast.Tuple([visit(value) for value in values], ast.Load()))
            case ast.Assign(targets=[ast.Name() as target], value=value):
                made = ast.Assign([target], visit(value))
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                made = ast.Assign([target], visit(value))
            case ast.AugAssign(target=ast.Name() as target, op=operator, value=value):
                both = ast.copy_location(ast.BinOp(load(target.id), operator, value), node)
                made = ast.Assign([target], visit(both))
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=mask)], value=value):
                made = _assign(name, ast.IfExp(self._expressions.mask(mask), visit(value), load(name)))
        return made if made is node else ast.copy_location(made, node)

    def _check_with(self, node: ast.With) -> None:
        for item in node.items:
            context = item.context_expr
            if not isinstance(context, ast.Call) or id(self._scope.find(context.func)) not in _SILENT:
                reject("'with' is only translated for numpy.errstate and warnings.catch_warnings", node)

    def _does_nothing(self, node: ast.stmt) -> bool:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Expr(value=ast.Call(func=function)):
                return id(self._scope.find(function)) in _MUTE
        return False
