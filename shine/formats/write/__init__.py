"""Formulas in other forms: source code, typesetting, spreadsheets, databases, other libraries. See docs/exports.md.

Each form is a module or a package of its name. Text is a `language` that `printer` writes; objects of other libraries
come from `translation`, nodes of graphs from `straightline`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shine.formats.write.sources import Headings, takes_models, with_preparation
from shine.lang.forms.names import value_text
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

if TYPE_CHECKING:
    from shine.data.datasets.preparation import Preparation


@dataclass(frozen=True)
class Writer:
    """Writer of a form. Its module is imported at its first use: all of them together take a noticeable time.

    Parameters
    ----------
    module, function : str
    options : mapping
        Names of the form's options, with what they are by default.
    named : bool
        Whether the form has a name of the formula.
    """

    module: str
    function: str
    options: Mapping[str, Any] = field(default_factory=dict)
    named: bool = True

    def write(self, tree: Tree, name: str, headings: Headings, options: Mapping[str, Any]) -> str | bytes:
        """The formula in the form."""
        write = getattr(import_module(f"shine.formats.write.{self.module}"), self.function)
        written: str | bytes = write(
            tree, *([name] if self.named else []), headings=headings, **{**self.options, **options}
        )
        return written


EXPORTS: dict[str, Writer] = {
    "python": Writer("python", "python_source"),
    "pandas": Writer("pandas", "pandas_source"),
    "polars": Writer("polars", "polars_source"),
    "latex": Writer("latex", "latex"),
    "sympy": Writer("sympy", "sympy_source"),
    "json": Writer("json", "to_json", {"indent": 2}),
    "c": Writer("c", "c_source"),
    "torch": Writer("torch", "torch_source"),
    "jax": Writer("jax", "jax_source"),
    "onnx": Writer("onnx", "onnx_bytes"),
    "graphdef": Writer("graphdef", "graphdef_text"),
    "excel": Writer("excel", "excel_formula", {"cells": None}, named=False),
    "sql": Writer("sql", "sql_expression", {"dialect": "standard", "columns": None}, named=False),
}
"""The writer of each form."""

LINES = frozenset({"latex", "excel", "sql"})
"""Forms whose text has no end of a line of its own."""

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
    unknown = next((option for option in options if option not in writer.options), None)
    if unknown is not None:
        allowed = f"it has {', '.join(writer.options)}" if writer.options else "it has none"
        raise ValueError(f"the export to {to} has no option {value_text(unknown)}; {allowed}")
    known = (headings or {}) if preparation is None else with_preparation(headings, preparation)
    written = writer.write(rounded_tree(tree, precision, named=to in FOR_PEOPLE), name, known, options)
    return f"{written!s}\n" if to in LINES else written
