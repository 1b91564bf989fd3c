"""SymPy -> tree: an expression of SymPy's as a formula of the language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shine.lang.library import STANDARD
from shine.lang.parse import parse
from shine.lang.symbolic import is_symbolic, symbolic_tree
from shine.lang.tree import Primitive, Tree


def from_sympy(
    expression: Any,
    parameters: Sequence[Any] | Mapping[Any, str] | None = None,
    primitives: Mapping[str, Primitive] = STANDARD,
) -> Tree:
    """The formula of a SymPy expression of real numbers.

    Sums, products, powers, real numbers, `Piecewise`, relations, truth values and those functions that are primitives,
    or quotients of them, have a formula. Whole powers up to eight become products, other powers `sqrt` or `pow`; exact
    numbers become the nearest float64. `shine.parse`, `shine.jit` and `shine.grad` take such expressions as well.

    Parameters
    ----------
    expression : sympy.Basic
        An expression, a relation, or a `sympy.Lambda`, which brings the order of its arguments.
    parameters : sequence of sympy.Symbol or str, or mapping of sympy.Symbol to str, optional
        Names of the arguments, in calling order; by default the symbols in natural order (a, b, x2, x10). A mapping
        gives names to symbols whose own names are none of the language (``lambda``, ``x_{1}``), and lists all symbols.
    primitives : mapping of str to Primitive
        What undefined functions may be called: ``sympy.Function("hypot")(a, b)`` is the primitive of that name.

    Returns
    -------
    Tree
        Subexpressions that occur in several places are assignments.

    Raises
    ------
    GraphImportError
        If something has no counterpart, by its name.
    UnsupportedSyntaxError
        If the name of a symbol is none of the language.
    TypeError
        If the expression is none of SymPy's.

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
