"""Formulas in other forms: source code, typesetting, spreadsheets, databases, other libraries. See docs/exports.md.

Each form is a module or a package of its name. It builds on `expressions` if it writes a formula as one expression, and
on `statements` if it has statements or nodes.
"""

from __future__ import annotations

from collections.abc import Callable

from shine.lang.tree import Tree

Writer = Callable[[Tree, str], str | bytes]
"""Writes a formula under a name."""


# Each writer imports its module when it is called: all of them together take a noticeable time.


def _python(tree: Tree, name: str) -> str:
    from shine.export.python import python_source

    return python_source(tree, name)


def _latex(tree: Tree, name: str) -> str:
    from shine.export.latex import latex

    return f"{latex(tree, name)}\n"


def _sympy(tree: Tree, name: str) -> str:
    from shine.export.sympy import sympy_source

    return sympy_source(tree, name)


def _json(tree: Tree, name: str) -> str:
    from shine.export.json import to_json

    return to_json(tree, name)


def _c(tree: Tree, name: str) -> str:
    from shine.export.c import c_source

    return c_source(tree, name)


def _torch(tree: Tree, name: str) -> str:
    from shine.export.torch import torch_source

    return torch_source(tree, name)


def _jax(tree: Tree, name: str) -> str:
    from shine.export.jax import jax_source

    return jax_source(tree, name)


def _onnx(tree: Tree, name: str) -> bytes:
    from shine.export.onnx import onnx_bytes

    return onnx_bytes(tree, name)


def _graphdef(tree: Tree, name: str) -> str:
    from shine.export.graphdef import graphdef_text

    return graphdef_text(tree, name)


def _excel(tree: Tree, name: str) -> str:
    from shine.export.excel import excel_formula

    return f"{excel_formula(tree)}\n"


def _sql(tree: Tree, name: str) -> str:
    from shine.export.sql import sql_expression

    return f"{sql_expression(tree)}\n"


EXPORTS: dict[str, Writer] = {
    "python": _python,
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
