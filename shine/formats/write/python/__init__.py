"""Formulas as Python source that needs only NumPy, with the values of the reference tier, special values included."""

from __future__ import annotations

import keyword

from shine.formats.write.expressions.phrases import word, written
from shine.formats.write.given import takes_models
from shine.formats.write.headings import Headings
from shine.formats.write.python.expression import Expression
from shine.formats.write.python.module import Module
from shine.formats.write.python.names import identifiers
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree


@takes_models
def python_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """A module with the formula as a function of NumPy arrays.

    It imports only NumPy. Functions that the formula calls become functions of the module; deeply nested expressions
    are broken into statements. Its values are those of the reference tier, NaN, infinities and signed zeros included.

    Parameters
    ----------
    tree : Tree or Model
    name : str
        Name of the function.
    headings : mapping of str to str, optional
        Original headings of the columns, by feature, for the function's documentation.
    precision : int, "exact" or None
        Significant digits of constants; all by default.

    Raises
    ------
    ValueError
        If the name is not a Python identifier.
    ExportError
        If a primitive has no definition, or the text would be too long.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is not a name for a Python function")
    return Module(name, headings or {}).text(rounded_tree(tree, precision, named=False), name)


@takes_models
def python_expression(tree: Tree, *, precision: Precision = None) -> str:
    """The formula as one NumPy expression of its parameters, which are float64 arrays.

    Assigned values and functions are written out at every use. `np.minimum` and `np.maximum` may return either of 0.0
    and -0.0.

    Raises
    ------
    ExportError
        If a primitive has no definition, or the text would be too long.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> python_expression(parse("sqrt(a*a + 1) if a > 0 else 0"))
    'np.where(a > 0, np.sqrt(a*a + 1), 0.0)'
    """
    tree, writer = rounded_tree(tree, precision, named=False), Expression()
    names = identifiers(tree.parameters, {"np"})
    result = writer.translate(tree, [word(names[name]) for name in tree.parameters])
    return written(writer.numeric(result), "a Python expression")
