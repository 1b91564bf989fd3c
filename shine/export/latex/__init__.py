"""Formulas as LaTeX for mathematics mode; the text needs amsmath."""

from __future__ import annotations

from shine.export.latex.writer import latex_text
from shine.lang.tree import Tree


def latex(tree: Tree, name: str | None = None, *, digits: int | None = None) -> str:
    r"""The formula in LaTeX's mathematics mode.

    Names of several letters are upright, Greek letters are recognized, and the part after an underscore, or a number
    at the end, is a subscript. If the formula has assignments or calls the user's own functions, the text is an
    `aligned` block with a line for each of them.

    Parameters
    ----------
    tree : Tree
    name : str, optional
        The left side; nothing by default, or the formula's own name in an `aligned` block.
    digits : int, optional
        Significant digits of constants; all digits by default.

    Raises
    ------
    ExportError
        If a primitive has no definition, or the text would be too long.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(latex(parse("alpha*x1**2/(speed + 1)")))
    \frac{\alpha x_{1}^{2}}{\mathrm{speed} + 1}
    """
    return latex_text(tree, name, digits)
