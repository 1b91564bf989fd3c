"""`try` and `except` as conditions: whether an operation would raise is tested before it is computed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from shine.lang.forms.grammar import reject


@dataclass(frozen=True)
class Raised:
    """An exception that a statement can raise.

    Parameters
    ----------
    kind : type
    condition : str
        Condition under which it is raised, in the language, of the arguments a and b; empty if unknown.
    arguments : tuple of ast.expr
    guard : ast.expr, optional
        Condition under which the operation is reached.
    """

    kind: type[Exception]
    condition: str
    arguments: tuple[ast.expr, ...]
    guard: ast.expr | None


@dataclass(frozen=True)
class Handler:
    """An `except`: the exceptions it catches and its statements."""

    kinds: tuple[type[BaseException], ...]
    body: tuple[ast.stmt, ...]
    node: ast.excepthandler


Handlers = tuple[Handler, ...]

Caught = list[tuple[ast.expr, Handler]]
"""Conditions in the order of evaluation, each with the handler that is entered if it holds."""


def handlers_of(node: ast.Try, resolve: Callable[[ast.expr], Any]) -> Handlers:
    """The handlers of a `try`, in their order."""
    return tuple(_handler(each, resolve) for each in node.handlers)


def _handler(node: ast.ExceptHandler, resolve: Callable[[ast.expr], Any]) -> Handler:
    parts = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type] if node.type is not None else []
    kinds = tuple(resolve(part) for part in parts) if node.type is not None else (BaseException,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            reject("'except' names something that is not a class of exceptions", node)
    return Handler(kinds, tuple(node.body), node)


def conditions(raised: Sequence[Raised], handlers: Handlers | None) -> Caught:
    """Conditions under which each handler is entered; an exception enters the first handler that catches it."""
    caught: Caught = []
    for each in raised:
        handler = next((h for h in handlers or () if any(issubclass(each.kind, kind) for kind in h.kinds)), None)
        if each.condition and handler is not None and _is_about(each):
            condition = _substituted(each)
            guard = each.guard
            caught.append((condition if guard is None else ast.BoolOp(ast.And(), [guard, condition]), handler))
        elif not each.condition and handlers:
            reject("within 'try' only operators and functions of Python's own can be called", handlers[0].node)
    return caught


def guarded(
    caught: Caught, translate: Callable[[Sequence[ast.stmt]], list[ast.stmt]], following: list[ast.stmt]
) -> list[ast.stmt]:
    """``if``: the conditions that raise, then the handler; ``else``: the following statements."""
    runs = [(list(run), handler) for handler, run in groupby(caught, key=lambda pair: pair[1])]
    result = following
    for run, handler in reversed(runs):
        tests = [condition for condition, _ in run]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        body = translate(copy.deepcopy(handler.body))
        made = ast.If(test, body, result) if body else ast.If(ast.UnaryOp(ast.Not(), test), result, [])
        result = [ast.copy_location(made, handler.node)]
    return result


def always_returns(body: Sequence[ast.stmt]) -> bool:
    """Whether statements return on every path."""
    if not body:
        return False
    match body[-1]:
        case ast.Return():
            return True
        case ast.If(body=then, orelse=other):
            return always_returns(then) and always_returns(other)
        case ast.With(body=inner):
            return always_returns(inner)
    return False


def _is_about(raised: Raised) -> bool:
    """Whether all arguments in a condition are given: a logarithm may have no base."""
    names = {node.id for node in ast.walk(ast.parse(raised.condition)) if isinstance(node, ast.Name)}
    return "b" not in names or len(raised.arguments) > 1


class _Substitution(ast.NodeTransformer):
    def __init__(self, arguments: dict[str, ast.expr]) -> None:
        self.arguments = arguments

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.arguments.get(node.id, node)


def _substituted(raised: Raised) -> ast.expr:
    expression = ast.parse(raised.condition, mode="eval").body
    result: ast.expr = _Substitution(dict(zip("ab", raised.arguments, strict=False))).visit(expression)
    return result
