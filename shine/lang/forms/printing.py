"""Verified expressions -> Python source."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

from shine.lang.forms.named_numbers import NAMED_POWERS, readable_number
from shine.lang.forms.visitor import TreeVisitor, Visit

_OPERATORS: dict[type[ast.AST], tuple[str, int]] = {
    ast.Or: (" or ", 1),
    ast.And: (" and ", 2),
    ast.Not: ("not ", 3),
    ast.Lt: (" < ", 4),
    ast.LtE: (" <= ", 4),
    ast.Gt: (" > ", 4),
    ast.GtE: (" >= ", 4),
    ast.Eq: (" == ", 4),
    ast.NotEq: (" != ", 4),
    ast.Add: (" + ", 5),
    ast.Sub: (" - ", 5),
    ast.Mult: ("*", 6),
    ast.Div: ("/", 6),
    ast.FloorDiv: ("//", 6),
    ast.Mod: (" % ", 6),
    ast.USub: ("-", 7),
    ast.Pow: ("**", 8),
}
"""Symbol of each operator, and its binding strength in Python's grammar."""

_CONDITIONAL, _COMPARISON, ADDITION, PRODUCT, _NEGATION, _POWER, ATOM = 0, 4, 5, 6, 7, 8, 9
"""Binding strengths that have names."""

_EXPONENTS = {name: exponent for exponent, name in NAMED_POWERS.items()}
"""Primitives that are written as powers, with their exponents."""


def expression_source(node: ast.expr, readable: bool = False, named: bool = False) -> str:
    """One expression as text.

    Parsing the text gives the same expression again, unless it is nested too deeply for Python's parser.

    Parameters
    ----------
    node : ast.expr
    readable : bool
        Whether squares and cubes are written as powers, and floats as short as possible. Parsing such a text gives an
        expression with the same values, but not always the same nodes.
    named : bool
        Whether a readable text has named numbers: not if a feature is called pi.

    Examples
    --------
    >>> expression_source(ast.parse("a*(b + -2.0)", mode="eval").body)
    'a*(b + -2.0)'
    >>> expression_source(ast.parse("2.0*square(b)", mode="eval").body, readable=True)
    '2*b**2'
    """
    writer = Writer(readable, named)
    writer.visit(node)
    return "".join(writer.parts)


def definition_source(
    name: str,
    parameters: Sequence[str],
    assignments: Sequence[tuple[str, ast.expr]],
    result: ast.expr,
    readable: bool = False,
    named: bool = False,
) -> str:
    """A function in the language as text (see `expression_source` for the options).

    Examples
    --------
    >>> print(definition_source("double", ["a"], [], ast.parse("2*a", mode="eval").body))
    def double(a):
        return 2*a
    """
    lines = [f"def {name}({', '.join(parameters)}):"]
    lines += [f"    {assigned} = {expression_source(value, readable, named)}" for assigned, value in assignments]
    return "\n".join([*lines, f"    return {expression_source(result, readable, named)}"])


class Writer(TreeVisitor):
    """Collects pieces of text in order. Joining them at the end takes linear time for deep trees, too."""

    def __init__(self, readable: bool, named: bool) -> None:
        self.readable = readable
        self.named = named
        self.parts: list[str] = []

    def _operand(self, node: ast.expr, minimum: int) -> Visit:
        """Write an operand, in parentheses if it binds less strongly than `minimum`."""
        enclosed = self._strength(node) < minimum
        if enclosed:
            self.parts.append("(")
        yield node
        if enclosed:
            self.parts.append(")")

    def visit_Constant(self, node: ast.Constant) -> None:
        self.parts.append(self._number(node.value))

    def visit_Name(self, node: ast.Name) -> None:
        self.parts.append(node.id)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        symbol, strength = _OPERATORS[type(node.op)]
        self.parts.append(symbol)
        yield from self._operand(node.operand, strength)

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        symbol, strength = _OPERATORS[type(node.op)]
        # Power groups to the right and binds its right operand like a unary minus; all others group to the left.
        left, right = (ATOM, _NEGATION) if strength == _POWER else (strength, strength + 1)
        if self.readable and isinstance(node.op, ast.Div) and (divisor := _opposite(node.right)):
            # The minus goes to the front, which changes no bit: -x/26, not x/-26.
            self.parts.append("-")
            yield from self._operand(node.left, _NEGATION)
            self.parts.append(symbol)
            yield from self._operand(divisor, right)
            return
        yield from self._operand(node.left, left)
        self.parts.append(symbol)
        yield from self._operand(node.right, right)

    def visit_Compare(self, node: ast.Compare) -> Visit:
        yield from self._operand(node.left, _COMPARISON + 1)
        for operator, operand in zip(node.ops, node.comparators, strict=True):
            self.parts.append(_OPERATORS[type(operator)][0])
            yield from self._operand(operand, _COMPARISON + 1)

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        symbol, strength = _OPERATORS[type(node.op)]
        yield from self._operand(node.values[0], strength)
        self.parts.append(symbol)
        yield from self._operand(node.values[1], strength + 1)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        yield from self._operand(node.body, _CONDITIONAL + 1)
        self.parts.append(" if ")
        yield from self._operand(node.test, _CONDITIONAL + 1)
        self.parts.append(" else ")
        yield node.orelse

    def visit_Call(self, node: ast.Call) -> Visit:
        assert isinstance(node.func, ast.Name)
        exponent = self._exponent(node)
        if self._is_inverse(node):
            self.parts.append("1/")
            yield from self._operand(node.args[0], PRODUCT + 1)
        elif exponent is None:
            yield from self._call(node.func.id, node.args)
        else:
            yield from self._operand(node.args[0], ATOM)
            self.parts.append(f"**{exponent}")

    def _call(self, name: str, arguments: Sequence[ast.expr]) -> Visit:
        self.parts.append(name + "(")
        for position, argument in enumerate(arguments):
            if position:
                self.parts.append(", ")
            yield argument
        self.parts.append(")")

    def _exponent(self, node: ast.Call) -> int | None:
        """The exponent of a call that is written as a power."""
        assert isinstance(node.func, ast.Name)
        return _EXPONENTS.get(node.func.id) if self.readable else None

    def _is_inverse(self, node: ast.Call) -> bool:
        return self.readable and isinstance(node.func, ast.Name) and node.func.id == "inv"

    def _number(self, value: Any) -> str:
        """A constant as text that reads back as the same value.

        Parsed formulas have finite numbers only; others may have any. Python prints infinities and NaN as names, which
        could be names of features.
        """
        if isinstance(value, int):
            return repr(value)
        if math.isfinite(value):
            return readable_number(float(value), self.named) if self.readable else repr(value)
        return "(0.0/0.0)" if math.isnan(value) else f"({math.copysign(1.0, value)}/0.0)"

    def _strength(self, node: ast.expr) -> int:
        match node:
            case ast.IfExp():
                return _CONDITIONAL
            case ast.Compare():
                return _COMPARISON
            case ast.Constant(value=value):
                text = self._number(value)
                if text[0] == "(":
                    return ATOM
                return PRODUCT if "*" in text or "/" in text else _NEGATION if text[0] == "-" else ATOM
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp():
                return _OPERATORS[type(node.op)][1]
            case ast.Call() if self._is_inverse(node):
                return PRODUCT
            case ast.Call() if self._exponent(node) is not None:
                return _POWER
        return ATOM


def _opposite(node: ast.expr) -> ast.Constant | None:
    """The positive number of a negative one; None for all other nodes."""
    match node:
        case ast.Constant(value=int() | float() as value) if value < 0:
            return ast.Constant(-value)
    return None
