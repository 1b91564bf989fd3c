"""Formulas in other forms: source code, typesetting, spreadsheets, databases, other libraries. See docs/exports.md.

Each form is a module or a package of its name. It builds on `expressions` if it writes a formula as one expression, and
on `statements` if it has statements or nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shine.formats.write.sources import Headings, takes_models, with_preparation
from shine.lang.forms.names import value_text
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

if TYPE_CHECKING:
    from shine.data.datasets.preparation import Preparation

Writer = Callable[..., str | bytes]
"""Writes a formula under a name, with the original headings of its columns; further arguments are options."""


# Each writer imports its module when it is called: all of them together take a noticeable time.


def _python(tree: Tree, name: str, headings: Headings) -> str:
    from shine.formats.write.python import python_source

    return python_source(tree, name, headings=headings)


def _latex(tree: Tree, name: str, headings: Headings) -> str:
    from shine.formats.write.latex import latex

    return f"{latex(tree, name, headings=headings)}\n"


def _sympy(tree: Tree, name: str, headings: Headings) -> str:
    from shine.formats.write.sympy import sympy_source

    return sympy_source(tree, name, headings=headings)


def _json(tree: Tree, name: str, headings: Headings, *, indent: int | None = 2) -> str:
    from shine.formats.write.json import to_json

    return to_json(tree, name, indent=indent, headings=headings)


def _c(tree: Tree, name: str, headings: Headings) -> str:
    from shine.formats.write.c import c_source

    return c_source(tree, name, headings=headings)


def _torch(tree: Tree, name: str, headings: Headings) -> str:
    from shine.formats.write.torch import torch_source

    return torch_source(tree, name, headings=headings)


def _jax(tree: Tree, name: str, headings: Headings) -> str:
    from shine.formats.write.jax import jax_source

    return jax_source(tree, name, headings=headings)


def _onnx(tree: Tree, name: str, headings: Headings) -> bytes:
    from shine.formats.write.onnx import onnx_bytes

    return onnx_bytes(tree, name, headings=headings)


def _graphdef(tree: Tree, name: str, headings: Headings) -> str:
    from shine.formats.write.graphdef import graphdef_text

    return graphdef_text(tree, name, headings=headings)


def _excel(tree: Tree, name: str, headings: Headings, *, cells: Any = None) -> str:
    from shine.formats.write.excel import excel_formula

    return f"{excel_formula(tree, cells, headings=headings)}\n"


def _sql(
    tree: Tree,
    name: str,
    headings: Headings,
    *,
    dialect: str = "standard",
    columns: Any = None,
) -> str:
    from shine.formats.write.sql import sql_expression

    return f"{sql_expression(tree, columns, dialect=dialect, headings=headings)}\n"


def _pandas(tree: Tree, name: str, headings: Headings) -> str:
    from shine.formats.write.pandas import pandas_source

    return pandas_source(tree, name, headings=headings)


def _polars(tree: Tree, name: str, headings: Headings) -> str:
    from shine.formats.write.polars import polars_source

    return polars_source(tree, name, headings=headings)


EXPORTS: dict[str, Writer] = {
    "python": _python,
    "pandas": _pandas,
    "polars": _polars,
    "latex": _latex,
    "sympy": _sympy,
    "json": _json,
    "c": _c,
    "torch": _torch,
    "jax": _jax,
    "onnx": _onnx,
    "graphdef": _graphdef,
    "excel": _excel,
    "sql": _sql,
}
"""The writer of each form."""

FOR_PEOPLE = frozenset({"latex", "sympy"})
"""Forms whose constants people read: models write them with the digits that the data support."""


@takes_models  # type: ignore[arg-type]  # mypy confuses the tree with one of the options
def export(
    tree: Tree,
    to: str,
    name: str = "f",
    *,
    headings: Headings | None = None,
    preparation: Preparation | None = None,
    precision: Precision = None,
    **options: Any,
) -> str | bytes:
    """A formula in another form.

    Parameters
    ----------
    tree : Tree or Model
        Its parameters are the features, in the order of the columns.
    to : str
        One of `EXPORTS`.
    name : str
        Name of the formula, in forms that have one.
    headings : mapping of str to str, optional
        Original headings of the columns, by feature. SQL, pandas and Polars read columns by them, LaTeX shows them,
        and code has them in a comment.
    preparation : Preparation, optional
        How columns of the user's table became numbers, if they did not hold numbers: SQL, pandas, Polars and Excel read
        its texts, dates and gaps, and all other forms say what numbers they stand for. Models know theirs.
    precision : int, optional
        Significant digits of constants; all by default.
    **options
        Of the form, as its own function takes them: `dialect` and `columns` of SQL, `cells` of Excel, `indent` of JSON.

    Returns
    -------
    str or bytes
        Bytes for ONNX, text for all other forms.

    Raises
    ------
    ValueError
        If the form or an option is unknown, or the form does not allow the name.
    ExportError
        If the form cannot hold the formula, or needs a library that is not installed.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(export(parse("a*x1**2"), "latex"), end="")
    f = a x_{1}^{2}
    """
    if to not in EXPORTS:
        raise ValueError(f"unknown export {value_text(to)}; use one of {', '.join(EXPORTS)}")
    writer = EXPORTS[to]
    of_form = writer.__kwdefaults__ or {}
    unknown = next((option for option in options if option not in of_form), None)
    if unknown is not None:
        allowed = f"it has {', '.join(of_form)}" if of_form else "it has none"
        raise ValueError(f"the export to {to} has no option {value_text(unknown)}; {allowed}")
    known = (headings or {}) if preparation is None else with_preparation(headings, preparation)
    return writer(rounded_tree(tree, precision, named=to in FOR_PEOPLE), name, known, **options)
