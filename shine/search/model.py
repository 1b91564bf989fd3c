"""A formula of a Pareto front, with its measures: to predict with, to export, to copy to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from shine.data.dataset import numbers
from shine.errors import DataError
from shine.gp.complexity import tree_complexity
from shine.kernels.kernel import Kernel
from shine.lang.lazy import cached_property
from shine.lang.library import STANDARD
from shine.lang.parse import parse
from shine.lang.printing import definition_source
from shine.lang.tape import functions_of
from shine.lang.tree import Primitive, Tree
from shine.typing import Floats

MANY_ROWS = 1_000_000
"""Rows above which compiling a formula with optimization pays off in prediction."""


@dataclass(frozen=True, eq=False)
class Model:
    """One formula of a Pareto front.

    Parameters
    ----------
    tree : Tree
        Its parameters are all features, in the order of the columns.
    loss : float
        The loss of the search, over all rows.
    r2 : float
        Coefficient of determination on the same rows; at most 1.
    weights : mapping of str to int
        Complexity of a primitive, a feature or a `constant`, by name; 1 if not listed.
    """

    tree: Tree
    loss: float
    r2: float
    weights: Mapping[str, int] = field(default_factory=dict)

    @property
    def expression(self) -> str:
        """The formula as Python text, as people write it (see `shine.lang.tree.Tree.readable`)."""
        return self.tree.readable

    @property
    def complexity(self) -> int:
        """Sum of the weights of all nodes."""
        return tree_complexity(self.tree, self.weights)

    @cached_property
    def kernel(self) -> Kernel:
        """The formula compiled for float64; its arguments are the features."""
        return Kernel(self.tree)

    def predict(self, X: ArrayLike) -> Floats:
        """Values of the formula.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Raises
        ------
        DataError
            If X has the wrong number of columns, or a value that is not finite.
        """
        matrix = numbers(X, "X", 2)
        if matrix.shape[1] != len(self.tree.parameters):
            names = self.tree.parameters
            raise DataError(f"X has {matrix.shape[1]} columns; the formula needs {len(names)}: {', '.join(names)}")
        # On few rows LLVM's passes take longer than they save; they do not change the values.
        kernel = self.kernel if len(matrix) > MANY_ROWS else self._quick_kernel
        result: Floats = kernel(*matrix.T)
        return result

    @cached_property
    def _quick_kernel(self) -> Kernel:
        return Kernel(self.tree, opt_level="O0")

    def export(self, to: str, name: str = "f") -> str | bytes:
        """The formula in another form (see `shine.export`).

        Parameters
        ----------
        to : str
            One of `shine.export.EXPORTS`: "python", "latex", "c", "sql", ...
        name : str
            Name of the formula in that form.

        Raises
        ------
        ValueError
            If there is no such form.
        ExportError
            If the formula cannot be written in this form, or a library that the form needs is missing.
        """
        from shine.export import export

        return export(self.tree, to, name)

    def python(self, name: str = "f") -> str:
        """Source of a Python function that only needs NumPy."""
        from shine.export.python import python_source as function_source

        return function_source(self.tree, name)

    def latex(self) -> str:
        """The formula for LaTeX's math mode."""
        from shine.export.latex import latex

        return latex(self.tree)

    def sympy(self) -> Any:
        """The formula as a SymPy expression.

        Raises
        ------
        ExportError
            If SymPy is not installed.
        """
        from shine.export.sympy import sympy_expression

        return sympy_expression(self.tree)

    def __reduce__(self) -> tuple[Any, ...]:
        # As text: compiled code cannot be copied to another process, and reading text executes nothing.
        own = _definitions(self.tree)
        return _model_of, (
            str(self.tree), self.tree.parameters, own, self.loss, self.r2, dict(self.weights),
        )  # fmt: skip


def _definitions(tree: Tree) -> tuple[str, ...]:
    """Definitions of the user's functions that a formula calls, each after the functions that it calls."""
    found: dict[str, str] = {}

    def look(at: Tree) -> None:
        for name in sorted(functions_of(at) - STANDARD.keys()):
            definition = at.functions[name].definition
            if name not in found and definition is not None:
                look(definition)
                found[name] = definition_source(name, definition.parameters, definition.assignments, definition.result)

    look(tree)
    return tuple(found.values())


def _model_of(
    expression: str,
    parameters: tuple[str, ...],
    definitions: tuple[str, ...],
    loss: float,
    r2: float,
    weights: dict[str, int],
) -> Model:
    """Read a model back from text (see `Model.__reduce__`)."""
    table: dict[str, Primitive] = dict(STANDARD)
    for text in definitions:
        definition = parse(text, primitives=table)
        table[definition.name] = Primitive(definition.name, len(definition.parameters), definition)
    return Model(parse(expression, parameters, table), loss, r2, weights)
