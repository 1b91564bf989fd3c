"""Formulas in other forms: source code, typesetting, spreadsheets, data bases, other libraries. See docs/exports.md.

Each form is a module or a room of its name. It builds on `expressions` if it holds a formula in one expression, on
`statements` if it has statements or nodes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from shine.lang.tree import Tree

Writer = Callable[[Tree, str], str | bytes]
"""Writes a formula under a name."""


def _late(module: str, function: str) -> Callable[..., Any]:
    """A function of a module of this package, imported when it is called."""

    def call(*arguments: Any) -> Any:
        return getattr(importlib.import_module(f"shine.export.{module}"), function)(*arguments)

    return call


def _line(module: str, function: str) -> Writer:
    """A function that returns one expression, which becomes a line."""
    return lambda tree, name: f"{_late(module, function)(tree, name)}\n"


def _unnamed_line(module: str, function: str) -> Writer:
    """The same for a form in which a formula has no name."""
    return lambda tree, name: f"{_late(module, function)(tree)}\n"


EXPORTS: dict[str, Writer] = {
    "python": _late("python", "python_source"),
    "latex": _line("latex", "latex"),
    "sympy": _late("sympy", "sympy_source"),
    "json": _late("json", "to_json"),
    "c": _late("c", "c_source"),
    "torch": _late("torch", "torch_source"),
    "jax": _late("jax", "jax_source"),
    "onnx": _late("onnx", "onnx_bytes"),
    "graphdef": _late("graphdef", "graphdef_text"),
    "excel": _unnamed_line("excel", "excel_formula"),
    "sql": _unnamed_line("sql", "sql_expression"),
}
"""The writer of each form."""


def export(tree: Tree, to: str, name: str = "f") -> str | bytes:
    """A formula in another form.

    Parameters
    ----------
    tree : Tree
        Its parameters are the features, in the order of the columns.
    to : str
        One of `EXPORTS`.
    name : str
        Name of the formula, in forms that have one.

    Returns
    -------
    str or bytes
        Bytes for ONNX, text for all other forms.

    Raises
    ------
    ValueError
        If the form is unknown or does not allow the name.
    ExportError
        If the form cannot hold the formula, or needs a library that is not installed.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(export(parse("a*x1**2"), "latex"), end="")
    f = a x_{1}^{2}
    """
    if to not in EXPORTS:
        raise ValueError(f"unknown export {to!r}; use one of {', '.join(EXPORTS)}")
    return EXPORTS[to](tree, name)
