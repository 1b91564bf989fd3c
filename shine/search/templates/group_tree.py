"""A value for each group as an expression of the column of groups: a balanced tree of comparisons."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any


def in_a_row(column: str, values: Sequence[float], numbers: Sequence[Any]) -> ast.expr:
    """The same as `by_group`, with the groups one after the other: for people to read."""
    tree: ast.expr = ast.Constant(float(numbers[-1]))
    for place in reversed(range(len(values) - 1)):
        tree = ast.IfExp(_up_to(column, values, place), ast.Constant(float(numbers[place])), tree)
    return tree


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
    test = _up_to(column, values, middle - 1)
    lower, upper = slice(None, middle), slice(middle, None)
    return ast.IfExp(
        test, by_group(column, values[lower], numbers[lower]), by_group(column, values[upper], numbers[upper])
    )


def _up_to(column: str, values: Sequence[float], place: int) -> ast.expr:
    """Whether a row's value is at most halfway to the next of some values."""
    # Halves of large numbers are added, not halves of a sum that could overflow.
    border = values[place] / 2 + values[place + 1] / 2
    return ast.Compare(ast.Name(column, ast.Load()), [ast.LtE()], [ast.Constant(float(border))])
