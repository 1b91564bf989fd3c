"""Formulas in other forms: source, typesetting, spreadsheets, data bases, other libraries. See docs/exports.md."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shine.lang.tree import Tree


@dataclass(frozen=True)
class Export:
    """A form that formulas can be written in.

    Parameters
    ----------
    suffix : str
        Ending of the files it is kept in.
    text : callable of (Tree, str) to str or bytes
        Writes a formula under a name.
    binary : bool
        Whether it is bytes, not text.
    extra : str, optional
        The extra of the package that it needs.
    """

    suffix: str
    text: Callable[[Tree, str], str | bytes]
    binary: bool = False
    extra: str | None = None


def _late(module: str, function: str) -> Callable[..., Any]:
    """A function of a module of this package, imported when it is called."""

    def call(*arguments: Any) -> Any:
        return getattr(importlib.import_module(f"shine.export.{module}"), function)(*arguments)

    return call


def _unnamed(module: str, function: str) -> Callable[[Tree, str], str]:
    """The same for a form in which a formula has no name."""
    return lambda tree, name: f"{_late(module, function)(tree)}\n"


EXPORTS: dict[str, Export] = {
    "python": Export(".py", _late("python", "python_source")),
    "latex": Export(".tex", lambda tree, name: f"{_late('latex', 'latex')(tree, name)}\n"),
    "sympy": Export(".py", _late("sympy", "sympy_source"), extra="sympy"),
    "json": Export(".json", _late("json", "to_json")),
    "c": Export(".c", _late("c", "c_source")),
    "torch": Export(".py", _late("torch", "torch_source"), extra="torch"),
    "jax": Export(".py", _late("jax", "jax_source"), extra="jax"),
    "onnx": Export(".onnx", _late("onnx", "onnx_bytes"), binary=True, extra="onnx"),
    "graphdef": Export(".pbtxt", _late("graphdef", "graphdef_text"), extra="tensorflow"),
    "excel": Export(".txt", _unnamed("excel", "excel_formula")),
    "sql": Export(".sql", _unnamed("sql", "sql_expression")),
}
"""The forms by name."""


def export(tree: Tree, to: str, name: str = "f") -> str | bytes:
    """A formula in another form.

    Parameters
    ----------
    tree : Tree
        Its parameters are the features, in the order of the columns.
    to : str
        One of `EXPORTS`.
    name : str
        What the formula is called there, where it has a name.

    Returns
    -------
    str or bytes
        Bytes where the form is binary.

    Raises
    ------
    ValueError
        If there is no such form, or it takes no such name.
    ExportError
        If the formula cannot be written in it, or a library that it takes is missing.

    Examples
    --------
    >>> from shine.lang.parse import parse
    >>> print(export(parse("a*x1**2"), "latex"), end="")
    f = a x_{1}^{2}
    """
    if to not in EXPORTS:
        raise ValueError(f"unknown export {to!r}; use one of {', '.join(EXPORTS)}")
    return EXPORTS[to].text(tree, name)
