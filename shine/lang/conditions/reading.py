"""A scanned condition -> its meaning: the walk that filters of data frames, of files and of past runs share."""

from __future__ import annotations

import ast
import datetime
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NoReturn

import numpy as np

from shine.lang.conditions.scanning import Name, Scanned
from shine.lang.forms.grammar import ADVICE, NAMED_CONSTANTS
from shine.lang.forms.names import listed, shown, similar, value_text
from shine.lang.forms.visitor import TreeVisitor, Visit


def plain(value: Any) -> Any:
    """A variable's value as Python's own number, text or date, None if it is missing, or a tuple of such."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.datetime64 | np.timedelta64 | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "mM":
        return tuple(value.ravel()) if value.ndim else value[()]
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(value, name):
            value = getattr(value, name)()
            break
    return tuple(map(plain, value)) if isinstance(value, list | tuple | set | frozenset | range) else value


def is_known(value: object) -> bool:
    """Whether queries can use a value."""
    if isinstance(value, tuple):
        return all(is_known(each) and not isinstance(each, tuple) for each in value)
    kinds = (bool, int, float, str, datetime.date, datetime.timedelta, np.datetime64, np.timedelta64, type(None))
    return isinstance(value, kinds)


COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="
}  # fmt: skip

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""The comparison with its sides exchanged."""

HOLDS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "==": eq, "!=": ne}
"""Python's comparisons."""

_CONSTANTS = {**NAMED_CONSTANTS, "inf": math.inf, "Inf": math.inf}

MISSING_TESTS = {"isna": False, "isnull": False, "notna": True, "notnull": True}
"""Functions that ask for missing values, and whether they ask for the others."""

FUNCTIONS = (*MISSING_TESTS, "isin", "between")
"""Functions of conditions, which are methods of columns too."""


@dataclass(frozen=True)
class Literal:
    """A value that is the same for all rows, not yet of a type.

    Parameters
    ----------
    value : object
    is_variable : bool
        Whether it comes from a variable, whose next value shall not need new code.
    """

    value: object
    is_variable: bool = False


class Reader(TreeVisitor):
    """Visits a syntax tree; the result of a node is a `Literal`, or a subclass's value for columns.

    Parameters
    ----------
    scanned : Scanned
    variables : mapping of str to object, optional
        Values of the names that begin with ``@``.
    """

    allowed = "columns, numbers, texts, comparisons, in, & | ~, and, or, not, isin, between, isna, notna"
    """Syntax that a text may have, for messages."""

    advice: Mapping[str, str] = ADVICE
    """What to write instead of a kind of node that is rejected."""

    def __init__(self, scanned: Scanned, variables: Mapping[str, Any] | None = None) -> None:
        self._scanned, self._variables = scanned, variables or {}

    # Columns

    @abstractmethod
    def column(self, name: Name) -> Any:
        """A column; a `LookupError` if there is none, a `TypeError` if conditions cannot read it, with a message."""

    @abstractmethod
    def truth(self, value: Any, node: ast.AST) -> Any:
        """A value as a condition."""

    @abstractmethod
    def joined(self, name: str, left: Any, right: Any) -> Any:
        """Two conditions, joined by "and" or "or"."""

    @abstractmethod
    def opposite(self, found: Any) -> Any:
        """The opposite of a condition."""

    @abstractmethod
    def with_literal(self, comparison: str, left: Any, right: Literal, node: ast.AST) -> Any:
        """A comparison of a column with a value in the text."""

    @abstractmethod
    def of_columns(self, comparison: str, left: Any, right: Any, node: ast.AST) -> Any:
        """A comparison of two columns."""

    @abstractmethod
    def among(self, left: Any, right: Literal, node: ast.AST) -> Any:
        """Whether a column has one of the values in a tuple."""

    @abstractmethod
    def missing(self, value: Any, node: ast.AST) -> Any:
        """Whether a column has no value."""

    def of_literals(self, comparison: str, left: Literal, right: Literal, node: ast.AST) -> Any:
        """A comparison of two values in the text."""
        self.reject(f"{value_text(left.value)} and {value_text(right.value)} are no columns; compare a column", node)

    # The walk

    def generic_visit(self, node: ast.AST) -> NoReturn:
        kind = type(node).__name__
        self.reject(self.advice.get(kind, f"{kind} is not part of queries (allowed are {self.allowed})"), node)

    def reject(self, message: str, node: ast.AST | None = None) -> NoReturn:
        """Raise the error about a node."""
        raise self._scanned.reject(message, node or self._scanned.tree)

    def visit_Constant(self, node: ast.Constant) -> Literal:
        value = node.value
        if isinstance(value, float) and not math.isfinite(value):
            self.reject("the number is too large for float64", node)
        if value is not None and not isinstance(value, bool | int | float | str):
            self.reject(f"{value_text(value)} is not part of queries; write numbers, texts, True or False", node)
        return Literal(value)

    def visit_Name(self, node: ast.Name) -> Any:
        name = self._scanned.names.get(node.id)
        if name is None:
            self.reject(f"{shown(node.id)} is a function; call it", node)
        if name.is_variable:
            return self._variable(name.text, node)
        try:
            return self.column(name)
        except (LookupError, TypeError) as error:
            if isinstance(error, LookupError) and not name.is_quoted and name.text in _CONSTANTS:
                return Literal(_CONSTANTS[name.text])
            self.reject(str(error.args[0]), node)

    def _variable(self, name: str, node: ast.AST) -> Literal:
        if name not in self._variables:
            near = similar(name, self._variables)
            hint = f"; did you mean @{near}?" if near else "; '@' names a variable of the calling function"
            self.reject(f"there is no variable {shown(name)}{hint}", node)
        return self._literal(self._variables[name], name, node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.variable(node.value)
        if owner is None:
            self.generic_visit(node)
        name = f"{owner[1]}.{node.attr}"
        if not hasattr(owner[0], node.attr):
            self._variable(name, node)
        return self._literal(getattr(owner[0], node.attr), name, node)

    def variable(self, node: ast.AST) -> tuple[Any, str] | None:
        """The value and the name of a variable of the caller; None if a node is none."""
        name = self._scanned.names.get(node.id) if isinstance(node, ast.Name) else None
        return None if name is None or not name.is_variable else (self._variables.get(name.text), name.text)

    def _literal(self, given: Any, name: str, node: ast.AST) -> Literal:
        value = plain(given)
        if not is_known(value):
            has, several = ("is a list with", value) if isinstance(value, tuple) else ("is", (value,))
            strange = next(each for each in several if isinstance(each, tuple) or not is_known(each))
            kind = "list" if isinstance(strange, tuple) else type(strange).__name__
            self.reject(f"@{name} {has} {kind}; a variable is a number, a text, a date, or a list of them", node)
        return Literal(value, True)

    def _several(self, node: ast.List | ast.Tuple | ast.Set) -> Visit:
        values = []
        for element in node.elts:
            value = yield element
            if not isinstance(value, Literal) or isinstance(value.value, tuple):
                self.reject("a list has numbers, texts or variables, no columns", element)
            values.append(value)
        return Literal(tuple(value.value for value in values), any(value.is_variable for value in values))

    visit_List = visit_Tuple = visit_Set = _several

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        name = "and" if isinstance(node.op, ast.And) else "or"
        result = self.truth((yield node.values[0]), node.values[0])
        for operand in node.values[1:]:
            result = self.joined(name, result, self.truth((yield operand), operand))
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        operand = yield node.operand
        if isinstance(node.op, ast.Not | ast.Invert):
            return self.opposite(self.truth(operand, node.operand))
        if not isinstance(operand, Literal):
            return self.signed(operand, node)
        if not isinstance(operand.value, int | float):
            self.reject(f"{value_text(operand.value)} is not a number", node.operand)
        return Literal(-operand.value if isinstance(node.op, ast.USub) else +operand.value, operand.is_variable)

    def signed(self, value: Any, node: ast.UnaryOp) -> Any:
        """A column with a sign."""
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> Visit:
        left, left_node, result = (yield node.left), node.left, None
        for kind, comparator in zip(node.ops, node.comparators, strict=True):
            right = yield comparator
            holds = self.compared(kind, left, right, left_node, comparator)
            result = holds if result is None else self.joined("and", result, holds)
            left, left_node = right, comparator
        return result

    def compared(self, kind: ast.cmpop, left: Any, right: Any, left_node: ast.AST, right_node: ast.AST) -> Any:
        """One comparison of Python's syntax."""
        for value, node in ((left, left_node), (right, right_node)):
            if isinstance(value, Literal) and value.value is None:
                self.reject("nothing equals a missing value; write isna(x) or notna(x)", node)
        is_equality = isinstance(kind, ast.Eq | ast.NotEq)
        if is_equality and isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, left_node, right_node = right, left, right_node, left_node
        is_list = isinstance(right, Literal) and isinstance(right.value, tuple)
        # pandas reads x == [1, 2] as x in [1, 2].
        if isinstance(kind, ast.In | ast.NotIn) or (is_list and is_equality):
            found = self.member(left, right, left_node, right_node)
            return self.opposite(found) if isinstance(kind, ast.NotIn | ast.NotEq) else found
        if type(kind) not in COMPARISONS:
            self.reject("'is' is not part of queries; write isna(x), notna(x) or ==", right_node)
        comparison = COMPARISONS[type(kind)]
        if isinstance(left, Literal) and isinstance(right, Literal):
            return self.of_literals(comparison, left, right, right_node)
        if isinstance(left, Literal):
            comparison, left, right, right_node = FLIPPED[comparison], right, left, left_node
        if isinstance(right, Literal):
            return self.with_literal(comparison, left, right, right_node)
        return self.of_columns(comparison, left, right, right_node)

    def member(self, left: Any, right: Any, left_node: ast.AST, right_node: ast.AST) -> Any:
        """Whether a value is in a list."""
        if not isinstance(right, Literal) or not isinstance(right.value, tuple):
            self.reject("'in' needs a list, such as x in (1, 2) or x in @values", right_node)
        if isinstance(left, Literal):
            self.reject("'in' asks for values of a column", left_node)
        if any(value is None or value != value for value in right.value):
            self.reject("a list has no missing values; write isna(x) beside it", right_node)
        return self.among(left, right, right_node)

    def visit_Call(self, node: ast.Call) -> Visit:
        if node.keywords:
            self.reject("functions take no keyword arguments here", node)
        name, arguments = self.called(node)
        values = []
        for argument in arguments:
            values.append((yield argument))
        if name not in FUNCTIONS:
            return self.applied(name, values, arguments, node)
        self.expect(name, {"isin": 2, "between": 3}.get(name, 1), values, node)
        if name == "isin":
            return self.member(values[0], values[1], arguments[0], arguments[1])
        if name == "between":
            low = self.compared(ast.GtE(), values[0], values[1], arguments[0], arguments[1])
            return self.joined("and", low, self.compared(ast.LtE(), values[0], values[2], arguments[0], arguments[2]))
        if isinstance(values[0], Literal):
            self.reject(f"{name} asks for values of a column", arguments[0])
        found = self.missing(values[0], arguments[0])
        return self.opposite(found) if MISSING_TESTS[name] else found

    def called(self, node: ast.Call) -> tuple[str, list[ast.expr]]:
        """Name of the function, and its arguments; a method's object is the first."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in FUNCTIONS:
            return node.func.attr, [node.func.value, *node.args]
        if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            return node.func.id, node.args
        self.reject(
            f"{shown(ast.unparse(node.func))} is no function of conditions; there are {listed(FUNCTIONS)}", node
        )

    def applied(self, name: str, values: Sequence[Any], arguments: Sequence[ast.expr], node: ast.Call) -> Any:
        """The value of another function, which `called` knows."""
        raise NotImplementedError

    def expect(self, name: str, arity: int, values: Sequence[Any], node: ast.Call) -> None:
        """Raise an error unless a function has its number of arguments."""
        if len(values) != arity:
            wanted = arity - (len(values) - len(node.args))  # a method's object is the first value
            self.reject(f"{name} takes {wanted} argument{'s' * (wanted != 1)}, not {len(node.args)}", node)
