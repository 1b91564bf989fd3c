"""Formulas with constants of few digits, for people to read."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from typing import Literal

import numpy as np

from shine.lang.forms.interpretation import Rebuilding
from shine.lang.forms.named_numbers import named_number
from shine.lang.forms.tree import Tree
from shine.lang.forms.visitor import Visit

Precision = int | Literal["exact"] | None
"""Digits of constants in a text: a number of digits, all ("exact"), or by the purpose of the text (None)."""

ALL_DIGITS = 17
"""Least number of significant digits with which every float64 reads back the same."""


def rounded_tree(tree: Tree, precision: Precision, supported: int | None = None, *, named: bool = True) -> Tree:
    """A formula with constants rounded to significant digits; the same object if nothing is to be rounded.

    Whole exponents stay, as do the constants inside the functions that the formula calls.

    Parameters
    ----------
    tree : Tree
    precision : int, "exact" or None
        Significant digits; all; or those that the data support.
    supported : int, optional
        Significant digits that the data support; all digits if it is not known.
    named : bool
        Whether the text writes numbers by name and fractions as they are, as people do. Then ``pi/2`` and ``1/3`` stay.

    Raises
    ------
    ValueError
        If the precision is none of these.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> rounded_tree(parse("2.34567*x**12 + 6.283185307179586*y"), 3).readable
    '2.35*x**12 + 2*pi*y'
    """
    digits = significant_digits(precision, supported)
    if digits is None:
        return tree
    rounding = _Rounding(digits, named, named and "pi" not in tree.parameters)
    assignments = tuple((name, rounding.visit(value)) for name, value in tree.assignments)
    return replace(tree, result=rounding.visit(tree.result), assignments=assignments)


def significant_digits(precision: Precision, supported: int | None = None) -> int | None:
    """The number of significant digits to write; None for all digits.

    A `ValueError` if the precision is not a positive integer, "exact" or None.
    """
    if precision is None:
        precision = "exact" if supported is None else supported
    if isinstance(precision, str) and precision == "exact":
        return None
    if isinstance(precision, bool) or not isinstance(precision, int | np.integer) or precision < 1:
        raise ValueError(f"precision is a number of significant digits from 1 on, 'exact' or None; it is {precision!r}")
    return int(precision) if precision < ALL_DIGITS else None


def rounded_number(value: int | float, digits: int) -> int | float:
    """A number, rounded to significant digits; the number itself if it is not finite or would no longer be."""
    try:
        near = float(f"{value:.{digits - 1}e}")
    except OverflowError:  # an integer beyond float64
        return value
    if not math.isfinite(near):
        return value
    return int(near) if isinstance(value, int) else near


class _Rounding(Rebuilding):
    """Builds the expression again with rounded constants."""

    def __init__(self, digits: int, fractions: bool, names: bool) -> None:
        self.digits, self.fractions, self.names = digits, fractions, names

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value: int | float = node.value  # type: ignore[assignment]
        if self.names and named_number(abs(float(value))) is not None:
            return node
        return ast.Constant(rounded_number(value, self.digits))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:  # type: ignore[override]  # as it is, no walk
        # A border that moves sends rows to the other branch: the groups 2001 and 2002 are no longer told apart at 2000.
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Visit:
        if not self.fractions and (value := _fraction(node)) is not None:
            return ast.Constant(rounded_number(value, self.digits))
        return (yield from super().visit_BinOp(node))

    def keeps(self, exponent: ast.expr) -> bool:
        """Whether the exponent is a whole number."""
        return _is_integer(exponent)


def _fraction(node: ast.BinOp) -> float | None:
    """The value of a division of two numbers; None for everything else."""
    match node:
        case ast.BinOp(ast.Constant(int() | float() as above), ast.Div(), ast.Constant(int() | float() as below)):
            return float(above) / float(below) if below else None
    return None


def _is_integer(node: ast.expr) -> bool:
    """Whether an expression is a whole number, with or without a minus."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and float(node.value).is_integer()  # type: ignore[arg-type]
