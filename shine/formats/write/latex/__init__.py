"""Formulas as LaTeX for mathematics mode; the text needs amsmath."""

from __future__ import annotations

from shine.formats.write.latex.writer import latex_text
from shine.formats.write.sources import Headings, takes_models
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree


@takes_models
def latex(tree: Tree, name: str | None = None, *, headings: Headings | None = None, precision: Precision = None) -> str:
    r"""The formula in LaTeX's mathematics mode.

    Names of several letters are upright, Greek letters are recognized, and the part after an underscore, or a number
    at the end, is a subscript. If the formula has assignments or calls the user's own functions, the text is an
    `aligned` block with a line for each of them.

    Parameters
    ----------
    tree : Tree or Model
    name : str, optional
        The left side; nothing by default, or the formula's own name in an `aligned` block.
    headings : mapping of str to str, optional
        Original headings of the columns, by feature, which take the place of the names.
    precision : int, "exact" or None
        Significant digits of constants; all by default.

    Raises
    ------
    ExportError
        If a primitive has no definition, or the text would be too long.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(latex(parse("alpha*x1**2/(speed + 1)")))
    \frac{\alpha x_{1}^{2}}{\mathrm{speed} + 1}
    >>> print(latex(parse("3*area"), headings={"area": "my area (m²)"}))
    3 {\text{my area (m}^{2}\text{)}}
    """
    return latex_text(rounded_tree(tree, precision), name, headings or {})
