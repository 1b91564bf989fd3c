"""Expressions of users' functions: names become the numbers they are bound to, calls become calls of primitives.

The exceptions that an expression can raise are collected in the order of evaluation, for the `try` around it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from types import FunctionType
from typing import Any

import numpy as np

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.grammar import NAMED_CONSTANTS, reject
from shine.lang.forms.names import value_text
from shine.lang.python.known import MODULES, RAISES_OF_OPERATORS, TRUTHS, Raises, known_of
from shine.lang.python.source import Raised

_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def number_of(value: object) -> float | None:
    """A number or truth value as a float; None if it is neither, or too large for a float."""
    if not isinstance(value, _NUMBERS):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def constant(value: float) -> ast.expr:
    """A number as an expression: a quotient if it is not finite, because such numbers have no literal."""
    if math.isfinite(value):
        return ast.Constant(value)
    numerator = 0.0 if math.isnan(value) else math.copysign(1.0, value)
    return ast.BinOp(ast.Constant(numerator), ast.Div(), ast.Constant(0.0))


def described(value: object) -> str:
    """A description of a value for messages."""
    name = getattr(value, "__name__", None)
    return f"{value_text(value, 40) if name is None else name} of type {type(value).__name__}"


PrimitiveOf = Callable[[Any, int, str], str]
"""``primitive_of(object, arity, name)``: name of the object's primitive; `name` is used for a new one."""

MISSING = object()
"""The value of a name that is not bound."""

_BITWISE: Mapping[type[ast.operator], str] = {
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}


class Scope:
    """The objects that the names of a function are bound to when it is translated.

    Parameters
    ----------
    function : function, optional
        Without one, names mean what they mean in a text: `builtins`, and the modules of `MODULES`.
    local : set of str
        Its local names.
    by_name : collection of str
        Primitives that it may call by their bare names.
    given : mapping of str to object, optional
        Values of its parameters.
    """

    def __init__(
        self,
        function: FunctionType | None,
        local: set[str],
        by_name: Collection[str] = (),
        given: Mapping[str, Any] | None = None,
    ) -> None:
        self._bound: dict[str, Any] = {**vars(builtins), **(MODULES if function is None else function.__globals__)}
        for name, cell in zip(*_cells(function), strict=False):
            with suppress(ValueError):  # assigned later than the function is read
                self._bound[name] = cell.cell_contents
        self._bound.update(given or {})
        self.local, self._by_name = local, by_name

    def find(self, node: ast.expr) -> Any:
        """The object of a dotted name; `MISSING` if the name is local or unbound, or it is not a name."""
        if isinstance(node, ast.Name):
            return MISSING if node.id in self.local else self._bound.get(node.id, MISSING)
        if isinstance(node, ast.Attribute):
            owner = self.find(node.value)
            return MISSING if owner is MISSING else getattr(owner, node.attr, MISSING)
        return MISSING

    def is_by_name(self, node: ast.expr) -> bool:
        """Whether a name means one of Shine's primitives: it has this name, and is bound to no function."""
        if not isinstance(node, ast.Name) or node.id in self.local or node.id not in self._by_name:
            return False
        bound = self._bound.get(node.id, MISSING)
        return known_of(bound) is None and not isinstance(bound, FunctionType)

    def is_named_constant(self, node: ast.expr) -> bool:
        """Whether a name means a number of the language, where Shine's names may be used."""
        return bool(self._by_name) and isinstance(node, ast.Name) and node.id in NAMED_CONSTANTS

    def tests_for_array(self, node: ast.expr) -> bool:
        """Whether an expression is ``isinstance(name, numpy.ndarray)``."""
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(), kind]):
                return self.find(kind) is np.ndarray
        return False


def _cells(function: FunctionType | None) -> tuple[Sequence[str], Sequence[Any]]:
    return ((), ()) if function is None else (function.__code__.co_freevars, function.__closure__ or ())


class Expressions(ast.NodeVisitor):
    """Rewrites expressions; nodes without a rule here are kept, and the language's verifier rejects them.

    Attributes
    ----------
    raised : list of Raised
        Exceptions that the expressions visited so far can raise.
    """

    def __init__(self, scope: Scope, primitive_of: PrimitiveOf) -> None:
        self._scope, self._primitive_of = scope, primitive_of
        self.raised: list[Raised] = []
        self._guard: ast.expr | None = None

    def visit(self, node: ast.AST) -> ast.expr:
        made: ast.expr = super().visit(node)
        return made if made is node else ast.copy_location(made, node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return node

    def mask(self, node: ast.expr) -> ast.expr:
        """A mask over rows as a condition on one row."""
        if isinstance(node, ast.Compare | ast.Call | ast.BinOp | ast.Name):
            return self.visit(node)
        reject("only masks such as x[numpy.isinf(x)] are translated, no other subscripts", node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Constant(int(node.value)) if isinstance(node.value, bool) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return node if node.id in self._scope.local else self._number(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self._number(node)

    def _number(self, node: ast.expr) -> ast.expr:
        value = self._scope.find(node)
        number = number_of(value)
        if value is MISSING and self._scope.is_named_constant(node):
            return node
        if value is MISSING:
            reject(f"{ast.unparse(node)!r} is not known here", node)
        if number is None:
            reject(f"{ast.unparse(node)!r} is {described(value)}, not a number", node)
        return constant(number)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return ast.UnaryOp(node.op, self.visit(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        if type(node.op) in _BITWISE:
            self._check_truth(node.left, node)
            self._check_truth(node.right, node)
            return call(_BITWISE[type(node.op)], [left, right])
        self._raise(RAISES_OF_OPERATORS.get(type(node.op), ()), [left, right])
        return ast.BinOp(left, node.op, right)

    def _check_truth(self, operand: ast.expr, node: ast.BinOp) -> None:
        if not self._may_be_truth(operand):
            reject(
                f"{ast.unparse(operand)!r} in {ast.unparse(node)!r} is a number, and '&', '|' and '^' combine truth "
                "values only, as numbers are floats; for whole numbers write x % 2 instead of x & 1",
                node,
            )

    def _may_be_truth(self, node: ast.expr) -> bool:
        """Whether an expression can be a truth value; a name and a call of an own function can."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, bool)
            case ast.UnaryOp(op=operator):
                return isinstance(operator, ast.Not)
            case ast.BinOp(op=operator):
                return type(operator) in _BITWISE
            case ast.Call(func=function):
                known = known_of(self._scope.find(function))
                return known is None or not TRUTHS.isdisjoint(known.names)
            case ast.Name() | ast.Attribute():
                value = self._scope.find(node)
                return value is MISSING or isinstance(value, bool | np.bool_)
            case ast.IfExp(body=body, orelse=orelse):
                return self._may_be_truth(body) and self._may_be_truth(orelse)
        return True

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        outer, operands = self._guard, [self.visit(node.left), self.visit(node.comparators[0])]
        for operator, comparator in zip(node.ops, node.comparators[1:], strict=False):
            # The rest of a chain is evaluated only while the chain holds.
            self._guard = _and(self._guard, ast.Compare(operands[-2], [operator], [operands[-1]]))
            operands.append(self.visit(comparator))
        self._guard = outer
        return ast.Compare(operands[0], node.ops, operands[1:])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        outer, values = self._guard, [self.visit(node.values[0])]
        for value in node.values[1:]:
            last = values[-1] if isinstance(node.op, ast.And) else ast.UnaryOp(ast.Not(), values[-1])
            self._guard = _and(self._guard, last)
            values.append(self.visit(value))
        self._guard = outer
        return ast.BoolOp(node.op, values)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        if self._scope.tests_for_array(node.test):
            return self.visit(node.body)
        test, outer = self.visit(node.test), self._guard
        self._guard = _and(outer, test)
        body = self.visit(node.body)
        self._guard = _and(outer, ast.UnaryOp(ast.Not(), test))
        orelse = self.visit(node.orelse)
        self._guard = outer
        return ast.IfExp(test, body, orelse)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        text, function = ast.unparse(node.func), self._scope.find(node.func)
        if self._scope.is_by_name(node.func):
            self.raised.append(Raised(Exception, "", (), self._guard))
            return call(text, [self.visit(argument) for argument in node.args])
        if function is MISSING:
            reject(f"it calls {text!r}, which is no function that is known here", node)
        if node.keywords:
            return self._where_call(node, function)
        arguments = [self.visit(argument) for argument in node.args]
        known = known_of(function)
        if known is None:
            self.raised.append(Raised(Exception, "", (), self._guard))
        elif known.folded and len(arguments) > 2:
            name = self._primitive_of(function, 2, text)
            return functools.reduce(lambda a, b: call(name, [a, b]), arguments)
        else:
            self._raise(known.raises, arguments)
        try:
            name = self._primitive_of(function, len(arguments), getattr(function, "__name__", "function"))
        except UnsupportedSyntaxError as error:
            reject(f"it calls {text!r}: {error}", node)
        return call(name, arguments)

    def _where_call(self, node: ast.Call, function: object) -> ast.expr:
        """``numpy.divide(a, b, out=other, where=mask)``: the result where the mask holds, else ``other``."""
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if not isinstance(function, np.ufunc) or set(given) != {"where", "out"}:
            reject(f"keywords of {ast.unparse(node.func)!r} are not translated, except 'out' with 'where'", node)
        plain = ast.copy_location(ast.Call(node.func, node.args, []), node)
        return ast.IfExp(self.mask(given["where"]), self.visit(plain), self.visit(given["out"]))

    def _raise(self, raises: Raises, arguments: Sequence[ast.expr]) -> None:
        self.raised += [Raised(kind, condition, tuple(arguments), self._guard) for kind, condition in raises]


def load(name: str) -> ast.expr:
    """The value of a name."""
    return ast.Name(name, ast.Load())


def call(name: str, arguments: Sequence[ast.expr]) -> ast.expr:
    """The call of a primitive."""
    return ast.Call(load(name), list(arguments), [])


def _and(guard: ast.expr | None, condition: ast.expr) -> ast.expr:
    return condition if guard is None else ast.BoolOp(ast.And(), [guard, condition])
