"""Formulas as JAX functions: as objects, and as the text of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shine.formats.write.array_library import Library
from shine.formats.write.sources import Headings, takes_models
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

if TYPE_CHECKING:
    from jax import Array

_IMPORTS = """\
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array"""

_LIBRARY = Library("JAX", "jax", "jnp", "Array", _IMPORTS)


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
    return _LIBRARY.function(tree)


@takes_models
def jax_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """A formula as a Python module that needs only JAX.

    It takes the arguments of what `jax_function` returns, and has its errors. `headings` are told in a comment.
    """
    return _LIBRARY.source(rounded_tree(tree, precision, named=False), name, headings or {})
