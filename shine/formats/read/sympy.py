"""SymPy -> tree: SymPy's expressions as formulas of the language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shine.lang.forms.library import STANDARD
from shine.lang.forms.tree import Primitive, Tree
from shine.lang.parse import parse
from shine.lang.sympy import is_symbolic, symbolic_tree


def from_sympy(
    expression: Any,
    parameters: Sequence[Any] | Mapping[Any, str] | None = None,
    primitives: Mapping[str, Primitive] = STANDARD,
) -> Tree:
    """The formula of a SymPy expression of real numbers.

    It reads sums, products, powers, real numbers, `Piecewise`, relations, truth values, and functions that are
    primitives or quotients of primitives. Whole powers up to eight become products, other powers `sqrt` or `pow`; exact
    numbers become the nearest float64. `shine.parse`, `shine.jit` and `shine.grad` take such expressions, too.

    Parameters
    ----------
    expression : sympy.Basic
        An expression, a relation, or a `sympy.Lambda`, which states the order of its arguments.
    parameters : sequence of sympy.Symbol or str, or mapping of sympy.Symbol to str, optional
        Names of the arguments, in calling order; by default the symbols in natural order (a, b, x2, x10). A mapping
        lists all symbols, and renames those whose names the language does not allow (``lambda``, ``x_{1}``).
    primitives : mapping of str to Primitive
        Primitives that undefined functions mean by their names: ``sympy.Function("hypot")(a, b)`` is `hypot`.

    Returns
    -------
    Tree
        Subexpressions that occur several times become assignments.

    Raises
    ------
    GraphImportError
        If the language lacks a part of the expression; the message names it.
    UnsupportedSyntaxError
        If the language does not allow the name of a symbol.
    TypeError
        If it is not an expression of SymPy.

    Examples
    --------
    >>> import sympy
    >>> a, b = sympy.symbols("a b")
    >>> print(from_sympy(sympy.sqrt(a**2 + b**2) / 3 - 1))
    sqrt(a*a + b*b)/3 - 1
    """
    if not is_symbolic(expression):
        raise TypeError(f"a SymPy expression is needed, not {type(expression).__name__}")
    if isinstance(parameters, Mapping):
        tree = symbolic_tree(expression, parameters, primitives)
        return parse(tree, list(parameters.values()), primitives)
    return parse(expression, parameters, primitives)
