"""A scanned query and the types of columns -> verified steps. Everything that is not known here is rejected."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shine.frames.language.arithmetic import Arithmetic
from shine.frames.language.comparing import Comparing
from shine.frames.language.steps import Adding, Steps, Typed, Value
from shine.frames.language.types import ColumnType, Query
from shine.lang.conditions.reading import FUNCTIONS, Literal, Reader
from shine.lang.conditions.scanning import Name, Scanned
from shine.lang.forms.grammar import ADVICE
from shine.lang.forms.names import listed, shown, similar
from shine.lang.forms.primitives import FOLDED
from shine.lang.forms.tree import BINARY_OPERATORS
from shine.lang.forms.visitor import Visit
from shine.lang.python.known import TABLE, known_text

_METHODS = (*FUNCTIONS, "abs")


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


class _Reader(Arithmetic, Comparing, Reader):
    allowed = "columns, numbers, texts, + - * / // % **, comparisons, in, & | ~, conditional expressions and functions"

    def __init__(
        self, scanned: Scanned, type_of: Callable[[str, bool], ColumnType], variables: Mapping[str, Any]
    ) -> None:
        Reader.__init__(self, scanned, variables)
        quoted = {name.text for name in scanned.names.values() if name.is_quoted}
        Adding.__init__(self, Steps(lambda name: type_of(name, name in quoted)), self.reject)

    def query(self) -> Query:
        try:
            result = self.visit(self._scanned.tree)
            if isinstance(result, Literal):
                self.reject("the query uses no column, so it has no rows")
            if result.meaning not in ("number", "truth"):
                self.reject(f"the result is {result.meaning}; a query is a condition or a number")
            return self._steps.query(result)
        except OverflowError as error:
            self.reject(str(error))

    def column(self, name: Name) -> Typed:
        return self._steps.column(name.text)

    def joined(self, name: str, left: Typed, right: Typed) -> Typed:
        return self._steps.add(name, "bool", (left.index, right.index))

    def opposite(self, found: Typed) -> Typed:
        return self._steps.add("not", "bool", (found.index,))

    def missing(self, value: Typed, node: ast.AST) -> Typed:
        return self._steps.add("isna", "bool", (value.index,))

    # Numbers

    def signed(self, value: Typed, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.UAdd):
            return self.numeric(value, node.operand)
        return self.apply("neg", [value], [node.operand], node)

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        if type(node.op) not in BINARY_OPERATORS:
            kind = type(node.op).__name__
            self.reject(ADVICE.get(kind, f"operator {kind} is not part of queries (allowed are {self.allowed})"), node)
        name = BINARY_OPERATORS[type(node.op)]
        left = yield node.left
        right = yield node.right
        return self.apply(name, [left, right], [node.left, node.right], node)

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        test = yield node.test
        body = yield node.body
        orelse = yield node.orelse
        return self.chosen([test, body, orelse], [node.test, node.body, node.orelse])

    # Functions

    def applied(self, name: str, values: Sequence[Value], arguments: Sequence[ast.expr], node: ast.Call) -> Value:
        if name == "isnan":
            self.expect(name, 1, values, node)
            value = values[0]
            if isinstance(value, Literal):
                self.reject(f"{name} asks for values of a column", arguments[0])
            value = self.numeric(value, arguments[0])
            return self._steps.compare("!=", value, value)
        if name == "where":
            self.expect(name, 3, values, node)
            return self.chosen(values, arguments)
        if name in FOLDED and len(values) > 2:
            result = values[0]
            for value, argument in zip(values[1:], arguments[1:], strict=True):
                result = self.apply(name, [result, value], [node, argument], node)
            return result
        self.expect(name, TABLE[name].arity, values, node)
        return self.apply(name, values, arguments, node)

    def called(self, node: ast.Call) -> tuple[str, list[ast.expr]]:
        if node.keywords:
            self.reject("functions take no keyword arguments here", node)
        function = node.func
        if isinstance(function, ast.Attribute):
            text = ast.unparse(function)
            known = known_text(text) if isinstance(function.value, ast.Name) else None
            name = None if known is None else known.name(2 if known.folded else len(node.args))
            if name is not None:
                return {"smaller": "min", "larger": "max"}.get(name, name), node.args
            if function.attr in _METHODS:
                return function.attr, [function.value, *node.args]
            self.reject(f"there is no method {shown(function.attr)}; there are {listed(_METHODS)}", node)
        if not isinstance(function, ast.Name):
            self.reject("only a function can be called, by its name", node)
        name = function.id
        if name in TABLE or name in FUNCTIONS:
            return name, node.args
        known = known_text(f"numpy.{name}")
        if known is not None and known.names[0] in TABLE:
            return known.names[0], node.args
        near = similar(name, (*TABLE, *FUNCTIONS))
        hint = f"; did you mean {near!r}?" if near else f"; known are {listed(sorted(TABLE), 100)}"
        self.reject(f"there is no function {shown(name)}{hint}", function)
