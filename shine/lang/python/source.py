"""From a Python function to the node of its definition, lambdas included."""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType

from shine.base.errors import UnsupportedSyntaxError

Definition = ast.FunctionDef | ast.Lambda


def definition_of(function: FunctionType, source: str | None = None) -> Definition:
    """The definition of a function, found in its source file, or in a text that is given for it.

    It is found by the function's code, not by ``__wrapped__``: if a decorator returned another function, the definition
    is that of the other function.

    Raises
    ------
    UnsupportedSyntaxError
        If there is no source, or several definitions on a line fit the function.
    """
    code = function.__code__
    if source is not None:
        return _definition_in(source, code)
    try:
        # A lambda is part of a statement that may begin on an earlier line: search the whole file.
        found = [] if code.co_name == "<lambda>" else _found(*inspect.getsourcelines(code), code)
        found = found if len(found) == 1 else _found(inspect.findsource(code)[0], 1, code)
    except (OSError, TypeError, SyntaxError, ValueError):
        name = function.__name__ if function.__name__.isidentifier() else "name"
        text = f"'def {name}({', '.join(code.co_varnames[: code.co_argcount])}): ...'"
        raise UnsupportedSyntaxError(
            "its source is not at hand; define it in a file or a notebook's cell, or give its text: "
            f"primitives=[{text}] for a search, sources={{'{name}': {text}}} for a primitive set of DEAP"
        ) from None
    if len(found) > 1:
        found = [node for node in found if _spans(code) & {_span(part) for part in _ends(node)}] or found
    if len(found) != 1:
        problem = "cannot be told from others on its line" if found else "is not in its file; was it changed?"
        raise UnsupportedSyntaxError(f"its definition in line {code.co_firstlineno} {problem}")
    return found[0]


def file_of(function: FunctionType) -> str | None:
    """The file of a function, from the current folder if it is there; None if it has none, as in a notebook."""
    path = Path(function.__code__.co_filename)
    if not path.is_file() or "ipykernel" in path.parent.name:
        return None
    with suppress(ValueError, OSError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)


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

    Raises
    ------
    UnsupportedSyntaxError
        If the text is anything else.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about code that it would run; this code never runs
            body = ast.parse(textwrap.dedent(source).strip()).body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise UnsupportedSyntaxError(f"its text is not Python: {error}") from None
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
    return (name, first, given) == (code.co_name, code.co_firstlineno, code.co_varnames[: len(given)])


def _ends(node: Definition) -> list[ast.expr]:
    """The returned expressions of a definition."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Return) and part.value is not None]


def _span(node: ast.expr) -> tuple[int | None, ...]:
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


def _spans(code: CodeType) -> set[tuple[int | None, ...]]:
    return set(code.co_positions())
