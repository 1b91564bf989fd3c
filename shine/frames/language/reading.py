"""A scanned query and the types of columns -> verified steps. Everything that is not known here is rejected."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shine.frames.language.arithmetic import Arithmetic, duration, instant, is_number, list_hint
from shine.frames.language.steps import Adding, Steps, Typed, Value, float_bound, integer_bound
from shine.frames.language.types import INTEGERS, ColumnType, Query
from shine.lang.conditions.reading import FUNCTIONS, HOLDS, Literal, Reader
from shine.lang.conditions.scanning import Name, Scanned
from shine.lang.forms.grammar import ADVICE
from shine.lang.forms.names import listed, shown, similar, value_text
from shine.lang.forms.primitives import FOLDED
from shine.lang.forms.tree import BINARY_OPERATORS
from shine.lang.forms.visitor import Visit
from shine.lang.python.known import TABLE, known_of, known_text


class Comparing(Adding):
    """Adds steps that compare."""

    def _unless(self, opposite: bool, found: Typed) -> Typed:
        """A condition, or its opposite."""
        return self._steps.add("not", "bool", (found.index,)) if opposite else found

    def of_literals(self, comparison: str, left: Literal, right: Literal, node: ast.AST) -> Typed:
        """A comparison of two values in the text."""
        try:
            return self._steps.add("constant", "bool", (), bool(HOLDS[comparison](left.value, right.value)))
        except (TypeError, ValueError):
            hint = list_hint(left, list_hint(right))
            self._reject(f"{value_text(left.value)} and {value_text(right.value)} cannot be compared{hint}", node)

    def of_columns(self, comparison: str, left: Typed, right: Typed, node: ast.AST) -> Typed:
        """A comparison of two columns or values."""
        meanings = [left.meaning.replace("truth", "number"), right.meaning.replace("truth", "number")]
        if meanings[0] != meanings[1]:
            self._reject(f"{left} and {right} cannot be compared", node)
        if meanings[0] == "text":
            if comparison not in ("==", "!="):
                self._reject("texts are compared with ==, != and in", node)
            return self._unless(comparison == "!=", self._steps.same_texts(left, right))
        if left.column is not None and right.column is not None and meanings[0] != "number":
            if (left.column.zone is None) != (right.column.zone is None):
                self._reject(f"{left} and {right} cannot be compared: one has a time zone and one has none", node)
            if left.column.unit != right.column.unit:
                return self._steps.compare_units(comparison, left, right)
        return self._steps.compare(comparison, left, right)

    def with_literal(self, comparison: str, left: Typed, right: Literal, node: ast.AST) -> Typed:
        """A comparison of a column or a value with what the text says."""
        value = right.value
        if left.meaning == "text":
            if not isinstance(value, str) or comparison not in ("==", "!="):
                what = "with a text in quotes" if comparison in ("==", "!=") else "with ==, != and in"
                self._reject(f"column {shown(left.name)} holds texts, which are compared {what}", node)
            return self._unless(comparison == "!=", self._steps.is_text(left, value))
        if left.meaning in ("time", "duration"):
            assert left.column is not None
            try:
                exact = (instant if left.meaning == "time" else duration)(value, left.column)
            except ValueError as error:
                self._reject(f"column {shown(left.name)} is {left.meaning}: {error}", node)
            return self._steps.bounded(left, integer_bound(comparison, exact, left.kind), right.is_variable)
        if not isinstance(value, bool | int | float):
            hint = list_hint(right, "; leave out the quotes" if isinstance(value, str) else "")
            self._reject(f"{left} cannot be compared with {value_text(value)}{hint}", node)
        if left.kind == "bool":
            left = self._steps.convert(left, "int8")
        number = int(value) if isinstance(value, bool) else value
        if left.kind in INTEGERS:
            self._check_size(number, node)
            return self._steps.bounded(left, integer_bound(comparison, number, left.kind), right.is_variable)
        return self._steps.bounded(left, float_bound(comparison, number, left.kind), right.is_variable)

    def _check_size(self, number: int | float, node: ast.AST) -> None:
        if isinstance(number, int) and not INTEGERS["int64"][0] <= number <= INTEGERS["uint64"][1]:
            self._reject(f"{value_text(number)} fits neither int64 nor uint64; write a float such as 1e30", node)

    def among(self, left: Typed, right: Literal, node: ast.AST) -> Typed:
        """Whether a value is in a list."""
        assert isinstance(right.value, tuple)
        # Most values of a list that are compared one by one; longer lists are looked up before the query runs.
        if len(right.value) > 16 and left.column is not None and left.meaning in ("number", "text"):
            return self._lookup_column(left, right.value, node)
        result = self._steps.add("constant", "bool", (), False)
        for value in dict.fromkeys(right.value):
            found = self.with_literal("==", left, Literal(value, right.is_variable), node)
            result = self._steps.add("or", "bool", (result.index, found.index))
        return result

    def _lookup_column(self, column: Typed, values: Sequence[Any], node: ast.AST) -> Typed:
        """A long list: values that the column's type does not hold are left out."""
        if column.meaning == "text":
            if not all(isinstance(value, str) for value in values):
                self._reject(f"column {shown(column.name)} holds texts; the list has others", node)
            return self._steps.member(column, tuple(dict.fromkeys(values)))
        if not all(is_number(value) for value in values):
            self._reject(f"column {shown(column.name)} holds numbers; the list has others", node)
        bound = integer_bound if column.kind in INTEGERS else float_bound
        bounds = [bound("==", value, column.kind) for value in values]
        held = dict.fromkeys(number for comparison, number in bounds if comparison == "==")
        return self._steps.member(column, tuple(held))


_METHODS = (*FUNCTIONS, "abs")

_BEFORE = "compute it before the query, as a column, or as a variable for @value"


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
    advice = ADVICE | {
        "Attribute": f"attributes are not part of queries; a heading with a dot needs backticks, `a.b`; else {_BEFORE}",
        "Subscript": f"brackets are not part of queries; {_BEFORE}",
    }

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
        function = node.func
        owner = self.variable(function.value if isinstance(function, ast.Attribute) else function)
        if owner is not None or isinstance(function, ast.Attribute):
            known = known_text(ast.unparse(function)) if owner is None else None
            if owner is not None:
                known = known_of(
                    getattr(owner[0], function.attr, None) if isinstance(function, ast.Attribute) else owner[0]
                )
            name = None if known is None else known.name(2 if known.folded else len(node.args))
            if name is not None:
                return {"smaller": "min", "larger": "max"}.get(name, name), node.args
            if owner is not None:
                self.reject(f"'@{owner[1]}' gives no function that queries know; {_BEFORE}", node)
            assert isinstance(function, ast.Attribute)
            if function.attr in _METHODS:
                return function.attr, [function.value, *node.args]
            hint = f"there are {listed(_METHODS)}; for others, {_BEFORE}"
            if function.attr in TABLE and TABLE[function.attr].arity == len(node.args) + 1:
                signs = (sign for sign, holds in HOLDS.items() if holds.__name__ == function.attr)
                hint = f"write {next(signs, function.attr + ('(x, ...)' if node.args else '(x)'))}"
            self.reject(f"there is no method {shown(function.attr)}; {hint}", node)
        if not isinstance(function, ast.Name):
            self.reject("only a function can be called, by its name", node)
        name = function.id
        if name in self._scanned.names:
            self.reject(f"{shown(self._scanned.names[name].text)} is a column, and cannot be called", function)
        if name in TABLE or name in FUNCTIONS:
            return name, node.args
        known = known_text(f"numpy.{name}")
        if known is not None and known.names[0] in TABLE:
            return known.names[0], node.args
        near = similar(name, (*TABLE, *FUNCTIONS))
        hint = f"{_BEFORE}; known are {listed(sorted(TABLE), 100)}"
        if near and not hasattr(builtins, name):
            hint = f"did you mean {near!r}? Else {_BEFORE}"
        self.reject(f"there is no function {shown(name)}; {hint}", function)
