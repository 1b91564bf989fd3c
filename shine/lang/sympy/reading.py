"""SymPy's expressions as formulas of the language.

This module never imports SymPy: a caller with a SymPy expression has already imported
it. SymPy's classes are recognized by
their names.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeGuard

from shine.lang.forms.tree import Primitive, Tree
from shine.lang.meaning.writing import written
from shine.lang.sympy.reader import SymbolReader
from shine.lang.sympy.rules import FOLDED, FUNCTIONS, OTHERS, RECIPROCALS, RULES


class Symbolic(Protocol):
    """SymPy's expressions, for type checkers."""

    @property
    def free_symbols(self) -> set[Any]:
        """Symbols whose values it depends on."""
        ...


def is_symbolic(value: object) -> TypeGuard[Symbolic]:
    """Whether something is an expression of SymPy."""
    basic = getattr(sys.modules.get("sympy"), "Basic", None)
    return basic is not None and isinstance(value, basic)


def symbolic_tree(expression: Any, names: Mapping[Any, str], primitives: Mapping[str, Primitive]) -> Tree:
    """The tree of one of SymPy's expressions.

    Parameters
    ----------
    expression : sympy.Basic
        An expression of real numbers. A `sympy.Lambda` defines the order of its arguments.
    names : mapping of sympy.Symbol to str
        Names of symbols in the language. Other symbols keep their own names.
    primitives : mapping of str to Primitive
        Primitives that undefined functions may stand for, by name.

    Returns
    -------
    Tree
        Its parameters are the arguments of a `Lambda`, or else the symbols in the order of their first use.

    Raises
    ------
    GraphImportError
        If part of it has no counterpart; the message names the part.
    UnsupportedSyntaxError
        If the name of a symbol is not a name of the language.
    """
    reader = SymbolReader(names, primitives, RULES, sorted({*FUNCTIONS, *RECIPROCALS, *FOLDED, *OTHERS}))
    if type(expression).__name__ == "Lambda":
        for symbol in expression.signature:
            reader.visit(symbol)
        expression = expression.expr
    value = reader.visit(expression)
    return replace(written(reader.graph, value, tuple(reader.symbols)), functions=primitives)
