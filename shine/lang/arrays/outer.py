"""Names of a Python function that its module defines: their numbers and functions take the place of the names."""

from __future__ import annotations

import ast
import builtins
import functools
import math
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from shine.lang.forms.grammar import reject
from shine.lang.forms.library import STANDARD
from shine.lang.forms.names import shown
from shine.lang.python.known import OWN_MEANINGS, known_of

_REDUCTIONS: Mapping[int, str] = {
    id(functools.reduce): "reduce",
    id(math.prod): "prod",
    id(np.prod): "prod",
    id(np.sum): "sum",
    **{
        id(getattr(builtins, name)): name
        for name in ("sum", "min", "max", "len", "range", "zip", "enumerate", "reversed")
    },
}
"""Functions of vectors by identity; their words in the language."""

_TEXTS = {"math.prod": "prod", "np.prod": "prod", "np.sum": "sum", "functools.reduce": "reduce"} | {
    f"numpy.{name}": name for name in ("prod", "sum")
}
"""The same as texts write them, if they name the module."""

_OPERATORS = {"operator.mul": "mul", "operator.add": "add"}


class Texts(ast.NodeTransformer):
    """Replaces ``math.prod`` by ``prod``, and the like."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        text = ast.unparse(node) if isinstance(node.value, ast.Name) else ""
        name = _TEXTS.get(text) or _OPERATORS.get(text)
        return node if name is None else ast.copy_location(ast.Name(name, ast.Load()), node)


class Outer(ast.NodeTransformer):
    """Replaces the outer names of a function.

    Parameters
    ----------
    function : function
    bound : set of str
        Names that the function defines itself.
    """

    def __init__(self, function: FunctionType, bound: set[str]) -> None:
        self._bound = bound
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        self._known: dict[str, Any] = dict(function.__globals__)
        for name, cell in cells:
            try:
                self._known[name] = cell.cell_contents
            except ValueError:  # assigned later than the function is read
                continue

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._bound or node.id not in self._known:
            return node
        value = self._known[node.id]
        if isinstance(value, bool) or not isinstance(value, int | float):
            known = known_of(value)
            name = None if known is None else known.name(2)
            return node if name not in ("mul", "add") else ast.copy_location(ast.Name(name, ast.Load()), node)
        number = int(value) if isinstance(value, int) else float(value)
        return ast.copy_location(ast.Constant(number), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [self.visit(each) for each in node.args]
        if isinstance(node.func, ast.Name) and node.func.id not in self._bound and node.func.id in self._known:
            node.func = ast.copy_location(ast.Name(self._called(node, node.func.id), ast.Load()), node.func)
        return node

    def _called(self, node: ast.Call, text: str) -> str:
        value = self._known[text]
        if id(value) in _REDUCTIONS:
            return _REDUCTIONS[id(value)]
        known = known_of(value)
        name = None if known is None else known.name(2 if known.folded else len(node.args))
        name = None if name is None else OWN_MEANINGS.get(name, name)
        if name not in STANDARD:
            reject(f"{shown(text)} is a function that array formulas cannot call; write its expression instead", node)
        return str(name)
