"""Formulas as JAX functions: as objects, and as the text of a module."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from shine.base.errors import ExportError
from shine.formats.write.sources import Headings, takes_models
from shine.formats.write.statements.array_library import array_function, array_source
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

if TYPE_CHECKING:
    from jax import Array

_IMPORTS = """\
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array"""


@takes_models
def jax_function(tree: Tree) -> Callable[..., Array]:
    """A formula as a function of arrays.

    Parameters
    ----------
    tree : Tree or Model

    Returns
    -------
    callable
        Takes one array with the features along its last axis, of shape (n, n_features) or any other, or the columns
        one by one, of shapes that broadcast. Returns the values, of shape (n,), in the dtype of its input.

    Raises
    ------
    ExportError
        If JAX is not installed, or the formula calls a function without a definition.

    Notes
    -----
    Works under `jax.jit`, `jax.vmap` and `jax.grad`. JAX computes in float32 unless it is told otherwise first:
    ``jax.config.update("jax_enable_x64", True)``. XLA flushes subnormal numbers to zero, and under `jit` rounds
    some products and sums together; see docs/exports.md.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from shine.lang.parse import parse
    >>> float(jax_function(parse("sqrt(a*a + b*b)"))(jnp.array([3.0, 4.0])))
    5.0
    """
    return array_function(tree, "JAX", _operations())


@takes_models
def jax_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """A formula as a Python module that needs only JAX.

    Parameters
    ----------
    tree : Tree or Model
    name : str
        Name of the function in it; it takes the same arguments as the result of `jax_function`.
    headings : mapping of str to str, optional
        Original headings of the columns, by feature, for a comment.
    precision : int, "exact" or None
        Significant digits of constants; all by default.

    Returns
    -------
    str

    Raises
    ------
    ExportError
        If JAX is not installed, or the formula calls a function without a definition.
    """
    rounded = rounded_tree(tree, precision, named=False)
    return array_source(rounded, name, "JAX", _operations(), "jnp", "Array", _IMPORTS, headings or {})


def _operations() -> ModuleType:
    try:
        from shine.formats.write.jax import operations
    except ImportError:
        raise ExportError("the export to JAX needs jax; install it with: pip install 'shine[jax]'") from None
    return operations
