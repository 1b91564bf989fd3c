"""From a Python function to the node of its definition, lambdas included."""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from shine.base.errors import UnsupportedSyntaxError, placed
from shine.lang.forms.grammar import reject

Definition = ast.FunctionDef | ast.Lambda


def definition_of(function: FunctionType, source: str | None = None) -> Definition:
    """The definition of a function, found in its source file, or in a text that is given for it.

    It is found by the function's code, not by ``__wrapped__``: if a decorator returned another function, the definition
    is that of the other function.

    An `UnsupportedSyntaxError` if there is no source, or several definitions on a line fit the function.
    """
    code = function.__code__
    if source is not None:
        return _definition_in(source, code)
    try:
        # A lambda is part of a statement that may begin on an earlier line: search the whole file.
        found = [] if code.co_name == "<lambda>" else _found(*inspect.getsourcelines(code), code)
        found = found if len(found) == 1 else _found(inspect.findsource(code)[0], 1, code)
        if not found and code.co_filename == "<string>":
            raise OSError  # from Python 3.13 on, the text of `python -c` passes for the source of what `exec` made
    except (OSError, TypeError, SyntaxError, ValueError):
        name = function.__name__ if function.__name__.isidentifier() else "name"
        text = f"'def {name}({', '.join(code.co_varnames[: code.co_argcount])}): ...'"
        raise UnsupportedSyntaxError(
            f"its source is not at hand; define it in a file or a notebook's cell, or give its text in its place, "
            f"{text}; for a primitive set of DEAP, as sources={{'{name}': {text}}}"
        ) from None
    if len(found) > 1:
        found = [node for node in found if _spans(code) & {_span(part) for part in _ends(node)}] or found
    if len(found) != 1:
        problem = "cannot be told from others on its line" if found else "is not in its file; was it changed?"
        raise UnsupportedSyntaxError(f"its definition in line {code.co_firstlineno} {problem}")
    return found[0]


def as_function(node: Definition) -> ast.FunctionDef:
    """A lambda as a function that returns its expression; other definitions as they are."""
    if isinstance(node, ast.FunctionDef):
        return node
    body: list[ast.stmt] = [ast.copy_location(ast.Return(node.body), node.body)]
    return ast.copy_location(ast.FunctionDef("formula", node.args, body, []), node)


def file_of(function: FunctionType) -> str | None:
    """The file of a function, from the current folder if it is there; None if it has none, as in a notebook."""
    path = Path(function.__code__.co_filename)
    if not path.is_file() or "ipykernel" in path.parent.name:
        return None
    with suppress(ValueError, OSError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)


@contextmanager
def in_file_of(source: object, start: str = "") -> Iterator[None]:
    """Begin the messages of `UnsupportedSyntaxError`s in this way; those with a line get the file of a function."""
    try:
        yield
    except UnsupportedSyntaxError as error:
        file = file_of(source) if isinstance(source, FunctionType) and error.line is not None else None
        raise UnsupportedSyntaxError(start + error.message, error.line, error.column, file or error.file) from None


def _definition_in(source: str, code: CodeType) -> Definition:
    """The definition that a text consists of; it must take the arguments of a function's code."""
    node = definition_in(source)
    given = tuple(each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if given != own:
        raise UnsupportedSyntaxError(
            f"its text in sources takes ({', '.join(given)}), but the function takes ({', '.join(own)})"
        )
    return node


def definition_in(source: str) -> Definition:
    """The definition that a text consists of: ``def name(x): ...``, or a lambda, which may be assigned to a name.

    An `UnsupportedSyntaxError` if the text is anything else.
    """
    errors = SyntaxError, ValueError, MemoryError, RecursionError
    with placed("its text is not Python", *errors, kind=UnsupportedSyntaxError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns about code that it would run; this code never runs
        body = ast.parse(textwrap.dedent(source).strip()).body
    match body:
        case [ast.FunctionDef() as node]:
            return node
        case [ast.Expr(value=ast.Lambda() as node)] | [ast.Assign(value=ast.Lambda() as node)]:
            return node
    raise UnsupportedSyntaxError("its text is not one definition; write one such as 'def name(x): return x*x'")


def _found(lines: list[str], first: int, code: CodeType) -> list[Definition]:
    """Definitions in lines of a file that fit a function's code, with their places in the file."""
    text = textwrap.dedent("".join(lines))
    indent = len(lines[0]) - len(lines[0].lstrip()) if first > 1 else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warned when it read the file
        tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):
            node.lineno += first - 1
            node.col_offset += indent
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda) and _may_be(node, code)]


def _may_be(node: Definition, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        name, first = "<lambda>", node.lineno
    else:
        name, first = node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    given = tuple(argument.arg for argument in arguments)
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return (name, first, given) == (code.co_name, code.co_firstlineno, own)


def _ends(node: Definition) -> list[ast.expr]:
    """The returned expressions of a definition."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value is not None]


def _span(node: ast.expr) -> tuple[int | None, ...]:
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


def _spans(code: CodeType) -> set[tuple[int | None, ...]]:
    return set(code.co_positions())


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
