"""Conditions on rows, as text -> expressions of Arrow, which leaves out what cannot fulfil them before it reads it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from datetime import datetime
from typing import Any

from shine.errors import DataError
from shine.lang.names import listed, shown, similar

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
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
        body = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        raise DataError(f"where: {shown(text)} is not a condition; allowed are {ALLOWED}") from None
    return _Reading(text, schema, quoted).expression(body)


def _without_backticks(text: str) -> tuple[str, dict[str, str]]:
    parts = text.split("`")
    quoted = {f"quoted_heading_{number}": heading for number, heading in enumerate(parts[1::2])}
    names = iter(quoted)
    return "".join(next(names) if number % 2 else part for number, part in enumerate(parts)), quoted


class _Reading:
    def __init__(self, text: str, schema: Any, quoted: dict[str, str]) -> None:
        self.text, self.schema, self.quoted = text, schema, quoted

    def expression(self, node: ast.expr) -> Any:
        """The expression of a node that is true or false."""
        if isinstance(node, ast.BoolOp):
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            found = self.expression(node.values[0])
            for value in node.values[1:]:
                found = join(found, self.expression(value))
            return found
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self.expression(node.operand)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Name) and str(self._type(node)) == "bool":
            return self._field(node)
        raise self._wrong(node)

    def _comparison(self, node: ast.Compare) -> Any:
        found, left = None, node.left
        for sign, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(sign, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List | ast.Set):
                each = self._field(left).isin(self._values([self._value(part) for part in right.elts], left))
                each = ~each if isinstance(sign, ast.NotIn) else each
            elif type(sign) in _COMPARISONS:
                each = _COMPARISONS[type(sign)](self._operand(left, right), self._operand(right, left))
            else:
                raise self._wrong(node)
            found, left = each if found is None else found & each, right
        return found

    def _operand(self, node: ast.expr, other: ast.expr) -> Any:
        from pyarrow import compute

        if isinstance(node, ast.Name):
            return self._field(node)
        value = self._values([self._value(node)], other)[0]
        return compute.scalar(value)

    def _values(self, values: list[Any], column: ast.expr) -> Any:
        """Values as numbers, texts, or the moments that they mean beside a column of dates."""
        import pyarrow

        kind = self._type(column) if isinstance(column, ast.Name) else None
        if kind is None or not pyarrow.types.is_temporal(kind):
            return pyarrow.array(values)
        try:
            return pyarrow.array([datetime.fromisoformat(str(value)) for value in values]).cast(kind)
        except (ValueError, pyarrow.ArrowException):
            raise DataError(f"where: {shown(self.text)}: write dates as '2023-12-31'") from None

    def _field(self, node: ast.expr) -> Any:
        from pyarrow import compute

        if not isinstance(node, ast.Name):
            raise self._wrong(node)
        self._type(node)
        return compute.field(self.quoted.get(node.id, node.id))

    def _type(self, node: ast.Name) -> Any:
        name = self.quoted.get(node.id, node.id)
        if name not in self.schema.names:
            near = similar(name, self.schema.names)
            hint = f"did you mean {shown(near)}? " if near else ""
            raise DataError(f"where: there is no column {shown(name)}; {hint}there are {listed(self.schema.names)}")
        return self.schema.field(name).type

    def _value(self, node: ast.expr) -> Any:
        sign = 1
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            sign, node = -1, node.operand
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            return node.value if sign == 1 else -node.value  # type: ignore[operator]
        raise self._wrong(node)

    def _wrong(self, node: ast.expr) -> DataError:
        part = shown(ast.unparse(node))
        return DataError(f"where: {part} in {shown(self.text)} is not allowed; allowed are {ALLOWED}")
