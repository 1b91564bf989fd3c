"""From Python's functions to primitives: known ones are recognised, others translated from their source.

Statements that the language lacks are rewritten if their meaning for one row of numbers is clear: `try` (see
`shine.lang.python.source`), ``with numpy.errstate(...)``, masks such as ``x[numpy.isinf(x)] = 1``, and
``isinstance(x, numpy.ndarray)``, which is true. The verifier rejects everything else.
"""

from __future__ import annotations

import ast
import functools
import inspect
import warnings
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.functions import verify_function
from shine.lang.forms.grammar import reject
from shine.lang.forms.library import STANDARD
from shine.lang.forms.tape import functions_of
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.python.expressions import Expressions, PrimitiveOf, Scope, call, constant, described, load, number_of
from shine.lang.python.known import TABLE, Known, known_of
from shine.lang.python.source import (
    Handlers,
    always_returns,
    as_function,
    conditions,
    definition_in,
    definition_of,
    file_of,
    guarded,
    handlers_of,
)
from shine.lang.values import ValueGraph

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


class Functions:
    """Primitives made of Python's functions, one for each function and arity.

    Parameters
    ----------
    instead : mapping of str to str
        Primitives of Shine that stand for others which do the same for numbers: ``max`` for Python's, which
        returns the first of two values if one is NaN.
    by_name : mapping of str to Primitive
        Primitives that functions may call by their bare names if these are not bound to anything Shine knows.
    sources : mapping of str to str
        Texts of the definitions of functions that have no file, by name.

    Attributes
    ----------
    table : dict of str to Primitive
        Shine's primitives, and those made so far.
    unused : set of str
        Names in `sources` that no function had so far.
    """

    def __init__(
        self,
        instead: Mapping[str, str] | None = None,
        by_name: Mapping[str, Primitive] | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        self.table: dict[str, Primitive] = {**TABLE, **(by_name or {})}
        self._instead = instead or {}
        self._by_name = by_name or {}
        self._sources = sources or {}
        self.unused = set(self._sources)
        self._made: dict[tuple[int, int], str] = {}
        self._held: list[object] = []
        self._pending: list[tuple[int, int]] = []

    def primitive(self, source: Any, arity: int, name: str) -> str:
        """Name of the primitive that computes the same as a function with some number of arguments.

        Parameters
        ----------
        source : object
            A function of Python or NumPy, or one with a source; also a partial or vectorized one.
        arity : int
        name : str
            The name of a new primitive, if it is free.

        Raises
        ------
        UnsupportedSyntaxError
            If it cannot be a primitive; the message says why.
        """
        known = known_of(source)
        if known is not None and (found := known.name(arity)) is not None:
            return self._instead.get(found, found)
        key = (id(source), arity)
        if key in self._pending:
            raise UnsupportedSyntaxError(f"{name!r} calls itself, and the language has no recursion")
        if key not in self._made:
            self._pending.append(key)
            try:
                node = self._folded(known, arity) if known is not None else self._definition(source, arity, name)
                self._made[key] = self._added(name, node)
            except UnsupportedSyntaxError as error:
                raise self._in_file(error, source, name) from None
            finally:
                self._pending.pop()
            # The identity of an object may be reused once the object is freed.
            self._held.append(source)
        return self._made[key]

    def _text_of(self, function: FunctionType, name: str) -> str | None:
        """The given text of a function's definition."""
        given = next((each for each in (name, function.__name__) if each in self._sources), None)
        self.unused.discard(given or "")
        return None if given is None else self._sources[given]

    def _in_file(self, error: UnsupportedSyntaxError, source: Any, name: str) -> UnsupportedSyntaxError:
        """The same error with the file of the function whose line it names."""
        function = source.pyfunc if isinstance(source, np.vectorize) else source
        function = function.func if isinstance(function, functools.partial) else function
        if error.line is None or error.file or not isinstance(function, FunctionType) or self._text_of(function, name):
            return error
        return UnsupportedSyntaxError(error.message, error.line, error.column, file_of(function))

    def of_text(self, text: str) -> str:
        """Name of the primitive that a text defines: ``def name(x): ...``.

        An `UnsupportedSyntaxError` if the text is not one definition in the language.
        """
        name = getattr(definition_in(text), "name", "function")
        return self._added(name, translated_text(text, self.primitive, self._by_name))

    def _definition(self, source: Any, arity: int, name: str) -> ast.FunctionDef:
        bound: Sequence[Any] = ()
        named: Mapping[str, Any] = {}
        if isinstance(source, np.vectorize):
            source = source.pyfunc
        if isinstance(source, functools.partial):
            bound, named, source = source.args, source.keywords, source.func
        if isinstance(source, FunctionType):
            text = self._text_of(source, name)
            return translated(source, arity, bound, named, self.primitive, self._by_name, text)
        values = [number for value in bound if (number := number_of(value)) is not None]
        if named or len(values) < len(bound):
            raise UnsupportedSyntaxError("it has arguments bound that are not numbers by position")
        if known_of(source) is None:
            kind = "a method" if inspect.ismethod(source) else f"{described(source)}, which Shine does not know"
            raise UnsupportedSyntaxError(f"it is {kind}; write a function of numbers in Python")
        inner = self.primitive(source, arity + len(values), name)
        own = _parameters(arity)
        return definition(own, [ast.Return(call(inner, [*map(constant, values), *map(load, own)]))])

    def _folded(self, known: Known, arity: int) -> ast.FunctionDef:
        if not known.folded or arity < 2:
            takes = " or ".join(str(TABLE[each].arity) for each in known.names)
            raise UnsupportedSyntaxError(f"it takes {takes} arguments, not {arity}")
        own = _parameters(arity)
        return definition(
            own, [ast.Return(functools.reduce(lambda a, b: call(known.names[0], [a, b]), map(load, own)))]
        )

    def _added(self, name: str, node: ast.FunctionDef) -> str:
        tree = verify_function(node, self.table)
        # Not the whole table, which grows: a pickle of the primitive would hold all of it.
        called = functions_of(tree)
        tree = replace(tree, functions={**STANDARD, **{each: self.table[each] for each in called}})
        wanted = name if name.isidentifier() and not name.startswith("__") else "function"
        if wanted in TABLE and means(tree, TABLE[wanted]):
            return self._instead.get(wanted, wanted)
        unique = free_name(wanted, self.table)
        self.table[unique] = Primitive(unique, len(tree.parameters), replace(tree, name=unique))
        return unique


class _Values(ValueGraph):
    def constant(self, number: int | float) -> int:
        return super().constant(float(number))


def means(tree: Tree, primitive: Primitive) -> bool:
    """Whether a formula computes a primitive by the same operations in the same order."""
    if len(tree.parameters) != primitive.arity:
        return False
    values = _Values()
    arguments = [values.parameter(str(position)) for position in range(primitive.arity)]
    own = values.read(tree, arguments, ())
    if primitive.definition is None:
        return own == values.apply(primitive.name, *arguments)
    return own == values.read(primitive.definition, arguments, ())


def free_name(wanted: str, table: Container[str]) -> str:
    """A name that no primitive of a table has: the wanted one, or with the first free number, ``aq_1``."""
    name, number = wanted, 1
    while name in table:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _parameters(count: int) -> list[str]:
    return [f"argument_{i}" for i in range(count)]
