"""A scanned query and the types of columns -> verified steps. Everything that is not known here is rejected."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from shine.frames.language.arithmetic import Arithmetic, is_number
from shine.frames.language.comparing import Comparing
from shine.frames.language.scanning import Scanned
from shine.frames.language.steps import Literal, Steps, Typed, Value
from shine.frames.language.types import ColumnType, Query
from shine.frames.language.variables import is_known, plain
from shine.lang.forms.grammar import ADVICE, NAMED_CONSTANTS
from shine.lang.forms.names import listed, shown, similar, value_text
from shine.lang.forms.primitives import FOLDED
from shine.lang.forms.tree import BINARY_OPERATORS
from shine.lang.forms.visitor import TreeVisitor, Visit
from shine.lang.python.known import TABLE, known_text

MISSING_TESTS = {"isna": False, "isnull": False, "notna": True, "notnull": True}
"""Functions that ask for missing values, and whether they ask for the others."""

_METHODS = (*MISSING_TESTS, "isin", "between", "abs")
_ALLOWED = (
    "allowed are columns, numbers, texts, + - * / // % **, comparisons, in, & | ~, conditional expressions and "
    "functions"
)


def read(scanned: Scanned, type_of: Callable[[str, bool], ColumnType], variables: Mapping[str, Any]) -> Query:
    """Verify a query.

    Parameters
    ----------
    scanned : Scanned
    type_of : callable
        ``type_of(name, is_quoted)``: type of a column. It raises `LookupError` if there is none, with similar names,
        and `TypeError` if queries cannot read it; with a message.
    variables : mapping of str to object
        Values of the names that begin with ``@``.

    Raises
    ------
    UnsupportedSyntaxError
        With the place in the text.
    """
    return _Reader(scanned, type_of, variables).query()


class _Reader(TreeVisitor):
    """Visits a syntax tree; the result of a node is a `Value`."""

    def __init__(
        self, scanned: Scanned, type_of: Callable[[str, bool], ColumnType], variables: Mapping[str, Any]
    ) -> None:
        self._scanned, self._variables = scanned, variables
        quoted = {name.text for name in scanned.names.values() if name.is_quoted}
        self._steps = Steps(lambda name: type_of(name, name in quoted))
        self._arithmetic = Arithmetic(self._steps, self._reject)
        self._comparing = Comparing(self._steps, self._reject)

    def query(self) -> Query:
        try:
            result = self.visit(self._scanned.tree)
            if isinstance(result, Literal):
                self._reject("the query uses no column, so it has no rows")
            if result.meaning not in ("number", "truth"):
                self._reject(f"the result is {result.meaning}; a query is a condition or a number")
            return self._steps.query(result)
        except OverflowError as error:
            self._reject(str(error))

    def generic_visit(self, node: ast.AST) -> NoReturn:
        kind = type(node).__name__
        self._reject(ADVICE.get(kind, f"{kind} is not part of queries ({_ALLOWED})"), node)

    def _reject(self, message: str, node: ast.AST | None = None) -> NoReturn:
        raise self._scanned.reject(message, node or self._scanned.tree)

    # Terminals

    def visit_Constant(self, node: ast.Constant) -> Value:
        value = node.value
        if isinstance(value, float) and not math.isfinite(value):
            self._reject("the number is too large for float64", node)
        if value is not None and not isinstance(value, bool | int | float | str):
            self._reject(f"{value_text(value)} is not part of queries; write numbers, texts, True or False", node)
        return Literal(value)

    def visit_Name(self, node: ast.Name) -> Value:
        name = self._scanned.names.get(node.id)
        if name is None:
            self._reject(f"{shown(node.id)} is a function; call it", node)
        if name.is_variable:
            return self._variable(name.text, node)
        try:
            return self._steps.column(name.text)
        except (LookupError, TypeError) as error:
            if isinstance(error, LookupError) and not name.is_quoted and name.text in NAMED_CONSTANTS:
                return Literal(NAMED_CONSTANTS[name.text])
            self._reject(str(error.args[0]), node)

    def _variable(self, name: str, node: ast.AST) -> Literal:
        if name not in self._variables:
            near = similar(name, self._variables)
            hint = f"; did you mean @{near}?" if near else "; '@' names a variable of the calling function"
            self._reject(f"there is no variable {shown(name)}{hint}", node)
        value = plain(self._variables[name])
        if not is_known(value):
            is_list = isinstance(value, tuple)
            strange = (
                next(each for each in value if isinstance(each, tuple) or not is_known(each)) if is_list else value
            )
            has = "is a list with" if is_list else "is"
            kind = "list" if isinstance(strange, tuple) else type(strange).__name__
            self._reject(f"@{name} {has} {kind}; a variable is a number, a text, a date, or a list of them", node)
        return Literal(value, True)

    def _several(self, node: ast.List | ast.Tuple | ast.Set) -> Visit:
        values = []
        for element in node.elts:
            value = yield element
            if not isinstance(value, Literal) or isinstance(value.value, tuple):
                self._reject("a list has numbers, texts or variables, no columns", element)
            values.append(value)
        return Literal(tuple(value.value for value in values), any(value.is_variable for value in values))

    visit_List = visit_Tuple = visit_Set = _several

    # Conditions

    def visit_BoolOp(self, node: ast.BoolOp) -> Visit:
        name = "and" if isinstance(node.op, ast.And) else "or"
        result = self._arithmetic.truth((yield node.values[0]), node.values[0])
        for operand in node.values[1:]:
            other = self._arithmetic.truth((yield operand), operand)
            result = self._steps.add(name, "bool", (result.index, other.index))
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        operand = yield node.operand
        if isinstance(node.op, ast.Not | ast.Invert):
            return self._steps.add("not", "bool", (self._arithmetic.truth(operand, node.operand).index,))
        if isinstance(operand, Literal):
            if not is_number(operand.value):
                self._reject(f"{value_text(operand.value)} is not a number", node.operand)
            return Literal(-operand.value if isinstance(node.op, ast.USub) else +operand.value, operand.is_variable)  # type: ignore[operator]
        if isinstance(node.op, ast.UAdd):
            return self._arithmetic.numeric(operand, node.operand)
        return self._arithmetic.apply("neg", [operand], [node.operand], node)

    def visit_Compare(self, node: ast.Compare) -> Visit:
        left, left_node, result = (yield node.left), node.left, None
        for kind, comparator in zip(node.ops, node.comparators, strict=True):
            right = yield comparator
            holds = self._comparing.compared(kind, left, right, left_node, comparator)
            result = holds if result is None else self._steps.add("and", "bool", (result.index, holds.index))
            left, left_node = right, comparator
        return result

    # Numbers

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        if type(node.op) not in BINARY_OPERATORS:
            kind = type(node.op).__name__
            self._reject(ADVICE.get(kind, f"operator {kind} is not part of queries ({_ALLOWED})"), node)
        name = BINARY_OPERATORS[type(node.op)]
        left = yield node.left
        right = yield node.right
        return self._arithmetic.apply(name, [left, right], [node.left, node.right], node)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        test = yield node.test
        body = yield node.body
        orelse = yield node.orelse
        return self._arithmetic.chosen([test, body, orelse], [node.test, node.body, node.orelse])

    # Functions

    def visit_Call(self, node: ast.Call) -> Visit:
        name, arguments = self._called(node)
        values = []
        for argument in arguments:
            values.append((yield argument))
        if name in MISSING_TESTS or name == "isnan":
            return self._is_missing(name, values, arguments, node)
        if name == "isin":
            self._expect(name, 2, values, node)
            return self._comparing.member(values[0], values[1], arguments[0], arguments[1])
        if name == "between":
            self._expect(name, 3, values, node)
            low = self._comparing.compared(ast.GtE(), values[0], values[1], arguments[0], arguments[1])
            high = self._comparing.compared(ast.LtE(), values[0], values[2], arguments[0], arguments[2])
            return self._steps.add("and", "bool", (low.index, high.index))
        if name == "where":
            self._expect(name, 3, values, node)
            return self._arithmetic.chosen(values, arguments)
        if name in FOLDED and len(values) > 2:
            result = values[0]
            for value, argument in zip(values[1:], arguments[1:], strict=True):
                result = self._arithmetic.apply(name, [result, value], [node, argument], node)
            return result
        self._expect(name, TABLE[name].arity, values, node)
        return self._arithmetic.apply(name, values, arguments, node)

    def _called(self, node: ast.Call) -> tuple[str, list[ast.expr]]:
        """Name of the function, and its arguments; a method's object is the first."""
        if node.keywords:
            self._reject("functions take no keyword arguments here", node)
        function = node.func
        if isinstance(function, ast.Attribute):
            text = ast.unparse(function)
            known = known_text(text) if isinstance(function.value, ast.Name) else None
            name = None if known is None else known.name(2 if known.folded else len(node.args))
            if name is not None:
                return {"smaller": "min", "larger": "max"}.get(name, name), node.args
            if function.attr in _METHODS:
                return function.attr, [function.value, *node.args]
            self._reject(f"there is no method {shown(function.attr)}; there are {listed(_METHODS)}", node)
        if not isinstance(function, ast.Name):
            self._reject("only a function can be called, by its name", node)
        name = function.id
        if name in TABLE or name in MISSING_TESTS or name in ("isin", "between"):
            return name, node.args
        known = known_text(f"numpy.{name}")
        if known is not None and known.names[0] in TABLE:
            return known.names[0], node.args
        near = similar(name, (*TABLE, *MISSING_TESTS, "isin", "between"))
        hint = f"; did you mean {near!r}?" if near else f"; known are {listed(sorted(TABLE), 100)}"
        self._reject(f"there is no function {shown(name)}{hint}", function)

    def _expect(self, name: str, arity: int, values: Sequence[Value], node: ast.AST) -> None:
        if len(values) != arity:
            self._reject(f"{name} takes {arity} argument{'s' * (arity != 1)}, not {len(values)}", node)

    def _is_missing(self, name: str, values: Sequence[Value], nodes: Sequence[ast.AST], node: ast.AST) -> Typed:
        self._expect(name, 1, values, node)
        (value,) = values
        if isinstance(value, Literal):
            self._reject(f"{name} asks for values of a column", nodes[0])
        if name == "isnan":
            value = self._arithmetic.numeric(value, nodes[0])
            return self._steps.compare("!=", value, value)
        found = self._steps.add("isna", "bool", (value.index,))
        return self._steps.add("not", "bool", (found.index,)) if MISSING_TESTS[name] else found
