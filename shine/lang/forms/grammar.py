"""The allowlist: the part of Python that formulas may use. Everything else is rejected, and nothing is ever evaluated.

A verified tree consists of new nodes in one normal form: operators instead of calls if Python has the operator,
`and`/`or` of two operands, negative numbers as constants.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Mapping
from functools import lru_cache
from keyword import iskeyword
from typing import Any, NoReturn

from shine.base.errors import UnsupportedSyntaxError
from shine.lang.forms.names import MOST_PRIMITIVES, listed, name_problem, normalized, shown, similar, value_text
from shine.lang.forms.primitives import FOLDED
from shine.lang.forms.synonyms import LACKING, OTHER_NAMES
from shine.lang.forms.tape import MAX_NODES, application
from shine.lang.forms.tree import BINARY_OPERATORS, BOOLEAN_OPERATORS, COMPARISONS, UNARY_OPERATORS, Primitive
from shine.lang.forms.visitor import TreeVisitor, Visit

NAMED_CONSTANTS: dict[str, float] = {"pi": math.pi}
"""Names of numbers; a parameter of the same name takes precedence."""

LARGEST_EXACT = 2**53
"""Whole numbers up to this size are exact in float64."""

TOO_LARGE = "the number is too large; a number must be finite in float64 (at most about 1.8e308)"

_ALLOWED = (
    "allowed are numbers, names, + - * / // % **, unary minus, comparisons, and/or/not, "
    "conditional expressions and calls of primitives"
)

ADVICE: dict[str, str] = {
    "Attribute": "attribute access is not part of the language; write the bare name of a function, sqrt(x), or number",
    "Subscript": "subscripts are not part of the language; give each column a name",
    "Assign": "this assignment is not part of the language; write 'a = x', or 'a, b = x, y'",
    "Lambda": "lambda is not part of a formula; write its expression instead",
    "NamedExpr": "':=' is not part of the language; use an assignment in a function",
    "JoinedStr": "f-strings are not part of the language",
    "ListComp": "a list is not part of the language; write what it is for, sum(v*v for v in x)",
    "Starred": "'*' arguments are not part of the language",
    "Await": "'await' is not part of the language",
    "Yield": "'yield' is not part of the language",
    "While": "'while' is not part of the language; write a conditional expression instead",
    "For": "'for' is not part of the language; write the terms out",
    "Import": "'import' is not part of the language; primitives need no import",
    "ImportFrom": "'import' is not part of the language; primitives need no import",
    "BitXor": "'^' is not part of the language; write ** for a power",
    "MatMult": "'@' is not part of the language",
}
"""Advice for each type of rejected node."""


def reject(message: str, node: ast.AST | None = None) -> NoReturn:
    """Raise the error for a node, with its line and column (from 1) if it has them."""
    line = getattr(node, "lineno", None)
    column = getattr(node, "col_offset", None)
    if line is None or column is None:
        raise UnsupportedSyntaxError(message)
    raise UnsupportedSyntaxError(message, line, column + 1)


def check_name(name: object, node: ast.AST | None = None) -> str:
    """A valid name of a parameter or a variable, normalized as Python's parser does it.

    An `UnsupportedSyntaxError` if it is not an identifier, is a keyword, is too long, or begins with two underscores.
    """
    text, problem = _read_name(name) if isinstance(name, str) else ("", None)
    if not text.isidentifier() or iskeyword(text):
        reject(f"{value_text(name)} is not a name; names are Python identifiers other than keywords", node)
    if problem is not None:
        reject(f"name {shown(text)} {problem}", node)
    return text


@lru_cache(maxsize=1 << 16)  # the names of the features are checked again with each formula
def _read_name(name: str) -> tuple[str, str | None]:
    """A name in its normal form, and the problem with it."""
    text = str(normalized(name))  # a plain str, not a subclass such as NumPy's
    return sys.intern(text), name_problem(text)


def check_number(value: object, node: ast.AST | None = None) -> int | float:
    """A valid number: an int or a float that float64 can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        reject(f"constant {value_text(value)} is not a number; only int and float numbers are allowed", node)
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        reject(TOO_LARGE, node)
    return value


class ExpressionVerifier(TreeVisitor):
    """Verifies an expression and rebuilds it in normal form.

    Parameters
    ----------
    primitives : mapping of str to Primitive
        Functions that may be called.
    names : mapping of str to str, optional
        Known names, and the name of each in the result. None accepts and collects any name.
    """

    def __init__(self, primitives: Mapping[str, Primitive], names: Mapping[str, str | None] | None = None) -> None:
        self.primitives = primitives
        self.names = names
        self.seen: set[str] = set()
        self.count = 0

    def generic_visit(self, node: ast.AST) -> NoReturn:
        kind = type(node).__name__
        reject(ADVICE.get(kind, f"{kind} is not part of the language") + f" ({_ALLOWED})", node)

    def visit(self, node: ast.AST) -> Any:
        try:
            return super().visit(node)
        except (AttributeError, TypeError) as error:
            # Python's parser makes no such nodes; users may.
            raise UnsupportedSyntaxError(f"the syntax tree is malformed: {error}") from None

    def _count(self, node: ast.AST) -> None:
        # The limit also ends the walk of a syntax tree that contains itself.
        self.count += 1
        if self.count > MAX_NODES:
            reject(f"the formula has more than {MAX_NODES} nodes", node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        self._count(node)
        return ast.Constant(check_number(node.value, node))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        self._count(node)
        name = check_name(node.id, node)
        if self.names is None or name in self.names:
            known = name if self.names is None else self.names[name]
            if known is None:
                reject(f"{shown(name)} is not assigned on every path that leads here", node)
            if self.names is not None or name not in NAMED_CONSTANTS:
                self.seen.add(name)
                return ast.Name(known, ast.Load())
        if name in NAMED_CONSTANTS:
            return ast.Constant(NAMED_CONSTANTS[name])
        assert self.names is not None
        near = similar(name, self.names)
        hint = f"did you mean {shown(near)}? " if near else ""
        reject(f"unknown name {shown(name)}; {hint}known names are {listed(self.names) or 'none'}", node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        self._count(node)
        operand = yield node.operand
        if isinstance(node.op, ast.UAdd):
            return operand
        if type(node.op) not in UNARY_OPERATORS:
            reject(f"operator {type(node.op).__name__} is not part of the language ({_ALLOWED})", node)
        return application(UNARY_OPERATORS[type(node.op)], [operand])

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        self._count(node)
        if type(node.op) not in BINARY_OPERATORS:
            kind = type(node.op).__name__
            reject(ADVICE.get(kind, f"operator {kind} is not part of the language") + f" ({_ALLOWED})", node)
        left = yield node.left
        right = yield node.right
        return ast.BinOp(left, node.op, right)

    def visit_Compare(self, node: ast.Compare) -> Visit:
        self._count(node)
        for operator in node.ops:
            if type(operator) not in COMPARISONS:
                reject(f"comparison {type(operator).__name__} is not part of the language; use < <= > >= == !=", node)
        if not node.ops or len(node.ops) != len(node.comparators):
            reject("the syntax tree is malformed: a comparison lacks operands", node)
        left = yield node.left
        comparators = []
        for comparator in node.comparators:
            comparators.append((yield comparator))
        return ast.Compare(left, list(node.ops), comparators)

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        self._count(node)
        if type(node.op) not in BOOLEAN_OPERATORS or len(node.values) < 2:
            reject("the syntax tree is malformed: and/or needs two operands", node)
        result = yield node.values[0]
        for value in node.values[1:]:
            result = ast.BoolOp(node.op, [result, (yield value)])
        return result

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        self._count(node)
        test = yield node.test
        body = yield node.body
        orelse = yield node.orelse
        return ast.IfExp(test, body, orelse)

    def visit_Call(self, node: ast.Call) -> Visit:
        self._count(node)
        if not isinstance(node.func, ast.Name):
            if isinstance(node.func, ast.Attribute):
                reject(ADVICE["Attribute"], node.func)
            reject("only a primitive can be called, by its name", node)
        name = check_name(node.func.id, node.func)
        name = OTHER_NAMES.get(name, name) if name not in self.primitives else name
        primitive = self.primitives.get(name)
        if primitive is None:
            hint = f"write {LACKING[name]}; " if LACKING.get(name) else ""
            known = listed(sorted(self.primitives), MOST_PRIMITIVES)
            reject(f"unknown primitive {shown(name)}; {hint}known are {known}", node.func)
        if node.keywords:
            reject(f"{name} takes no keyword arguments", node)
        given = len(node.args)
        if given != primitive.arity and not (name in FOLDED and given > primitive.arity):
            reject(f"{name} takes {primitive.arity} argument{'s' * (primitive.arity != 1)}, not {given}", node)
        arguments = []
        for argument in node.args:
            arguments.append((yield argument))
        if name in FOLDED:
            result = arguments[0]
            for argument in arguments[1:]:
                result = application(name, [result, argument])
            return result
        return application(name, arguments)
