"""Linear scaling written into formulas: the slope, the intercept, and the functions they need."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import replace

from shine.lang.forms.library import STANDARD
from shine.lang.forms.primitives import PrimitiveSet, select
from shine.lang.forms.tape import application
from shine.lang.forms.tree import Tree

LINE_FUNCTIONS = ("add", "sub", "mul")
"""Functions that write a slope and an intercept into a formula, even if the search does not draw from them."""


def with_functions(primitives: PrimitiveSet, names: Sequence[str]) -> PrimitiveSet:
    """The primitive set, with the named standard functions that it lacks."""
    added = select(STANDARD, [name for name in names if name not in primitives.table])
    return replace(primitives, functions=(*primitives.functions, *added)) if added else primitives


def with_line(tree: Tree, slope: float, intercept: float) -> Tree:
    """A formula with a slope and an intercept written into it; unchanged if one of them is not finite."""
    if not (math.isfinite(slope) and math.isfinite(intercept)):
        return tree
    node = tree.result
    if slope != 1:
        node = application("mul", [ast.Constant(slope), node])
    if intercept != 0:
        node = application("add" if intercept > 0 else "sub", [node, ast.Constant(abs(intercept))])
    return replace(tree, result=node)


def without_line(tree: Tree) -> Tree:
    """A formula without its outermost slope and intercept, if it has them."""
    node = tree.result
    for operators in ((ast.Add, ast.Sub), (ast.Mult, ast.Div)):
        match node:
            case ast.BinOp(left=inner, op=operator, right=ast.Constant()) if isinstance(operator, operators):
                node = inner
            case ast.BinOp(left=ast.Constant(), op=ast.Add() | ast.Sub() | ast.Mult() as operator, right=inner) if (
                isinstance(operator, operators)
            ):
                node = inner
    return replace(tree, result=node)
