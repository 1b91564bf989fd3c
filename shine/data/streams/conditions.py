"""Conditions on rows, as text -> expressions of Arrow, which leaves out what cannot fulfil them before it reads it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from shine.base.errors import DataError
from shine.data.streams.condition_values import among, compared, family, fitting, nothing
from shine.lang.forms.names import listed, shown, similar

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}

ALLOWED = "comparisons of columns with numbers, texts and dates, `in`, `and`, `or`, `not`"


def condition(text: str, schema: Any) -> Any:
    """The expression of a condition.

    Parameters
    ----------
    text : str
        Such as ``year >= 2020 and region in ("north", "west")``; headings that are no identifiers are in backticks.
    schema : pyarrow.Schema
        Of the columns.

    Raises
    ------
    DataError
        If it is no condition, or a column is not there.
    """
    plain, quoted = _without_backticks(text)
    try:
        return _Reading(text, schema, quoted).expression(ast.parse(plain.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise DataError(f"where: {shown(text)} is not a condition; allowed are {ALLOWED}") from None


def _without_backticks(text: str) -> tuple[str, dict[str, str]]:
    parts = text.split("`")
    quoted = {f"quoted_heading_{number}": heading for number, heading in enumerate(parts[1::2])}
    names = iter(quoted)
    return "".join(next(names) if number % 2 else part for number, part in enumerate(parts)), quoted


class _Reading:
    def __init__(self, text: str, schema: Any, quoted: dict[str, str]) -> None:
        self.text, self.schema, self.quoted = text, schema, quoted
        self.negated = False

    def expression(self, node: ast.expr) -> Any:
        """The expression of a node that is true or false."""
        if isinstance(node, ast.BoolOp):
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            found = self.expression(node.values[0])
            for value in node.values[1:]:
                found = join(found, self.expression(value))
            return found
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            outer, self.negated = self.negated, True
            found = ~self.expression(node.operand)
            self.negated = outer
            return found
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Name) and str(self._type(node)) == "bool":
            return self._field(node)
        raise self._wrong(node)

    def _comparison(self, node: ast.Compare) -> Any:
        found, left = None, node.left
        for sign, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(sign, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List | ast.Set):
                each = self._membership(left, right.elts, isinstance(sign, ast.NotIn))
            elif type(sign) in _COMPARISONS:
                each = self._pair(left, type(sign), right)
            else:
                raise self._wrong(node)
            found, left = each if found is None else found & each, right
        return found

    def _membership(self, column: ast.expr, elements: list[ast.expr], is_negated: bool) -> Any:
        from pyarrow import compute

        field, kind = self._field(column), self._type(column)
        found = among(field, kind, [self._fitting(element, kind, column) for element in elements])
        if is_negated or self.negated:
            # Arrow's search in a list says "false" of a missing value, whose opposite would select it.
            found = found | compute.if_else(field.is_valid(), compute.scalar(False), nothing())
        return ~found if is_negated else found

    def _pair(self, left: ast.expr, sign: type[ast.cmpop], right: ast.expr) -> Any:
        if not isinstance(left, ast.Name):
            if not isinstance(right, ast.Name):
                raise self._wrong(left)
            left, sign, right = right, _MIRRORED.get(sign, sign), left
        field, kind = self._field(left), self._type(left)
        if not isinstance(right, ast.Name):
            return compared(field, kind, _COMPARISONS[sign].__name__, self._fitting(right, kind, left))
        other = self._type(right)
        if family(kind) is None or family(kind) != family(other):
            names = f"{ast.unparse(left)} ({kind}) and {ast.unparse(right)} ({other})"
            raise DataError(f"where: {shown(self.text)}: {names} cannot be compared")
        return _COMPARISONS[sign](field, self._field(right))

    def _fitting(self, node: ast.expr, kind: Any, column: ast.expr) -> Any:
        """The value of a constant beside a column."""
        try:
            return fitting(self._value(node), kind)
        except ValueError as error:
            named = self.quoted.get(ast.unparse(column), ast.unparse(column))
            raise DataError(f"where: {shown(self.text)}: column {shown(named)} holds {kind}; {error}") from None

    def _field(self, node: ast.expr) -> Any:
        from pyarrow import compute

        self._type(node)
        return compute.field(self._heading(node))

    def _heading(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self._wrong(node)
        return self.quoted.get(node.id, node.id)

    def _type(self, node: ast.expr) -> Any:
        name = self._heading(node)
        if name not in self.schema.names:
            near = similar(name, self.schema.names)
            hint = f"did you mean {shown(near)}? " if near else ""
            raise DataError(f"where: there is no column {shown(name)}; {hint}there are {listed(self.schema.names)}")
        return self.schema.field(name).type

    def _value(self, node: ast.expr) -> Any:
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = -1, node.operand
        if isinstance(node, ast.Constant):
            if isinstance(node.value, int | float):
                return node.value if sign == 1 else -node.value
            if isinstance(node.value, str) and sign == 1:
                return node.value
        raise self._wrong(node)

    def _wrong(self, node: ast.expr) -> DataError:
        part = shown(ast.unparse(node))
        return DataError(f"where: {part} in {shown(self.text)} is not allowed; allowed are {ALLOWED}")
