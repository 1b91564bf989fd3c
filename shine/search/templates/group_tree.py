"""A value for each group as an expression of the column of groups: a balanced tree of comparisons."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any


def in_a_row(column: str, values: Sequence[float], numbers: Sequence[Any]) -> ast.expr:
    """The same as `for_known`, with the groups one after the other: for people to read."""
    tree: ast.expr = ast.Constant(float("nan"))
    for value, number in zip(reversed(values), reversed(numbers), strict=True):
        tree = _where(column, ast.Eq(), value, ast.Constant(float(number)), tree)
    return tree


def for_known(column: str, values: Sequence[float], numbers: Sequence[Any]) -> ast.expr:
    """The same as `by_group`, but NaN for values of the column that are no group."""
    pairs = zip(values, numbers, strict=True)
    return by_group(column, values, [in_a_row(column, [value], [number]) for value, number in pairs])


def by_group(column: str, values: Sequence[float], numbers: Sequence[Any]) -> ast.expr:
    """The expression whose value is the number of each row's group.

    Parameters
    ----------
    column : str
        Name of the column of groups.
    values : sequence of float
        Values of the column, ascending, one for each group. Other values of the column mean the nearest group; halfway
        between two, the lower one.
    numbers : sequence of float, or of ast.expr
        The number of each group, or what stands for it.

    Examples
    --------
    >>> ast.unparse(by_group("day", [1, 2, 4], [0.5, 0.7, 0.9]))
    '0.5 if day <= 1.5 else 0.7 if day <= 3.0 else 0.9'
    """
    if len(values) == 1:
        (only,) = numbers
        return only if isinstance(only, ast.expr) else ast.Constant(float(only))
    middle = len(values) // 2
    # Halves of large numbers are added, not halves of a sum that could overflow.
    border = values[middle - 1] / 2 + values[middle] / 2
    lower, upper = (
        by_group(column, values[:middle], numbers[:middle]),
        by_group(column, values[middle:], numbers[middle:]),
    )
    return _where(column, ast.LtE(), border, lower, upper)


def _where(column: str, comparison: ast.cmpop, value: float, yes: ast.expr, no: ast.expr) -> ast.expr:
    test = ast.Compare(ast.Name(column, ast.Load()), [comparison], [ast.Constant(float(value))])
    return ast.IfExp(test, yes, no)
