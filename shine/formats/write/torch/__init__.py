"""Formulas as torch functions: as objects, and as the text of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shine.formats.write.array_library import Library
from shine.formats.write.sources import Headings, takes_models
from shine.lang.forms.rounding import Precision, rounded_tree
from shine.lang.forms.tree import Tree

if TYPE_CHECKING:
    from torch import Tensor

_IMPORTS = """\
from collections.abc import Callable, Sequence

import torch
from torch import Tensor"""

_LIBRARY = Library("torch", "torch", "torch", "Tensor", _IMPORTS)


@takes_models
def torch_function(tree: Tree) -> Callable[..., Tensor]:
    """A formula as a function of tensors.

    Parameters
    ----------
    tree : Tree or Model

    Returns
    -------
    callable
        Takes one tensor with the features along its last axis, of shape (n, n_features) or any other, or the columns
        one by one, of shapes that broadcast. Returns the values, of shape (n,), in the dtype of its input.

    Raises
    ------
    ExportError
        If torch is not installed, or the formula calls a function without a definition.

    Notes
    -----
    Values are those of the formula's own arithmetic in the dtype of the input, float64 or float32, within 2 ulp a
    primitive on the CPU; see docs/exports.md. Autograd differentiates it.

    Examples
    --------
    >>> import torch
    >>> from shine.lang.parse import parse
    >>> torch_function(parse("sqrt(a*a + b*b)"))(torch.tensor([[3.0, 4.0], [6.0, 8.0]]))
    tensor([ 5., 10.])
    """
    return _LIBRARY.function(tree)


@takes_models
def torch_source(tree: Tree, name: str = "f", *, headings: Headings | None = None, precision: Precision = None) -> str:
    """A formula as a Python module that needs only torch.

    It takes the arguments of what `torch_function` returns, and has its errors. `headings` are told in a comment.
    """
    return _LIBRARY.source(rounded_tree(tree, precision, named=False), name, headings or {})
