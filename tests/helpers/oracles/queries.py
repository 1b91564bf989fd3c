"""The meaning of queries, row by row in pure Python: whole numbers are Python's, a missing value is None."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


def value_of(text: str, row: Mapping[str, Any]) -> Any:
    """The value of a fully parenthesized query in one row.

    A row has Python's bool, int, float and str, and NumPy's float32 and uint64 for columns of these types. Whole
    numbers are int64 and wrap; the numbers of the text have the type of what they are combined with.
    """
    return _value(ast.parse(text, mode="eval").body, row)


def _value(node: ast.expr, row: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return row[name]
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            value = _value(operand, row)
            return None if value is None else not value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _value(operand, row)
            return None if value is None else -value if isinstance(value, float | np.floating) else _wrapped(-value)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right):
            return _logic(op, _value(left, row), _value(right, row))
        case ast.BinOp(left=left, op=op, right=right):
            return _arithmetic(type(op), _value(left, row), _value(right, row))
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=elements)]):
            value = _value(left, row)
            return None if value is None else any(value == _value(element, row) for element in elements)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            values = [_value(each, row) for each in (left, *comparators)]
            result: Any = True
            for op, a, b in zip(ops, values, values[1:], strict=False):
                holds = None if a is None or b is None else _COMPARISONS[type(op)](_exact(a), _exact(b))
                result = _logic(ast.BitAnd(), result, holds)
            return result
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, row) else orelse, row)
        case ast.Call(func=ast.Name(id="isna"), args=[argument]):
            value = _value(argument, row)
            return value is None or (isinstance(value, float | np.floating) and math.isnan(value))
        case ast.Call(func=ast.Name(id="abs"), args=[argument]):
            value = _value(argument, row)
            return (
                None
                if value is None
                else abs(value)
                if isinstance(value, float | np.floating)
                else _wrapped(abs(value))
            )
        case ast.Call(func=ast.Name(id="sqrt"), args=[argument]):
            value = _value(argument, row)
            with np.errstate(all="ignore"):
                return None if value is None else np.sqrt(value if isinstance(value, np.float32) else np.float64(value))
    raise NotImplementedError(ast.dump(node))


def _exact(value: Any) -> Any:
    """A number that Python compares exactly."""
    return value.item() if isinstance(value, np.generic) else value


def _logic(op: ast.operator, a: Any, b: Any) -> Any:
    decisive = isinstance(op, ast.BitOr)
    if a is decisive or b is decisive:
        return decisive
    return None if a is None or b is None else not decisive


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _arithmetic(op: type[ast.operator], a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    whole = all(isinstance(each, int) for each in (a, b))
    if whole and op is not ast.Div:
        if op in (ast.FloorDiv, ast.Mod) and b == 0:
            return None
        functions: dict[type[ast.operator], Callable[[int, int], int]] = {
            ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
            ast.Mod: operator.mod,
        }  # fmt: skip
        return _wrapped(functions[op](int(a), int(b)))
    kind = np.float64
    singles = [isinstance(each, np.float32) for each in (a, b)]
    if all(singles):
        kind = np.float32
    with np.errstate(all="ignore"):
        left, right = kind(a), kind(b)
        quotients = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}
        return quotients[op](left, right).item() if kind is np.float64 else quotients[op](left, right)
