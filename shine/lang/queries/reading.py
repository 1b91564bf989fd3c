"""A scanned query and the types of columns -> verified steps. Everything that is not known here is rejected."""

from __future__ import annotations

import ast
import datetime
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from shine.lang.grammar import ADVICE, NAMED_CONSTANTS
from shine.lang.names import listed, shown, similar, value_text
from shine.lang.primitives import FOLDED
from shine.lang.python.known import TABLE, known_text
from shine.lang.queries.bounds import FLIPPED, HOLDS, float_bound, integer_bound
from shine.lang.queries.instants import duration, instant
from shine.lang.queries.scanning import Scanned, scan
from shine.lang.queries.steps import Literal, Steps, Typed
from shine.lang.queries.types import FLOATS, INTEGERS, ColumnType, Query
from shine.lang.tree import BINARY_OPERATORS
from shine.lang.visitor import TreeVisitor, Visit

Value = Literal | Typed

COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="
}  # fmt: skip

_FOLDING: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow,
}  # fmt: skip
_LARGEST_EXPONENT = 4096
"""Of powers of whole numbers that are written out in a query."""

_WHOLE = frozenset({"add", "sub", "mul", "floordiv", "mod", "neg", "abs", "min", "max", "sign", "floor", "ceil",
                    "square", "cube", "relu", "clip", "trunc", "round"})  # fmt: skip
"""Primitives that make whole numbers of whole numbers; all others compute with float64."""

_UNSIGNED = frozenset({"add", "sub", "mul", "floordiv", "mod", "min", "max", "square", "cube"})
"""Those that uint64 has."""

_UNCHANGED = frozenset({"floor", "ceil", "trunc", "round"})
"""Primitives that do nothing to whole numbers."""

LONG_LIST = 16
"""Most values of a list that are compared one by one; longer lists are looked up before the query runs."""

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


def names_of(text: str) -> tuple[set[str], set[str]]:
    """Names of the columns and of the variables in a query."""
    names = scan(text).names.values()
    return {name.text for name in names if not name.is_variable}, {name.text for name in names if name.is_variable}


class _Reader(TreeVisitor):
    """Visits a syntax tree; the result of a node is a `Value`."""

    def __init__(
        self, scanned: Scanned, type_of: Callable[[str, bool], ColumnType], variables: Mapping[str, Any]
    ) -> None:
        self._scanned, self._variables = scanned, variables
        quoted = {name.text for name in scanned.names.values() if name.is_quoted}
        self._steps = Steps(lambda name: type_of(name, name in quoted))
        self._node: ast.AST = scanned.tree

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

    def visit(self, node: ast.AST) -> Any:
        return super().visit(node)

    def generic_visit(self, node: ast.AST) -> NoReturn:
        kind = type(node).__name__
        self._reject(ADVICE.get(kind, f"{kind} is not part of queries ({_ALLOWED})"), node)

    def _reject(self, message: str, node: ast.AST | None = None) -> NoReturn:
        raise self._scanned.reject(message, node or self._node)

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
        value = _plain(self._variables[name])
        if not _is_known(value):
            kind = type(value).__name__
            self._reject(f"@{name} is {kind}; a variable is a number, a text, a date, or a list of them", node)
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
        result = self._truth((yield node.values[0]), node.values[0])
        for operand in node.values[1:]:
            other = self._truth((yield operand), operand)
            result = self._steps.add(name, "bool", (result.index, other.index))
        return result

    def _truth(self, value: Value, node: ast.AST) -> Typed:
        if isinstance(value, Literal) and isinstance(value.value, bool):
            return self._steps.add("constant", "bool", (), value.value)
        if isinstance(value, Literal) or value.kind != "bool":
            what = value_text(value.value) if isinstance(value, Literal) else f"{value}"
            self._reject(f"this is {what}, no condition to combine; write a comparison such as x != 0", node)
        return Typed(value.index, "bool")

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Visit:
        operand = yield node.operand
        if isinstance(node.op, ast.Not | ast.Invert):
            return self._steps.add("not", "bool", (self._truth(operand, node.operand).index,))
        if isinstance(operand, Literal):
            if not _is_number(operand.value):
                self._reject(f"{value_text(operand.value)} is not a number", node.operand)
            return Literal(-operand.value if isinstance(node.op, ast.USub) else +operand.value, operand.is_variable)  # type: ignore[operator]
        if isinstance(node.op, ast.UAdd):
            return self._numeric(operand, node.operand)
        return self._apply("neg", [operand], [node.operand], node)

    def visit_Compare(self, node: ast.Compare) -> Visit:
        left, left_node, result = (yield node.left), node.left, None
        for kind, comparator in zip(node.ops, node.comparators, strict=True):
            right = yield comparator
            holds = self._compared(kind, left, right, left_node, comparator)
            result = holds if result is None else self._steps.add("and", "bool", (result.index, holds.index))
            left, left_node = right, comparator
        return result

    def _compared(self, kind: ast.cmpop, left: Value, right: Value, left_node: ast.AST, right_node: ast.AST) -> Typed:
        for value, node in ((left, left_node), (right, right_node)):
            if isinstance(value, Literal) and value.value is None:
                self._reject("nothing equals a missing value; write isna(x) or notna(x)", node)
        is_list = isinstance(right, Literal) and isinstance(right.value, tuple)
        # pandas reads x == [1, 2] as x in [1, 2].
        if isinstance(kind, ast.In | ast.NotIn) or (is_list and isinstance(kind, ast.Eq | ast.NotEq)):
            found = self._member(left, right, left_node, right_node)
            return found if isinstance(kind, ast.In | ast.Eq) else self._steps.add("not", "bool", (found.index,))
        if type(kind) not in COMPARISONS:
            self._reject("'is' is not part of queries; write isna(x), notna(x) or ==", right_node)
        comparison = COMPARISONS[type(kind)]
        if isinstance(left, Literal) and isinstance(right, Literal):
            return self._of_literals(comparison, left, right, right_node)
        if isinstance(left, Literal):
            comparison, left, right = FLIPPED[comparison], right, left
            left_node, right_node = right_node, left_node
        assert isinstance(left, Typed)
        if isinstance(right, Literal):
            return self._with_literal(comparison, left, right, right_node)
        return self._of_columns(comparison, left, right, right_node)

    def _of_literals(self, comparison: str, left: Literal, right: Literal, node: ast.AST) -> Typed:
        try:
            return self._steps.add("constant", "bool", (), bool(HOLDS[comparison](left.value, right.value)))
        except (TypeError, ValueError):
            self._reject(f"{value_text(left.value)} and {value_text(right.value)} cannot be compared", node)

    def _of_columns(self, comparison: str, left: Typed, right: Typed, node: ast.AST) -> Typed:
        meanings = [left.meaning.replace("truth", "number"), right.meaning.replace("truth", "number")]
        if meanings[0] != meanings[1]:
            self._reject(f"{left} and {right} cannot be compared", node)
        if meanings[0] == "text":
            self._reject("two columns of texts cannot be compared; compare a column with texts in quotes", node)
        if left.column is not None and right.column is not None and meanings[0] != "number":
            if (left.column.zone is None) != (right.column.zone is None):
                self._reject(f"{left} and {right} cannot be compared: one has a time zone and one has none", node)
            if left.column.unit != right.column.unit:
                return self._steps.compare_units(comparison, left, right)
        return self._steps.compare(comparison, left, right)

    def _with_literal(self, comparison: str, left: Typed, right: Literal, node: ast.AST) -> Typed:
        """A comparison of a column or a value with what the text says."""
        value = right.value
        if left.meaning == "text":
            if not isinstance(value, str) or comparison not in ("==", "!="):
                what = "with a text in quotes" if comparison in ("==", "!=") else "with ==, != and in"
                self._reject(f"column {shown(left.name)} holds texts, which are compared {what}", node)
            found = self._steps.is_text(left, value)
            return found if comparison == "==" else self._steps.add("not", "bool", (found.index,))
        if left.meaning in ("time", "duration"):
            assert left.column is not None
            try:
                exact = (instant if left.meaning == "time" else duration)(value, left.column)
            except ValueError as error:
                self._reject(f"column {shown(left.name)} is {left.meaning}: {error}", node)
            return self._steps.bounded(left, integer_bound(comparison, exact, left.kind), right.is_variable)
        if not isinstance(value, bool | int | float):
            hint = "; leave out the quotes" if isinstance(value, str) else ""
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

    def _member(self, left: Value, right: Value, left_node: ast.AST, right_node: ast.AST) -> Typed:
        if not isinstance(right, Literal) or not isinstance(right.value, tuple):
            self._reject("'in' needs a list, such as x in (1, 2) or x in @values", right_node)
        if not isinstance(left, Typed):
            self._reject("'in' asks for values of a column", left_node)
        if None in right.value:
            self._reject("a list has no missing values; write isna(x) beside it", right_node)
        if len(right.value) > LONG_LIST and left.column is not None and left.meaning in ("number", "text"):
            return self._looked_up(left, right.value, right_node)
        result = self._steps.add("constant", "bool", (), False)
        for value in dict.fromkeys(right.value):
            found = self._with_literal("==", left, Literal(value, right.is_variable), right_node)
            result = self._steps.add("or", "bool", (result.index, found.index))
        return result

    def _looked_up(self, column: Typed, values: Sequence[Any], node: ast.AST) -> Typed:
        """A long list: values that the column's type does not hold are left out."""
        if column.meaning == "text":
            if not all(isinstance(value, str) for value in values):
                self._reject(f"column {shown(column.name)} holds texts; the list has others", node)
            return self._steps.member(column, tuple(dict.fromkeys(values)))
        if not all(_is_number(value) for value in values):
            self._reject(f"column {shown(column.name)} holds numbers; the list has others", node)
        bound = integer_bound if column.kind in INTEGERS else float_bound
        bounds = [bound("==", value, column.kind) for value in values]
        held = dict.fromkeys(number for comparison, number in bounds if comparison == "==" and number == number)
        return self._steps.member(column, tuple(held))

    # Numbers

    def _numeric(self, value: Typed, node: ast.AST) -> Typed:
        """A value to compute with: a number, or 1 for true."""
        if value.meaning == "truth":
            return self._steps.convert(value, "int64")
        if value.meaning != "number":
            self._reject(f"column {shown(value.name)} is {value.column}, not a number to compute with", node)
        if value.kind in INTEGERS and value.kind != "uint64":
            return self._steps.convert(value, "int64")
        return Typed(value.index, value.kind)

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        if type(node.op) not in BINARY_OPERATORS:
            kind = type(node.op).__name__
            self._reject(ADVICE.get(kind, f"operator {kind} is not part of queries ({_ALLOWED})"), node)
        name = BINARY_OPERATORS[type(node.op)]
        left = yield node.left
        right = yield node.right
        return self._apply(name, [left, right], [node.left, node.right], node)

    def _apply(self, name: str, values: Sequence[Value], nodes: Sequence[ast.AST], node: ast.AST) -> Value:
        """A primitive of the language, in the type that its arguments decide."""
        if all(isinstance(value, Literal) for value in values):
            return self._folded(name, values, nodes, node)  # type: ignore[arg-type]
        for value, place in zip(values, nodes, strict=True):
            if isinstance(value, Literal) and not _is_number(value.value):
                self._reject(f"{value_text(value.value)} is not a number to compute with", place)
        typed = [self._numeric(v, n) if isinstance(v, Typed) else v for v, n in zip(values, nodes, strict=True)]
        kind = self._arithmetic_kind(name, typed)
        if kind in INTEGERS and name in _UNCHANGED:
            assert isinstance(typed[0], Typed)
            return typed[0]
        arguments = [self._number(value, kind, place).index for value, place in zip(typed, nodes, strict=True)]
        return self._steps.add("apply", kind, tuple(arguments), name)

    def _arithmetic_kind(self, name: str, values: Sequence[Value]) -> str:
        kinds = {value.kind for value in values if isinstance(value, Typed)}
        numbers = [value.value for value in values if isinstance(value, Literal)]
        if kinds <= set(FLOATS):
            return max(kinds)  # float64 beside float32; numbers of the text take the columns' type
        if kinds & set(FLOATS) or any(isinstance(number, float) for number in numbers):
            return "float64"
        if name == "pow" and not (isinstance(values[1], Literal) and values[1].value >= 0):  # type: ignore[operator]
            return "float64"
        if name not in _WHOLE and name != "pow":
            return "float64"
        if kinds == {"int64"}:
            return "int64"
        fits = kinds == {"uint64"} and all(number >= 0 for number in numbers)  # type: ignore[operator]
        return "uint64" if fits and name in _UNSIGNED else "float64"

    def _number(self, value: Value, kind: str, node: ast.AST) -> Typed:
        if isinstance(value, Typed):
            return self._steps.convert(value, kind)
        number: Any = value.value
        if kind in INTEGERS:
            least, most = INTEGERS[kind]
            if not least <= number <= most:
                self._reject(f"{value_text(number)} does not fit {kind}; write a float such as 1e30", node)
            return self._steps.number(int(number), kind, value.is_variable)
        try:
            return self._steps.number(float(np.dtype(kind).type(float(number))), kind, value.is_variable)
        except OverflowError:
            self._reject(f"{value_text(number)} does not fit {kind}", node)

    def _folded(self, name: str, values: Sequence[Literal], nodes: Sequence[ast.AST], node: ast.AST) -> Literal:
        """Arithmetic of numbers alone: Python's."""
        for value, place in zip(values, nodes, strict=True):
            if not _is_number(value.value):
                self._reject(f"{value_text(value.value)} is not a number to compute with", place)
        if name not in _FOLDING:
            self._reject("a function needs a column; compute the number before and pass it as @name", node)
        numbers: Any = [value.value for value in values]
        if name == "pow" and any(isinstance(n, int) and abs(n) > _LARGEST_EXPONENT for n in numbers[1:]):
            self._reject("the power is too large", node)
        try:
            result = _FOLDING[name](*numbers)
        except (ArithmeticError, ValueError) as error:
            self._reject(f"these numbers have no result: {error}", node)
        if isinstance(result, complex):
            self._reject("the result is a complex number", node)
        return Literal(result, any(value.is_variable for value in values))

    def visit_IfExp(self, node: ast.IfExp) -> Visit:
        test = yield node.test
        body = yield node.body
        orelse = yield node.orelse
        return self._chosen([test, body, orelse], [node.test, node.body, node.orelse])

    def _chosen(self, values: Sequence[Value], nodes: Sequence[ast.AST]) -> Typed:
        """``body if test else orelse``; where the test is null, `orelse`."""
        test = self._truth(values[0], nodes[0])
        if all(_is_truth(value) for value in values[1:]):
            body, orelse = (self._truth(v, n) for v, n in zip(values[1:], nodes[1:], strict=True))
            return self._steps.add("where", "bool", (test.index, body.index, orelse.index))
        typed: list[Value] = []
        for value, node in zip(values[1:], nodes[1:], strict=True):
            if isinstance(value, Literal) and not _is_number(value.value):
                self._reject(f"{value_text(value.value)} is not a number", node)
            typed.append(self._numeric(value, node) if isinstance(value, Typed) else value)
        if all(isinstance(value, Literal) for value in typed):
            kind = "int64" if all(isinstance(value.value, int) for value in typed) else "float64"  # type: ignore[union-attr]
        else:
            kind = self._arithmetic_kind("min", typed)
        parts = [self._number(value, kind, node).index for value, node in zip(typed, nodes[1:], strict=True)]
        return self._steps.add("where", kind, (test.index, *parts))

    # Functions

    def visit_Call(self, node: ast.Call) -> Visit:
        name, arguments = self._called(node)
        values = []
        for argument in arguments:
            values.append((yield argument))
        self._node = node
        if name in MISSING_TESTS or name == "isnan":
            return self._is_missing(name, values, arguments, node)
        if name == "isin":
            self._expect(name, 2, values, node)
            return self._member(values[0], values[1], arguments[0], arguments[1])
        if name == "between":
            self._expect(name, 3, values, node)
            low = self._compared(ast.GtE(), values[0], values[1], arguments[0], arguments[1])
            high = self._compared(ast.LtE(), values[0], values[2], arguments[0], arguments[2])
            return self._steps.add("and", "bool", (low.index, high.index))
        if name == "where":
            self._expect(name, 3, values, node)
            return self._chosen(values, arguments)
        if name in FOLDED and len(values) > 2:
            result = values[0]
            for value, argument in zip(values[1:], arguments[1:], strict=True):
                result = self._apply(name, [result, value], [node, argument], node)
            return result
        self._expect(name, TABLE[name].arity, values, node)
        return self._apply(name, values, arguments, node)

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
            value = self._numeric(value, nodes[0])
            return self._steps.compare("!=", value, value)
        found = self._steps.add("isna", "bool", (value.index,))
        return self._steps.add("not", "bool", (found.index,)) if MISSING_TESTS[name] else found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _is_truth(value: Value) -> bool:
    return isinstance(value.value, bool) if isinstance(value, Literal) else value.kind == "bool"


def _plain(value: Any) -> Any:
    """A variable's value as Python's own number, text or date, or a tuple of such."""
    if isinstance(value, np.datetime64 | np.timedelta64 | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "mM":
        return tuple(value.ravel()) if value.ndim else value[()]
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(value, name):
            value = getattr(value, name)()
            break
    return tuple(map(_plain, value)) if isinstance(value, list | tuple | set | frozenset | range) else value


def _is_known(value: object) -> bool:
    if isinstance(value, tuple):
        return all(_is_known(each) and not isinstance(each, tuple) for each in value)
    kinds = (bool, int, float, str, datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)
    return isinstance(value, kinds)
