"""What a search found: formulas with their losses, and the one to recommend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shine.data import numbers
from shine.errors import DataError
from shine.gp.complexity import tree_complexity
from shine.kernel import Kernel
from shine.lang.tree import Tree

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Model:
    """One formula of a Pareto front.

    Parameters
    ----------
    tree : Tree
        Its parameters are all features, in the order of the columns.
    loss : float
        As the search measured it, over all rows.
    r2 : float
        Coefficient of determination on the same rows; at most 1.
    weights : mapping of str to int
        What a primitive, a feature or a `constant` counts in the complexity, by name; 1 if not listed.
    """

    tree: Tree
    loss: float
    r2: float
    weights: Mapping[str, int] = field(default_factory=dict)

    @property
    def expression(self) -> str:
        """The formula as Python text."""
        return str(self.tree)

    @property
    def complexity(self) -> int:
        """Number of nodes, each counted as often as its weight says."""
        return tree_complexity(self.tree, self.weights)

    @cached_property
    def kernel(self) -> Kernel:
        """The formula compiled for float64; its arguments are the features."""
        return Kernel(self.tree)

    def predict(self, X: ArrayLike) -> Array:
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
            If X has another number of features, or a value that is not finite.
        """
        matrix = numbers(X, "X", 2)
        if matrix.shape[1] != len(self.tree.parameters):
            names = self.tree.parameters
            raise DataError(f"X has {matrix.shape[1]} columns; the formula needs {len(names)}: {', '.join(names)}")
        result: Array = self.kernel(*matrix.T)
        return result


@dataclass(frozen=True, eq=False)
class Result:
    """What a search found.

    Parameters
    ----------
    front : tuple of Model
        Pareto front: rising complexity, falling loss.
    best_index : int
        Position in the front of the recommended formula (see `choose`).
    generations, evaluations : int
        Generations bred, and individuals evaluated.
    seconds : float
        Duration of the search.
    seed : int
    stopped_by : {"loss", "generations", "seconds", "interrupted"}
    """

    front: tuple[Model, ...]
    best_index: int
    generations: int
    evaluations: int
    seconds: float
    seed: int
    stopped_by: str

    @property
    def best(self) -> Model:
        """The recommended formula."""
        return self.front[self.best_index]

    def predict(self, X: ArrayLike) -> Array:
        """Values of the recommended formula (see `Model.predict`)."""
        return self.best.predict(X)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The front as plain values: complexity, loss, r2, expression, best."""
        for position, model in enumerate(self.front):
            yield {
                "complexity": model.complexity,
                "loss": model.loss,
                "r2": model.r2,
                "expression": model.expression,
                "best": position == self.best_index,
            }


def choose(front: Sequence[Model], enough: float, rows: float, power: float) -> int:
    """Position of the formula to recommend.

    The simplest whose loss is at most `enough`, if there is one. Otherwise the one of least description length: what
    it costs to write down the residuals and the formula, by the approximation of Schwarz (1978) with each node
    counted as a parameter.

    Parameters
    ----------
    front : sequence of Model
        Rising complexity, falling loss; not empty.
    enough : float
        Loss below which two formulas are equally right.
    rows : float
        Number of rows the losses were measured on, or what they count as if they have weights.
    power : float
        What the logarithm of a loss counts: half if it is in squared units.
    """
    for position, model in enumerate(front):
        if model.loss <= enough:
            return position
    lengths = [power * rows * math.log(m.loss) + 0.5 * m.tree.size * math.log(rows) for m in front]
    return lengths.index(min(lengths))
