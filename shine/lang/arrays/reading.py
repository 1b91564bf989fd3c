"""Source text, a Python function or a syntax tree -> an array formula, if it has vectors."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.arrays.formula import ArrayFormula
from shine.lang.arrays.loops import Loops
from shine.lang.arrays.outer import bound_arguments, with_values
from shine.lang.arrays.verifier import REDUCTIONS, ArrayVerifier, Indices
from shine.lang.forms.functions import FunctionVerifier, Path, parameters_of
from shine.lang.forms.grammar import check_name, reject
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import listed, shown
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.parse import natural_order, syntax_tree
from shine.lang.python.known import bare_names
from shine.lang.python.source import as_function, definition_of, in_file_of
from shine.lang.sympy import is_symbolic

_TEXTS = {"math.prod": "prod", "np.prod": "prod", "np.sum": "sum", "functools.reduce": "reduce"} | {
    f"numpy.{name}": name for name in ("prod", "sum")
}
"""The same as texts write them, if they name the module."""

_OPERATORS = {"operator.mul": "mul", "operator.add": "add"}


class Texts(ast.NodeTransformer):
    """Replaces ``math.prod`` by ``prod``, and the like."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        text = ast.unparse(node) if isinstance(node.value, ast.Name) else ""
        name = _TEXTS.get(text) or _OPERATORS.get(text)
        return node if name is None else ast.copy_location(ast.Name(name, ast.Load()), node)


_ITERABLES = ("zip", "enumerate", "reversed")


def array_formula(
    source: object,
    parameters: Sequence[str] | None = None,
    primitives: Mapping[str, Primitive] = STANDARD,
    vectors: dict[str, Any] | None = None,
) -> ArrayFormula | None:
    """The array formula that a source is; None if the source has no vectors, or is of another kind.

    Parameters
    ----------
    source : str, function or ast node
        An expression, the text of a function definition, a Python function, a lambda too, or the syntax tree of one.
        A function may return a tuple. Its outer names, bound arguments and defaults stand for their values.
    parameters : sequence of str, optional
        Names of the arguments in calling order. By default those of the function; of an expression, the vectors and
        then the numbers, each in natural order.
    primitives : mapping of str to Primitive
        The functions that it may call.
    vectors : dict of str to array-like, optional
        Gets the lists of numbers that a function brings along, by the name of the parameter that stands for each. A
        parameter with a value here before has no other one.

    Raises
    ------
    UnsupportedSyntaxError
        If it has vectors, but is not part of the language. The message says what, where, and what is allowed.

    Examples
    --------
    >>> array_formula("sum(v*v for v in x[1:]) / n")
    ArrayFormula('sum(x[i]*x[i] for i in range(1, len(x)))/len(x)')
    >>> array_formula("x*x") is None
    True
    """
    if isinstance(known := getattr(source, "formula", source), ArrayFormula):
        return known
    if is_symbolic(source):  # SymPy's functions can be called, too
        return None
    source, given = bound_arguments(source)
    if isinstance(source, str):
        node: ast.AST = syntax_tree(source)
    elif inspect.isfunction(source):
        try:
            node = definition_of(source)
        except UnsupportedSyntaxError:
            if vectors is not None:
                raise
            return None
    elif isinstance(source, ast.AST):
        node = source
    else:
        return None
    while isinstance(node, ast.Expression | ast.Expr | ast.Module):
        if isinstance(node, ast.Module) and len(node.body) != 1:
            return None
        node = {ast.Module: lambda each: each.body[0], ast.Expression: lambda each: each.body}.get(
            type(node), lambda each: each.value
        )(node)
    # Copies and visitors recurse, and formulas without vectors may be deeper than that allows.
    calls = vectors is not None and inspect.isfunction(source)
    if not (
        calls or is_array_syntax(node) or any(isinstance(part, ast.Attribute | ast.For) for part in ast.walk(node))
    ):
        return None
    node = Texts().visit(copy.deepcopy(node))
    if not (calls or is_array_syntax(node) or any(isinstance(part, ast.For) for part in ast.walk(node))):
        return None
    with in_file_of(source):
        node = bare_names(Loops().visit(node))
        if inspect.isfunction(source):
            given = {name: value for name, value in given.items() if name not in (vectors or {})}
            assert isinstance(node, ast.FunctionDef | ast.Lambda)
            node, called = with_values(as_function(node), source, given, vectors)
            primitives = {**primitives, **called}
        return _verified(node, parameters, primitives)


def is_array_syntax(node: ast.AST) -> bool:
    """Whether a syntax tree has anything that only array formulas have."""
    return any(
        isinstance(part, ast.Subscript | ast.GeneratorExp | ast.ListComp)
        or _called(part) in ("len", "sum", "prod", "reduce")
        for part in ast.walk(node)
    ) or any(
        _called(part) in REDUCTIONS and len(part.args) == 1 for part in ast.walk(node) if isinstance(part, ast.Call)
    )


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _verified(node: ast.AST, parameters: Sequence[str] | None, primitives: Mapping[str, Primitive]) -> ArrayFormula:
    if isinstance(node, ast.Lambda):
        node = as_function(node)
    given = None if parameters is None else _names(parameters)
    if isinstance(node, ast.FunctionDef):
        return _reordered(_of_function(node, primitives), given)
    if not isinstance(node, ast.expr):
        reject(f"a formula is one expression or one function definition, not {type(node).__name__}", node)
    vectors = set(_vectors(node))
    known = None if given is None else {name: name for name in given}
    verifier = ArrayVerifier(primitives, known, vectors, _identifiers(node), Indices())
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    if not parts:
        reject("a formula has at least one value", node)
    results = tuple(verifier.visit(each) for each in parts)
    names = given
    if names is None:
        names = sorted(verifier.seen, key=lambda name: (name not in vectors, natural_order(name)))
    return ArrayFormula(tuple(names), _in_order(names, vectors), results, functions=primitives)


def _names(parameters: Sequence[str]) -> list[str]:
    if isinstance(parameters, str):
        raise TypeError("parameters is a sequence of names, not one string")
    names = [check_name(name) for name in parameters]
    if len(set(names)) < len(names):
        raise UnsupportedSyntaxError("a parameter is listed twice")
    return names


def _vectors(node: ast.AST) -> Iterator[str]:
    """Names that are used as vectors are: before brackets, in `len`, or to be run over."""
    for part in ast.walk(node):
        over: list[ast.expr] = []
        if isinstance(part, ast.Subscript):
            over = [part.value]
        elif isinstance(part, ast.comprehension):
            over = [part.iter]
        elif _called(part) in ("len", *_ITERABLES):
            over = part.args  # type: ignore[attr-defined]
        elif _called(part) in REDUCTIONS:
            arguments: list[ast.expr] = part.args  # type: ignore[attr-defined]
            over = arguments[1:2] if _called(part) == "reduce" else arguments if len(arguments) == 1 else []
            over = arguments[:1] if _called(part) in ("sum", "prod") else over
        yield from (each.id for each in over if isinstance(each, ast.Name))


def _identifiers(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _in_order(names: Sequence[str], vectors: set[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in vectors)


def _reordered(formula: ArrayFormula, names: list[str] | None) -> ArrayFormula:
    if names is None:
        return formula
    missing = next((name for name in formula.parameters if name not in names), None)
    if missing is not None:
        raise UnsupportedSyntaxError(f"the formula needs a parameter {shown(missing)}; given are {listed(names)}")
    return ArrayFormula(
        tuple(names),
        _in_order(names, set(formula.vectors)),
        formula.results,
        formula.assignments,
        formula.name,
        formula.functions,
    )


def _of_function(node: ast.FunctionDef, primitives: Mapping[str, Primitive]) -> ArrayFormula:
    parameters = parameters_of(node)
    vectors = set(_vectors(node)) & set(parameters)
    verifier = _ArrayFunctionVerifier(primitives, parameters, vectors, _identifiers(node))
    tree: Tree = verifier.verify(check_name(node.name.removeprefix("__").removesuffix("__"), node), node.body)
    results = tuple(_results(tree.result, node))
    return ArrayFormula(
        tuple(parameters), _in_order(parameters, vectors), results, tree.assignments, tree.name, primitives
    )


def _results(result: ast.expr, node: ast.AST) -> list[ast.expr]:
    """The values of a function: a conditional expression of tuples becomes a tuple of conditional expressions."""
    chain: list[tuple[ast.expr, ast.expr]] = []
    while isinstance(result, ast.IfExp) and isinstance(result.body, ast.Tuple):
        chain.append((result.test, result.body))
        result = result.orelse
    if not chain:
        return list(result.elts) if isinstance(result, ast.Tuple) else [result]
    values = list(result.elts) if isinstance(result, ast.Tuple) else []
    for test, body in reversed(chain):
        assert isinstance(body, ast.Tuple)
        if len(body.elts) != len(values):
            reject("every 'return' of a function has the same number of values", node)
        values = [ast.IfExp(test, own, other) for own, other in zip(body.elts, values, strict=True)]
    return values


class _ArrayFunctionVerifier(FunctionVerifier):
    """Verifies functions of vectors and numbers, which may return a tuple."""

    def __init__(
        self, primitives: Mapping[str, Primitive], parameters: Sequence[str], vectors: set[str], identifiers: set[str]
    ) -> None:
        super().__init__(primitives, parameters)
        self._vectors, self._identifiers, self._indices = vectors, identifiers, Indices()

    def _expression(self, node: ast.expr, path: Path) -> ast.expr:
        if isinstance(node, ast.Tuple):
            if not node.elts:
                reject("a function returns at least one value", node)
            return ast.copy_location(ast.Tuple([self._expression(each, path) for each in node.elts], ast.Load()), node)
        # `n` is no outer name of a function.
        names = {"n": None, **path.names}
        verifier = ArrayVerifier(self.primitives, names, self._vectors, self._identifiers, self._indices)
        value: Any = verifier.visit(node)
        return value

    def _conditional(self, node: ast.expr, path: Path) -> ast.expr:
        if isinstance(node, ast.Tuple):
            reject("a name is assigned one number; a tuple can only be returned", node)
        return super()._conditional(node, path)

    def _assign(self, name: str, value: ast.expr) -> str:
        if name in self._vectors:
            raise UnsupportedSyntaxError(f"{shown(name)} is a vector and cannot be assigned")
        unique = super()._assign(name, value)
        self._indices.assign(unique, value)
        return unique
