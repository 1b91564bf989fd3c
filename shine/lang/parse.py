"""Source text, a Python function, a syntax tree or a SymPy expression -> a verified tree."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from numbers import Integral, Real
from types import FunctionType

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.functions import verify_function
from shine.lang.forms.grammar import TOO_LARGE, ExpressionVerifier, check_name, reject
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import cut, listed, shown
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.presentation import check_powers, in_python
from shine.lang.python.known import bare_names
from shine.lang.python.source import as_function, definition_of, in_file_of
from shine.lang.sympy import Symbolic, is_symbolic, symbolic_tree

MAX_SOURCE = 500_000
"""Longest source text that is parsed, in characters."""

Source = str | Callable[..., object] | ast.AST | Tree | Symbolic
"""Forms of a formula."""


def parse(
    source: Source, parameters: Sequence[str] | None = None, primitives: Mapping[str, Primitive] = STANDARD
) -> Tree:
    """Verify a formula.

    Parameters
    ----------
    source : str, function, ast node, Tree, Model or SymPy expression
        An expression, in which ``^`` is a power as ``**`` is, the text of one function definition or lambda, a Python
        function whose source is available, a lambda too, with the numbers around it that it reads, the syntax tree of
        either, a model, or an expression that `shine.formats.read.sympy.from_sympy` reads.
    parameters : sequence of str, optional
        Names of the arguments, in calling order, or SymPy's symbols. The default is the function's own parameters, or
        the names in an expression, in natural order (``a, b, x2, x10``).
    primitives : mapping of str to Primitive
        The functions a formula may call.

    Returns
    -------
    Tree

    Raises
    ------
    UnsupportedSyntaxError
        If the formula is not part of the language. The message says what, where, and what is allowed.
    GraphImportError
        If part of a SymPy expression has no counterpart in the language.
    TypeError
        If `source` is of any other type.

    Examples
    --------
    >>> parse("sqrt(a*a + b*b)").parameters
    ('a', 'b')
    """
    node: ast.AST
    if isinstance(getattr(source, "tree", None), Tree):
        source = source.tree  # type: ignore[union-attr]  # a model
    if isinstance(source, str):
        node = syntax_tree(source)
    elif isinstance(source, ast.AST):
        node = source
    elif inspect.isfunction(source):
        with in_file_of(source, f"function {source.__name__!r}: "):
            node = bare_names(_OuterNumbers(source).visit(definition_of(source)))
    elif is_symbolic(source):
        source = _of_symbols(source, primitives)
    elif not isinstance(source, Tree):
        raise TypeError(
            "a formula is a string, a Python function, an ast node, a Tree, a model or a SymPy expression, "
            f"not {'None' if source is None else type(source).__name__}"
        )
    if parameters is not None:
        if isinstance(parameters, str):
            raise TypeError("parameters is a sequence of names, not one string")
        parameters = [check_name(str(name) if is_symbolic(name) else name) for name in parameters]
        if len(set(parameters)) < len(parameters):
            raise UnsupportedSyntaxError("a parameter is listed twice")
    if isinstance(source, Tree):
        return _reordered(source, parameters)
    with in_file_of(source):
        return _verify(node, parameters, primitives)


class _OuterNumbers(ast.NodeTransformer):
    """Writes out the numbers around a function that it reads: those of now."""

    def __init__(self, function: FunctionType) -> None:
        self.around = {name: value for each in inspect.getclosurevars(function)[:2] for name, value in each.items()}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.around.get(node.id)
        if isinstance(value, bool) or not isinstance(value, Real):
            return node
        return ast.copy_location(ast.Constant(int(value) if isinstance(value, Integral) else float(value)), node)


def _verify(node: ast.AST, parameters: Sequence[str] | None, primitives: Mapping[str, Primitive]) -> Tree:
    match node:
        case ast.Module(body=[ast.FunctionDef() as function]):
            return _verify(function, parameters, primitives)
        case ast.Module(body=[ast.Expr(value=expression)]) | ast.Expression(body=expression):
            return _verify(expression, parameters, primitives)
        case ast.Lambda():
            return _verify(as_function(node), parameters, primitives)
        case ast.FunctionDef():
            for decorator in node.decorator_list:
                if not _is_own_decorator(decorator):
                    reject("decorators are not part of the language", decorator)
            return _reordered(verify_function(node, primitives), parameters)
        case ast.expr():
            names = None if parameters is None else {name: name for name in parameters}
            verifier = ExpressionVerifier(primitives, names)
            result = verifier.visit(node)
            ordered = tuple(sorted(verifier.seen, key=natural_order)) if parameters is None else tuple(parameters)
            return Tree(ordered, result, functions=primitives)
    kind = type(node).__name__
    reject(f"a formula is one expression or one function definition, not {kind}", node)


def natural_order(name: str) -> list[tuple[bool, int | str]]:
    """Sorting key that puts ``x2`` before ``x10``."""
    # Every second part is a number. Only ASCII digits count: int() does not read all of Unicode's.
    return [(bool(i % 2), int(part) if i % 2 else part) for i, part in enumerate(re.split(r"([0-9]+)", name))]


def _of_symbols(source: Symbolic, primitives: Mapping[str, Primitive]) -> Tree:
    """The tree of a SymPy expression. Only a `Lambda` defines the order of its parameters."""
    tree = symbolic_tree(source, {}, primitives)
    if type(source).__name__ == "Lambda":
        return tree
    return replace(tree, parameters=tuple(sorted(tree.parameters, key=natural_order)))


def _reordered(tree: Tree, parameters: Sequence[str] | None) -> Tree:
    if parameters is None:
        return tree
    known = set(parameters)
    unknown = next((name for name in tree.parameters if name not in known), None)
    if unknown is not None:
        raise UnsupportedSyntaxError(f"the formula needs a parameter {shown(unknown)}; given are {listed(parameters)}")
    return replace(tree, parameters=tuple(parameters))


def _is_own_decorator(node: ast.expr) -> bool:
    """Whether a decorator is `shine.jit`, which reads the source of the function including the decorator."""
    function = node.func if isinstance(node, ast.Call) else node
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    return name == "jit"


def syntax_tree(source: str) -> ast.AST:
    """The syntax tree of a text: an expression, or a module with its statements.

    An `UnsupportedSyntaxError` if the text is empty, too long, or not Python.
    """
    text = source.strip()
    if not text:
        raise UnsupportedSyntaxError("the formula is empty; write an expression such as 'a*x + b'")
    if len(text) > MAX_SOURCE:
        raise UnsupportedSyntaxError(f"the formula has {len(text)} characters; at most {MAX_SOURCE} are read")
    mode = "exec" if re.match(r"(def|@)\b|@", text) else "eval"
    # In an expression that is no program, it is a power, as on paper; Python's exclusive or is not in the language.
    powers = mode == "eval" and "^" in text
    text = text.replace("^", "**") if powers else text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about code that it would run; this code never runs
            tree: ast.AST = ast.parse(text, mode=mode)
    except SyntaxError as error:
        julia = in_python(text) if mode == "eval" else None
        if julia is not None:
            with suppress(UnsupportedSyntaxError):
                return syntax_tree(julia)
        # Python gives offset 0 if something is missing at the end.
        column = error.offset or len(text.splitlines()[-1]) + 1
        # Python's own message for a too long integer is about settings of Python.
        is_large = "digits) for integer string conversion" in str(error.msg)
        problem = TOO_LARGE if is_large else f"not a Python expression: {cut(error.msg)}"
        raise UnsupportedSyntaxError(problem, error.lineno, column) from None
    except (MemoryError, RecursionError):
        raise UnsupportedSyntaxError(
            "the formula is nested too deeply to be read from text; build its tree as objects instead"
        ) from None
    except ValueError as error:
        # NUL bytes and lone surrogates; for surrogates, the message repeats the whole text.
        raise UnsupportedSyntaxError(f"not a Python expression: {str(error)[-80:]}") from None
    if powers:
        check_powers(tree)
    return bare_names(tree) if "." in text else tree
